"""Django: its connections to databases, and the exceptions of views that stand for responses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from .._responses.error_pages import is_fault
from .._wire import payloads as p
from .environ import Environs
from .foreign_response import own_result
from .framework import Framework
from .root_path import RootPath


class DjangoViews(Framework):
    """A function after a wait may raise what a view may: `Http404` and `PermissionDenied` become the project's pages.

    Connections to databases that have ended are made anew, and those too old are closed.
    """

    keeps_requests = True

    def __init__(self, root_path: RootPath) -> None:
        self._environs = Environs(root_path)

    def context(self) -> AbstractContextManager[object]:
        """See `Framework`."""
        return _Connections()

    def call(self, function: Callable[[], Any], raw: p.Request | None) -> Any:
        """See `Calling`."""
        try:
            return own_result(function())
        except Exception as error:
            return self._response(error, raw)

    async def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]], raw: p.Request | None) -> Any:
        """See `Calling`."""
        try:
            return own_result(await function())
        except Exception as error:
            return self._response(error, raw)

    def _response(self, error: Exception, raw: p.Request | None) -> Any:
        """The response that the exception stands for. Any other exception is raised again, and those who listen to
        Django are told of it.
        """
        if raw is None or not is_fault(error):
            raise error
        request = import_module("django.core.handlers.wsgi").WSGIRequest(self._environs.make_again(raw))
        if isinstance(error, _meaningful()):
            made = import_module("django.core.handlers.exception").response_for_exception(request, error)
            return own_result(made)
        import_module("django.core.signals").got_request_exception.send(sender=None, request=request)
        raise error


def _meaningful() -> tuple[type[Exception], ...]:
    """The exceptions that Django answers with a status below 500."""
    exceptions = import_module("django.core.exceptions")
    http = import_module("django.http")
    return http.Http404, exceptions.PermissionDenied, exceptions.BadRequest, exceptions.SuspiciousOperation


class _Connections:
    def __enter__(self) -> None:
        self._close()

    def __exit__(self, *exception: object) -> None:
        self._close()

    def _close(self) -> None:
        if (database := sys.modules.get("django.db")) is not None:
            database.close_old_connections()
