"""`Status`: an answer without a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .response import Response


class Status(Response):
    """An answer that is a status alone, without a body: `return Status(202)`. A number that is returned is JSON.

    Raises `ValueError` unless it is 200 to 599.
    """

    __slots__ = ()

    def __init__(self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None) -> None:
        super().__init__(None, status, headers)
