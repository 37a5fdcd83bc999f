"""How functions after waits are called: as they are, or in the surroundings of a framework."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from .._waits.functions import Place
from .._wire import payloads as p


class Calling(Protocol):
    """Calls a function and returns what is to be answered. `raw` is the request, if it was kept. The call also raises
    what there is instead of an outcome, such as a `JobError`.
    """

    keeps_requests: bool
    """Whether a function after a wait is called with its request, also if it does not ask for it."""

    def at(self, place: Place) -> Calling:
        """The same for a view in this place."""

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any: ...

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any: ...


class PlainCalling:
    """As they are."""

    keeps_requests = False

    def at(self, place: Place) -> PlainCalling:
        """See `Calling`."""
        return self

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return function()

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return await function()
