"""A scripted worker for the tests: what it is told to load (the last argument) is the part that it plays."""

import faulthandler
import os
import signal
import socket
import struct
import subprocess
import sys

link = socket.socket(fileno=os.dup(0))


def frame(kind: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">IBBHI", len(payload), kind, 0, 0, stream) + payload


HELLO = frame(0x01, 0, b"\x94\x01\x01\x00\x80")
HELLO_OF_LATER = frame(0x01, 0, b"\x94\x07\x09\x00\x80")
READY = frame(0x02, 0, b"\x92\x08\x82\xa9interface\xa6native\xaaconcurrent\xc3")
FAILED = frame(0x03, 0, b"\x91\xa7no such")
GOODBYE = frame(0x34, 0, b"\x92\xa8stopping\xa0")


def answer(stream: int) -> bytes:
    return frame(0x11, stream, b"\x93\xcc\xc8\xc0\xc4\x04hola")


def pong(token: int) -> bytes:
    return frame(0x33, 0, b"\x91" + bytes([token]))


def exactly(count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = link.recv(count - len(parts))
        if not part:
            sys.exit(0)
        parts += part
    return parts


def frames():
    while True:
        length, kind, flags, _, stream = struct.unpack(">IBBHI", exactly(12))
        yield kind, flags, stream, exactly(length)


def serve() -> None:
    """Answers every request; PING with PONG; ends at GOODBYE."""
    link.sendall(HELLO + READY)
    for kind, flags, stream, payload in frames():
        match kind:
            case 0x10 if flags & 1 == 0:
                link.sendall(answer(stream))
            case 0x12:
                link.sendall(frame(0x13, stream, b"\x91\xce" + struct.pack(">I", len(payload))))
                if flags & 1 == 0:
                    link.sendall(answer(stream))
            case 0x32:
                link.sendall(frame(0x33, 0, payload))
            case 0x34:
                sys.exit(0)


def rest() -> None:
    while True:
        signal.pause()


match sys.argv[1]:
    case "serve":
        serve()
    case "prints":
        print("to the one", flush=True)
        print("to the other", file=sys.stderr, flush=True)
        link.sendall(HELLO + FAILED)
        raise RuntimeError("as told")
    case "exits":
        link.sendall(HELLO + READY + pong(7))
        os._exit(3)
    case "segfaults":
        link.sendall(HELLO)
        os.kill(os.getpid(), signal.SIGSEGV)
    case "stays behind a failure":
        link.sendall(HELLO + FAILED)
        rest()
    case "closes and stays":
        link.sendall(HELLO + READY)
        os.close(0)
        link.close()
        rest()
    case "says goodbye and stays":
        link.sendall(HELLO + READY + GOODBYE)
        rest()
    case "leaves its link to another":
        link.sendall(HELLO + READY)
        other = subprocess.Popen(["sleep", "600"], stdin=0)
        print("other", other.pid, flush=True)
        link.sendall(pong(1))
        os._exit(0)
    case "starts another":
        other = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        print("other", other.pid, flush=True)
        link.sendall(HELLO + READY)
        rest()
    case "does not read":
        link.sendall(HELLO + READY)
        rest()
    case "rubbish":
        link.sendall(HELLO + b"GET / HTTP/1.1\r\n\r\n" * 4)
        rest()
    case "half a frame":
        link.sendall(HELLO + READY[:9])
        os._exit(1)
    case "later version":
        link.sendall(HELLO_OF_LATER)
        for kind, *_ in frames():
            print("was told", hex(kind), flush=True)
    case "floods":
        link.sendall(HELLO + READY)
        while True:
            link.sendall(pong(9) * 10_000)
    case "stuck":
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        link.sendall(HELLO + READY)
        while True:
            pass
    case other:
        sys.exit(f"no such scenario: {other}")
