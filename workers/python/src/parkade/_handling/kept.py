"""Answers of functions after waits, with the headers that were set when the request parked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from .._hooks import Around
from .._link.answers import Answer
from .._mappings import Headers
from .._requests.request import Request
from .._responses.response import Response, normalise
from .._routing.routes import Route
from .._waits.groups import answered
from .._waits.wait import Wait, added_to
from .._wire import payloads as p
from .results import Results

_ADDED = ("set-cookie", "vary", "link")
"""Those that stand beside others of their name."""


class KeptResults(Results):
    """As `Results`. A header that the function has set itself counts instead of the one that was kept."""

    def __init__(self, routes: Sequence[Route], around: Around, added: p.Added) -> None:
        super().__init__(routes, around)
        self._added = added

    def answer(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """See `Results`."""
        return super().answer(_with(result, status, self._added), status, raw, request)

    async def answer_async(self, result: object, status: int, raw: p.Request | None, request: Request | None) -> Answer:
        """See `Results`."""
        return await super().answer_async(_with(result, status, self._added), status, raw, request)


def _with(result: object, status: int, added: p.Added) -> Response | Wait:
    made = normalise(result, status)
    kept = Headers._of_request(added.headers or [])
    if isinstance(made, Wait):
        waiting = copy(answered(made))
        own = Headers._of_request(waiting._added.headers or []) if waiting._added is not None else Headers()
        before = Headers((name, value) for name, value in kept.pairs() if name in _ADDED or name not in own)
        for name, value in own.pairs():
            before.add(name, value)
        told = added.status if waiting._added is None or waiting._added.status is None else waiting._added.status
        waiting._added = added_to(waiting._wait, None, before, told)
        return waiting
    is_error = (made.status or 200) >= 400
    for name, value in kept.pairs():
        if name in _ADDED or not (name in made.headers or (is_error and _is_about_content(name))):
            made.headers.add(name, value)
    if made.status == 200 and added.status is not None:
        made.status = added.status
    return made


def _is_about_content(name: str) -> bool:
    """As in `PROTOCOL.md`, "What is added"."""
    if name.startswith("content-"):
        return not name.startswith("content-security-policy")
    return name in ("cache-control", "etag", "expires", "last-modified")
