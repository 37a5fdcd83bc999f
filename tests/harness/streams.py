"""Thousands of HTTP/2 streams with the same request: its bytes are made once, and the responses are skipped."""

from __future__ import annotations

import selectors
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
"""The preface, with empty SETTINGS."""

HEADERS, END_STREAM_AND_HEADERS = 1, 5


class Streams:
    """This many connections with this many streams each. As a context manager: they are closed after the block."""

    def __init__(self, address: tuple[str, int], connections: int, streams: int) -> None:
        self._sockets = [socket.create_connection(address, 20) for _ in range(connections)]
        self._count = streams
        self._is_over = threading.Event()
        self._reader = threading.Thread(target=self._read_over, daemon=True)

    def __enter__(self) -> Streams:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._reader.join()
        for client in self._sockets:
            client.close()

    def ask(self, target: str) -> None:
        """Sends on all of them at once."""
        wanted = b"".join(asking(2 * nth + 1, target) for nth in range(self._count))
        for client in self._sockets:
            client.sendall(PREFACE + wanted)

    def _read_over(self) -> None:
        """Reads and drops everything, because the server stops writing to a client that does not read."""
        with selectors.DefaultSelector() as waits:
            for client in self._sockets:
                waits.register(client, selectors.EVENT_READ)
            while not self._is_over.is_set():
                for key, _ in waits.select(0.1):
                    assert isinstance(key.fileobj, socket.socket)
                    key.fileobj.recv(65_536)


def asking(stream: int, target: str) -> bytes:
    """A HEADERS frame: GET, http, path and authority, none of which is indexed (RFC 7541, section 6.2.2)."""
    path, host = target.encode(), b"test"
    block = b"\x82\x86\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(host)]) + host
    return (
        struct.pack("!I", len(block))[1:] + bytes([HEADERS, END_STREAM_AND_HEADERS]) + struct.pack("!I", stream) + block
    )
