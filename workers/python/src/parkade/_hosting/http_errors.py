"""`HTTPError`s of Parkade in views of frameworks: the responses that they are in applications of Parkade.

Each framework gets a handler of exceptions, where it keeps those of its application. One of the application's own,
for `HTTPError` or for one of its kinds, counts. An exception that no view raises, but a middleware, gets to the host.
"""

from __future__ import annotations

import sys
from typing import Any

from .._requests.request import Request
from .._responses.error_pages import failure_response, is_fault
from ..errors import HTTPError
from .origin import asking
from .search import within

_KINDS = {
    "flask": "Flask",
    "quart": "Quart",
    "starlette.applications": "Starlette",
    "litestar.app": "Litestar",
    "django.core.handlers.base": "BaseHandler",
}
"""The applications of frameworks that have handlers of exceptions."""


def handle_errors(application: Any, dev: bool) -> None:
    """Registers the handlers. `dev` shows tracebacks to the client."""
    handlers = _Handlers(dev)
    kinds = {module: getattr(sys.modules[module], name) for module, name in _KINDS.items() if module in sys.modules}
    for one in within(application, *kinds.values()):
        module = next(module for module, kind in kinds.items() if issubclass(type(one), kind))
        match module:
            case "flask":
                _keep(one.error_handler_spec, handlers.of_flask(one.response_class))
            case "quart":
                _keep(one.error_handler_spec, handlers.of_quart(one.response_class))
            case "starlette.applications":
                one.exception_handlers.setdefault(HTTPError, handlers.of_starlette)
            case "litestar.app":
                one.exception_handlers.setdefault(HTTPError, handlers.of_litestar)
            case _ if one._exception_middleware is not None:  # of a `StaticFilesHandler`
                one._exception_middleware.append(handlers.of_django)


def _keep(handlers: Any, handler: Any) -> None:
    """Among those of Flask or Quart: by blueprints, statuses and exceptions. To register it is refused later than the
    first request, which may have come from a test client while the application was imported.
    """
    handlers[None][None].setdefault(HTTPError, handler)  # they make what is missing


class _Handlers:
    """Those of each framework. They raise faults of the application again, which the framework answers with 500."""

    def __init__(self, dev: bool) -> None:
        self._dev = dev

    def _told(self, error: Exception) -> tuple[bytes | str, int, dict[str, str]]:
        """The body, status and headers of the response."""
        if is_fault(error):
            raise error
        raw = asking()
        made = failure_response(error, None if raw is None else Request(raw), self._dev)
        return made.body, made.status or 500, dict(made.headers.pairs())

    def of_flask(self, response_class: Any) -> Any:
        def handle(error: HTTPError) -> Any:
            return response_class(*self._told(error))

        return handle

    def of_quart(self, response_class: Any) -> Any:
        async def handle(error: HTTPError) -> Any:
            return response_class(*self._told(error))

        return handle

    async def of_starlette(self, connection: Any, error: Exception) -> Any:
        if connection.scope["type"] != "http":
            raise error
        return sys.modules["starlette.responses"].Response(*self._told(error))

    def of_litestar(self, _request: Any, error: Exception) -> Any:
        body, status, headers = self._told(error)
        media_type = headers.pop("content-type")
        return sys.modules["litestar"].Response(body, status_code=status, media_type=media_type, headers=headers)

    def of_django(self, _request: Any, error: Exception) -> Any:
        if not isinstance(error, HTTPError) or is_fault(error):
            return None
        body, status, headers = self._told(error)
        return sys.modules["django.http"].HttpResponse(body, status=status, headers=headers)
