"""Calls the functions of a WebSocket, for a message of its client and for its end, and answers with the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._hooks import Around
from .._link.answers import FAULTS, Answer, Attempted, Deferred, Plain
from .._log import log_error
from .._requests.request import Request
from .._waits.functions import Function, decode_state, find
from .._waits.said import Unfit, value_of_said
from .._waits.wait import Wait
from .._websocket import Close
from .._wire import frames as f
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import HTTPError
from .results import Results
from .socket_runs import VIOLATES_POLICY, reason_of

UNFIT = 1007
"""How a client is told that its message is not of the type that is expected (RFC 6455, section 7.4.1)."""

MESSAGE, END = "a message of a WebSocket", "the end of a WebSocket"
"""What functions are called for, as the log says it."""

_FAILED = Attempted(f.ERROR, encode_payload(("application", "")))


class SocketMessages:
    """Calls functions by the names that were kept with WebSockets. No hook is around them: there is no request."""

    def __init__(self, concurrent: bool) -> None:
        self._concurrent = concurrent
        self._results = Results((), Around(()))

    def call(self, function: str, state: bytes, said: p.Said) -> Answer | Plain | Deferred:
        """Answers with a message, with nothing, with a wait, or with the end of the WebSocket."""
        return self._calling(function, state, lambda found: value_of_said(found, said), MESSAGE)

    def end(self, function: str, state: bytes, closed: p.Closed) -> Answer | Plain | Deferred:
        """Answers with nothing, or with a wait that has another function: nobody gets what comes of it."""
        return self._calling(function, state, lambda _: closed.code, END)

    def _calling(
        self, function: str, state: bytes, value_for: Callable[[Function], Any], called_for: str
    ) -> Answer | Plain | Deferred:
        try:
            kept = decode_state(state)
            found = find(function, frozenset(kept.values), hears=True)
            if found.asynchronous and not self._concurrent:
                raise TypeError(
                    f"{function} is an async def, and this application has no other: write App(concurrent=True)"
                )
        except FAULTS as error:
            return _failed(called_for, function, error)

        def prepare() -> Callable[[], Any]:
            given: dict[str, Any] = {}
            if found.outcome is not None:
                given[found.outcome] = value_for(found)
            if found.request is not None:
                given[found.request] = None if kept.request is None else Request(kept.request)
            return found.prepared(kept.values, given)

        if found.asynchronous:
            return Deferred(partial(self._call_async, found, prepare, called_for))
        return Plain(partial(self._call, found, prepare, called_for))

    def _call(self, found: Function, prepare: Callable[[], Callable[[], Any]], called_for: str) -> Answer:
        try:
            result = _heard(found, prepare()(), called_for)
            return _closed(result) if isinstance(result, Close) else self._results.answer(result, 200, None, None)
        except FAULTS as error:
            return _failed(called_for, found.name, error)

    async def _call_async(self, found: Function, prepare: Callable[[], Callable[[], Any]], called_for: str) -> Answer:
        try:
            result = _heard(found, await prepare()(), called_for)
            if isinstance(result, Close):
                return _closed(result)
            return await self._results.answer_async(result, 200, None, None)
        except FAULTS as error:
            return _failed(called_for, found.name, error)


def _heard(found: Function, result: object, called_for: str) -> object:
    """What somebody gets of a result: at the end there is nobody, and only a wait with a function goes on."""
    if called_for == MESSAGE or (isinstance(result, Wait) and result._function is not None):
        return result
    if isinstance(result, Wait):
        result._used = True
        raise TypeError(f"{found.name} returned a wait for nobody: give it a function with .then")
    return None


def _closed(close: Close) -> Attempted:
    return Attempted(f.CLOSE, encode_payload((close.code, close.reason)))


def _failed(called_for: str, function: str, error: BaseException) -> Attempted:
    """What is wrong with the message is its client's fault; everything else is the application's."""
    if called_for == END:
        log_error(f"{function}, called for {END}", error)
        return _FAILED
    if isinstance(error, Unfit):
        return _closed(Close(UNFIT, reason_of(str(error))))
    if isinstance(error, HTTPError) and error.status < 500:
        return _closed(Close(VIOLATES_POLICY, reason_of(error.detail)))
    log_error(f"{function}, called for {MESSAGE}", error)
    return _FAILED
