"""The body of a request whose route has `stream=True`, in a test: its pieces are those that the test gives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from .._link.answers import BodyCutOff
from ..errors import HTTPError, IncompleteBody


class Arriving:
    """See `_link.port.ArrivingBody`."""

    def __init__(self, body: bytes | Iterable[bytes], limit: int | None) -> None:
        self._pieces: Iterator[bytes] = iter([body] if isinstance(body, bytes) else body)
        self._limit = limit
        self._bytes = 0
        self.is_cut_off = False
        """Whether its client has left before its end, or has sent too much."""
        self.fault: HTTPError | None = None
        """What the client is told then, if it is still there."""

    def read(self) -> bytes:
        if self.is_cut_off:
            raise BodyCutOff("the client left in the middle of its request")
        try:
            piece = next((piece for piece in self._pieces if piece), b"")
        except IncompleteBody as error:
            self.is_cut_off = True
            raise BodyCutOff("the client left in the middle of its request") from error
        self._bytes += len(piece)
        if self._limit is not None and self._bytes > self._limit:
            self.is_cut_off = True
            self.fault = HTTPError(413, f"the body is longer than {self._limit} bytes")
            raise BodyCutOff("the body is too large")
        return piece

    async def next_piece(self) -> bytes:
        try:
            return self.read()
        except BodyCutOff as error:
            raise asyncio.CancelledError from error
