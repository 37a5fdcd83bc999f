"""What the server makes of an answer of the application: it has rules about lengths and header values."""

from __future__ import annotations

import re

from .._log import log_fault
from .._mappings import Headers
from .._requests.request import Request
from .._responses.encoding import inline
from .._responses.problems import problem_response
from .._wire import payloads as p
from .._wire.values import byte_length
from ..errors import HTTPError

BAD_ANSWER = "the application returned a response that cannot be sent; the log says why"
BODILESS = frozenset({204, 205, 304})  # statuses of answers without a body
OF_THE_SERVER = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade"})
"""Headers about the transfer, which the server chooses whatever the application gave."""


def sent(whole: p.Response, request: Request) -> p.Response:
    """The answer as the server sends it: 500 if it cannot, with the reason in the log."""
    fault = _fault(whole, Headers._of_request(whole.headers or []), request.method)
    if fault is None:
        return whole
    log_fault(f"{request.method} {request.raw_path}: the application returned a response that cannot be sent: {fault}")
    return inline(problem_response(HTTPError(500, BAD_ANSWER), request))


def _fault(whole: p.Response, headers: Headers, method: str) -> str | None:
    if any(_CONTROL.search(value) for _, value in headers.pairs()):
        return "a header value contains a control character"
    length = str(byte_length(whole.body or b""))
    is_told = method != "HEAD" and whole.status not in BODILESS
    if is_told and any(one != length for one in headers.getlist("content-length")):
        return "Content-Length does not match the body"
    return None


_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
