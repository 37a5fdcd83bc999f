"""The frameworks of hosted applications: what is around jobs and functions after waits, and their responses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from io import BytesIO
from typing import Any

from .._responses.response import Response
from .._waits.message import Message
from .._waits.wait import Wait
from .._wire import payloads as p
from .environ import Environs
from .foreign_response import own_result
from .root_path import RootPath


class Framework:
    """None in particular. It is `Calling` for functions after waits."""

    keeps_requests = False
    """Whether a function after a wait is called with its request, also if it does not ask for it."""

    def context(self) -> AbstractContextManager[object]:
        """What is around a job, and around a function after a wait."""
        return nullcontext()

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return own_result(function())

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        """See `Calling`."""
        return own_result(await function())


class _Flask(Framework):
    """The contexts of Flask, its responses, and its error handlers."""

    keeps_requests = True

    def __init__(self, application: Any, root_path: RootPath) -> None:
        self._application = application
        self._environs = Environs(root_path)

    def context(self) -> AbstractContextManager[object]:
        return self._application.app_context()  # type: ignore[no-any-return]

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        with self._around(raw):
            try:
                return self._result(function())
            except Exception as error:
                return self._result(self._application.handle_user_exception(error))

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        with self._around(raw):
            try:
                return self._result(await function())
            except Exception as error:
                return self._result(self._application.handle_user_exception(error))

    def _around(self, raw: p.Request | None) -> AbstractContextManager[object]:
        if raw is None:
            return nullcontext()
        environ = self._environs.make(raw, _NoBody())
        environ["wsgi.input"] = BytesIO()
        return self._application.request_context(environ)  # type: ignore[no-any-return]

    def _result(self, result: Any) -> Any:
        if result is None or isinstance(result, Response | Wait | Message | HTTPStatus):
            return result
        return own_result(self._application.make_response(result))


class _Django(Framework):
    """Connections to databases that have ended are made anew, and those too old are closed."""

    def context(self) -> AbstractContextManager[object]:
        return _Connections()


class _Connections:
    def __enter__(self) -> None:
        self._close()

    def __exit__(self, *exception: object) -> None:
        self._close()

    def _close(self) -> None:
        if (database := sys.modules.get("django.db")) is not None:
            database.close_old_connections()


class _NoBody:
    def read_body(self) -> bytes:
        """The body is not kept during a wait."""
        return b""


def framework_of(application: Any, root_path: RootPath) -> Framework:
    """The framework of an application, also of one that is within others."""
    for _ in range(_DEPTH_MAX):
        if (flask := sys.modules.get("flask")) is not None and isinstance(application, flask.Flask):
            return _Flask(application, root_path)
        inner = (getattr(application, name, None) for name in ("app", "application"))
        if (application := next((one for one in inner if callable(one)), None)) is None:
            break
    return _Django() if "django.core.handlers.base" in sys.modules else Framework()


_DEPTH_MAX = 20  # applications within each other; then: it is taken for one of no framework in particular
