"""The two pipes between this worker and its core."""

from __future__ import annotations

import os

from .._limits import RECEIVE_SIZE


class Link:
    """Frames arrive on one descriptor and leave on the other, both blocking.

    Raises `BrokenPipeError` when the core has gone.
    """

    __slots__ = ("reader", "writer")

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer

    def receive(self, size: int = RECEIVE_SIZE) -> bytes:
        """The available bytes, at most so many; waits for the first one. Empty if the core has gone."""
        return os.read(self.reader, size)

    def send(self, data: bytes) -> None:
        """Writes everything."""
        while len(data) != (sent := os.write(self.writer, data)):  # a signal came while the pipe was full
            data = data[sent:]
