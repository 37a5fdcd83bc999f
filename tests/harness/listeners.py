"""Hundreds of clients in one thread that follow a channel; afterwards the test reads what each received."""

from __future__ import annotations

import re
import selectors
import socket
import threading

from .client import request

NUMBER = re.compile(rb"data: (\d+)\n")


class Listeners:
    """This many streams of server-sent events, whose messages are numbers. As a context manager: they are closed after
    the block.
    """

    def __init__(self, address: tuple[str, int], count: int, target: str) -> None:
        self._waits = selectors.DefaultSelector()
        self._said: dict[socket.socket, bytearray] = {}
        for _ in range(count):
            client = socket.create_connection(address, 20)
            client.sendall(request("GET", target))
            self._waits.register(client, selectors.EVENT_READ)
            self._said[client] = bytearray()
        self._is_over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Listeners:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._reader.join()
        for client in self._said:
            client.close()
        self._waits.close()

    def told(self) -> list[list[int]]:
        """The numbers that each client received, in order."""
        return [[int(number) for number in NUMBER.findall(bytes(said))] for said in self._said.values()]

    def have_all(self, last: int) -> bool:
        """Whether each client has received the last one."""
        ending = b"data: %d\n" % last
        return all(ending in said[-200:] for said in self._said.values())

    def _read(self) -> None:
        while not self._is_over.is_set():
            for key, _ in self._waits.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                said = client.recv(1 << 20)
                if not said:
                    self._waits.unregister(client)
                self._said[client] += said
