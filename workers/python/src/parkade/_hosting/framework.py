"""What is around jobs and functions after waits in a hosted application, and what becomes of their results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .._waits.functions import Place
from .._wire import payloads as p
from ..errors import InvalidResult
from .foreign_response import own_result


class Framework:
    """None in particular. It is `Calling` for functions after waits."""

    keeps_requests = False
    """Whether a function after a wait is called with its request, also if it does not ask for it."""

    def place(self) -> Place | None:
        """Where the view is that calls `park`; None where all views are. Raises `InvalidResult` for one of an
        application of Flask that was not found in the one that is served: no other worker would find it.
        """
        if (flask := sys.modules.get("flask")) is not None and flask.has_request_context():
            raise InvalidResult(
                f"park(…).then: no other worker would find the Flask application {flask.current_app.name!r} of this "
                "view: keep it in an attribute of what is served, or of a middleware around it"
            )
        return None

    def at(self, place: Place) -> Framework:
        """See `Calling`."""
        return self

    def context(self) -> AbstractContextManager[object]:
        """What is around a job, and around a function after a wait."""
        return nullcontext()

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return own_result(function())

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return own_result(await function())
