"""The response to an exception."""

from __future__ import annotations

import traceback

from .._log import format_error
from .._requests.request import Request
from ..errors import HTTPError, IncompleteBody, QueryError
from .problems import preferred, problem_response
from .response import HTML, Response
from .traceback_page import traceback_page

_FAILED = "the application failed; its log says why"


def is_fault(error: BaseException) -> bool:
    """Whether it is the application's fault. An `HTTPError` is a response, not a fault, unless it comes from an invalid
    query.
    """
    return error.status == 500 if isinstance(error, QueryError) else not isinstance(error, HTTPError | IncompleteBody)


def failure_response(error: BaseException, request: Request | None, dev: bool) -> Response:
    """The response to an exception: to a fault of the application without details for clients, with all details for
    developers.
    """
    if isinstance(error, HTTPError) and not isinstance(error, QueryError):
        return problem_response(error, request)
    if dev and request is not None and preferred(request.headers.get("accept", "")) == HTML:
        return traceback_page(error, request)
    if isinstance(error, QueryError):
        shown = {"message": str(error), "sqlstate": error.sqlstate} if dev else {}
        return problem_response(error, request, more=shown)
    if dev:
        last = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        return problem_response(HTTPError(500, last), request, more={"traceback": format_error(error)})
    return problem_response(HTTPError(500, _FAILED), request)
