"""The body of a request, for `receive`."""

from __future__ import annotations

from typing import Any

from .._wire import payloads as p


class RequestBody:
    """Where the body of one request comes from. The core has collected it, so it is one message."""

    __slots__ = ("_whole",)

    def __init__(self, raw: p.Request) -> None:
        self._whole: bytes | None = raw.body or b""

    @property
    def is_read(self) -> bool:
        """Whether the application has had all of it."""
        return self._whole is None

    async def message(self) -> dict[str, Any]:
        """The next `http.request`. Not if it is read."""
        body, self._whole = self._whole, None
        return {"type": "http.request", "body": body, "more_body": False}
