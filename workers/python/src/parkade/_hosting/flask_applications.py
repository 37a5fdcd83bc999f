"""Flask: its contexts, its responses and its error handlers. Several applications may be served as one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

from .._log import log_fault
from .._waits.functions import Place
from .._waits.wait import Wait
from .._wire import payloads as p
from .environ import Environs
from .foreign_response import own_result
from .framework import Framework
from .root_path import RootPath

_SESSION_CHANGED = (
    "a function after a wait has changed the session, or flashed a message: that is not saved, because the session was "
    "sent when the request parked. Change it in the view, before park(…)"
)


class FlaskApplications(Framework):
    """A function after a wait runs in the application whose view has parked the request, and where that is mounted.

    `applications` are in an order that is the same in every worker. The first is that of jobs.
    """

    keeps_requests = True

    def __init__(self, applications: list[Any], root_path: RootPath) -> None:
        self._applications = applications
        self._root_path = root_path
        self._environs = Environs(root_path)
        self._place: Place | None = None

    def place(self) -> Place | None:
        """See `Framework`."""
        flask = sys.modules["flask"]
        if not flask.has_request_context():
            return None
        application, environ = flask.current_app._get_current_object(), flask.request.environ
        number = next((n for n, one in enumerate(self._applications) if one is application), None)
        if number is None:
            return super().place()
        script_name = environ.get("SCRIPT_NAME", "")
        if number == 0 and script_name == self._root_path.native:
            return None
        return Place(number, script_name, environ.get("PATH_INFO", ""))

    def at(self, place: Place) -> FlaskApplications:
        """See `Calling`. Raises `LookupError` if newer code has no such application."""
        if place.application >= len(self._applications):
            raise LookupError("the Flask application whose view parked the request is gone")
        there = copy(self)
        there._place = place
        return there

    @property
    def _application(self) -> Any:
        return self._applications[0 if self._place is None else self._place.application]

    def context(self) -> AbstractContextManager[object]:
        """See `Framework`."""
        return self._application.app_context()  # type: ignore[no-any-return]

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        """See `Calling`."""
        with self._around(raw):
            try:
                result = function()
            except Exception as error:
                result = self._application.handle_user_exception(error)
            return self._result(result)

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        """See `Calling`."""
        with self._around(raw):
            try:
                result = await function()
            except Exception as error:
                result = self._application.handle_user_exception(error)
            return self._result(result)

    def _around(self, raw: p.Request | None) -> AbstractContextManager[object]:
        if raw is None:
            return nullcontext() if self._place is None else self.context()
        environ = self._environs.make_again(raw)
        if self._place is not None:
            environ["SCRIPT_NAME"], environ["PATH_INFO"] = self._place.script_name, self._place.path
        return self._application.request_context(environ)  # type: ignore[no-any-return]

    def _result(self, result: Any) -> Any:
        flask = sys.modules["flask"]
        if flask.has_request_context() and flask.session.modified:
            log_fault(_SESSION_CHANGED)
        if isinstance(result, Wait) and self._place is not None:
            result = copy(result)
            result._place = self._place
        return own_result(self._application.make_response(result)) if _is_of_view(result) else result


def _is_of_view(result: Any) -> bool:
    """Whether a view of Flask may return it. Anything else is what a handler of Parkade may return."""
    return isinstance(result, _OF_VIEWS) or (callable(result) and not isinstance(result, type))


_OF_VIEWS = (str, bytes, bytearray, dict, list, tuple, Iterator)
