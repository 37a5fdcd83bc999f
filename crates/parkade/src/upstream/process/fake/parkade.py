"""A scripted worker for the tests: what it is told to load (the last argument) is the part that it plays."""

import faulthandler
import os
import signal
import struct
import subprocess
import sys

requests, answers = os.dup(0), os.dup(1)
os.dup2(2, 1)


def send(data: bytes) -> None:
    while data:
        data = data[os.write(answers, data) :]


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
        part = os.read(requests, count - len(parts))
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
    send(HELLO + READY)
    for kind, flags, stream, payload in frames():
        match kind:
            case 0x10 if flags & 1 == 0:
                send(answer(stream))
            case 0x12:
                send(frame(0x13, stream, b"\x91\xce" + struct.pack(">I", len(payload))))
                if flags & 1 == 0:
                    send(answer(stream))
            case 0x32:
                send(frame(0x33, 0, payload))
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
        send(HELLO + FAILED)
        raise RuntimeError("as told")
    case "exits":
        send(HELLO + READY + pong(7))
        os._exit(3)
    case "segfaults":
        send(HELLO)
        os.kill(os.getpid(), signal.SIGSEGV)
    case "stays behind a failure":
        send(HELLO + FAILED)
        rest()
    case "closes and stays":
        send(HELLO + READY)
        for end in (0, requests, answers):
            os.close(end)
        rest()
    case "says goodbye and stays":
        send(HELLO + READY + GOODBYE)
        rest()
    case "leaves its link to another":
        send(HELLO + READY)
        other = subprocess.Popen(["sleep", "600"], stdin=0, stdout=answers)
        print("other", other.pid, flush=True)
        send(pong(1))
        os._exit(0)
    case "starts another":
        other = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        print("other", other.pid, flush=True)
        send(HELLO + READY)
        rest()
    case "does not read":
        send(HELLO + READY)
        rest()
    case "rubbish":
        send(HELLO + b"GET / HTTP/1.1\r\n\r\n" * 4)
        rest()
    case "half a frame":
        send(HELLO + READY[:9])
        os._exit(1)
    case "later version":
        send(HELLO_OF_LATER)
        for kind, *_ in frames():
            print("was told", hex(kind), flush=True)
    case "floods":
        send(HELLO + READY)
        while True:
            send(pong(9) * 10_000)
    case "stuck":
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        send(HELLO + READY)
        while True:
            pass
    case other:
        sys.exit(f"no such scenario: {other}")
