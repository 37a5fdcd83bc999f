"""Turns an exception into a response: that of the error handler, or the default one. Logs faults of the application."""

from __future__ import annotations

from .._hooks import Around, ErrorHook, settle
from .._link.answers import FAULTS, Answer
from .._log import log_error, log_fault
from .._requests.request import Request
from .._responses.encoding import encode
from .._responses.error_pages import failure_response, is_fault
from .._responses.response import Response
from .._wire import payloads as p
from ..errors import HTTPError, IncompleteBody, InvalidResult
from .results import Results


class Failures:
    """Makes answers of exceptions. `dev` shows tracebacks to the client."""

    def __init__(self, around: Around, results: Results, dev: bool) -> None:
        self._around = around
        self._results = results
        self._dev = dev

    def answer(self, error: BaseException, raw: p.Request | None, request: Request | None) -> Answer:
        """The response of the error handler, otherwise the default one."""
        if isinstance(error, IncompleteBody):
            return encode(self._usual(error, request))
        try:
            status, hook = self._judged(error, request)
            result = self._usual(error, request) if hook is None else hook.call(request, error)
            return self._results.answer(result, status, raw, request)
        except FAULTS as another:
            return self.usual_answer(another, request)

    async def answer_async(self, error: BaseException, raw: p.Request | None, request: Request | None) -> Answer:
        """As `answer`, in the event loop."""
        if isinstance(error, IncompleteBody):
            return encode(self._usual(error, request))
        try:
            status, hook = self._judged(error, request)
            result = self._usual(error, request) if hook is None else await settle(hook, hook.call(request, error))
            return await self._results.answer_async(result, status, raw, request)
        except FAULTS as another:
            return self.usual_answer(another, request)

    def usual_answer(self, error: BaseException, request: Request | None) -> Answer:
        """The default response, without an error handler: also if an error handler or an after hook raised."""
        if is_fault(error):
            _log(error, request)
        return encode(self._usual(error, request))

    def _judged(self, error: BaseException, request: Request | None) -> tuple[int, ErrorHook | None]:
        """The status, and the error handler. Logs faults of the application.

        An exception whose type has a handler was expected: it is not a fault, and the handler decides what to log. A
        handler for `Exception`, or for 500, handles unexpected ones, so they are logged.
        """
        if is_fault(error) and not self._around.expect(error):
            _log(error, request)
        status = error.status if isinstance(error, HTTPError) else 500
        return status, self._around.find(error, status)

    def _usual(self, error: BaseException, request: Request | None) -> Response:
        if isinstance(error, IncompleteBody):  # nobody is left to read it
            error = HTTPError(400, "the body ended early")
        return failure_response(error, request, self._dev)


def _log(error: BaseException, request: Request | None) -> None:
    what = f"{request.method} {request.raw_path}" if request is not None else "after a wait"
    members = {} if request is None else {"method": request.method, "path": request.raw_path}
    if isinstance(error, InvalidResult):
        text = f"{what}: the handler {error}" if str(error).startswith("returned") else f"{what}: {error}"
        log_fault(text, **members)
    else:
        log_error(what, error, **members)
