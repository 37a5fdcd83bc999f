"""The body of a request, for `receive`."""

from __future__ import annotations

from typing import Any

from .._link.concurrent import Concurrent
from .._wire import payloads as p


class RequestBody:
    """Where the body of one request comes from: one message, or a message for each piece that arrives."""

    __slots__ = ("_link", "_stream", "_whole", "is_read")

    def __init__(self, link: Concurrent, stream: int, raw: p.Request) -> None:
        self._link = link
        self._stream = stream
        self._whole = raw.body
        self.is_read = False
        """Whether the application has had all of it."""

    async def message(self) -> dict[str, Any]:
        """The next `http.request`. Not if it is read. Raises `BodyCutOff` if the rest will not come."""
        body = self._whole
        if body is not None:
            self.is_read = True
            return {"type": "http.request", "body": body, "more_body": False}
        piece = await self._link.body_reader.next_piece(self._stream)
        self.is_read = not piece
        return {"type": "http.request", "body": piece, "more_body": not self.is_read}
