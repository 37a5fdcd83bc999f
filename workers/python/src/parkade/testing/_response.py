"""What a test client returns for a request: an answer, or a parked request that becomes one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

import msgspec

from .._job import text_of_id
from .._link.answers import Answer
from .._log import log_fault
from .._mappings import Headers
from .._requests.request import Request
from .._responses.encoding import flat_of, inline, json_encode
from .._responses.problems import problem_response
from .._responses.response import JSON
from .._responses.response import Response as Made
from .._sql.outcomes import error_of, shape_of
from .._waits.message import Message
from .._waits.wait import Wait, value_of_outcome
from .._wire import payloads as p
from ..errors import HTTPError, JobError, QueryError
from ..jobs._values import decode_result
from ._added import Added
from ._arriving import Arriving
from ._request import Correlation, correlation_of
from ._sent import BODILESS, OF_THE_SERVER
from ._waits import Parking


class Response:
    """An answer: `status`, `headers`, `body`. `parked` says that it is still to come, `done` that it has come."""

    def __init__(self, whole: p.Response | None = None) -> None:
        self.whole = whole
        self.is_head = False  # then the body stays with the server
        self.added = Added([])
        self.request_id = ""

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.added.status(self._answer().status)

    @property
    def headers(self) -> Headers:
        """The header fields of the answer."""
        answer = self._answer()
        headers = self.added.headers(answer.status, Headers._of_request(answer.headers or []))
        for name in OF_THE_SERVER & set(headers):
            del headers[name]
        if self.request_id and "x-request-id" not in headers:
            headers.add("x-request-id", self.request_id)
        return headers

    @property
    def body(self) -> bytes:
        """The body of the answer; empty for HEAD, and for a status that has none (204, 205, 304)."""
        body = None if self.is_head or self.status in BODILESS else self._answer().body
        return body.encode() if isinstance(body, str) else body or b""

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode()

    def json(self) -> Any:
        """The body decoded from JSON."""
        return msgspec.json.decode(self.body)

    @property
    def parked(self) -> bool:
        """Whether the answer is still to come."""
        return False

    @property
    def done(self) -> bool:
        """Whether the answer has come."""
        return self.whole is not None

    @property
    def begun_as_stream(self) -> bool:
        """Whether it is a stream of messages, which has its status and headers from the beginning."""
        return False

    @property
    def wait(self) -> Wait | None:
        """What it waits for, or the first of several things, as its `repr` tells; None when it does not wait."""
        return None

    def response(self) -> Response:
        """The answer. Raises `AssertionError` when there is none yet."""
        self._answer()
        return self

    @property
    def messages(self) -> list[Message]:
        """The messages of a stream of server-sent events so far."""
        return []

    def read(self) -> Message | None:
        """The next message of a stream, or None when there is none yet."""
        return None

    def _answer(self) -> p.Response:
        if self.whole is None:
            raise AssertionError("there is no response: the client left")
        return self.whole

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.whole.status if self.whole is not None else 'without an answer'}>"


class Parked(Response):
    """A request that was parked by its worker. It becomes an answer when what it waits for happens."""

    def __init__(self, request: p.Request) -> None:
        super().__init__()
        self.requested = request
        self.parkings: list[Parking] = []  # what it waits for; a coroutine may wait for several things at a time
        self._read = 0
        self.task: asyncio.Task[Answer] | None = None
        self.gone = False
        self.begun = False  # its answer, a stream
        self.arriving: Arriving | None = None  # its body, if its route streams
        self.context: Context | None = None  # of its plain function, which runs in another thread, and its iterator

    @property
    def correlation(self) -> Correlation:
        """What is given to the jobs that it enqueues."""
        return correlation_of(self.requested)

    @property
    def parking(self) -> Parking | None:
        """What it waits for, or the first of several things."""
        return self.parkings[0] if self.parkings else None

    @property
    def parked(self) -> bool:
        return bool(self.parkings)

    @property
    def begun_as_stream(self) -> bool:
        return self.parking is not None and isinstance(self.parking.wait, p.Stream)

    @property
    def wait(self) -> Wait | None:
        return Wait(self.parking.wait) if self.parking is not None else None

    @property
    def messages(self) -> list[Message]:
        found = self.parking.messages if self.parking is not None else []
        return [
            Message(message.body, message.content_type, message.cursor, message.gap, message.event) for message in found
        ]

    def read(self) -> Message | None:
        messages = self.messages[self._read : self._read + 1]
        self._read += len(messages)
        return messages[0] if messages else None

    def _answer(self) -> p.Response:
        if self.begun_as_stream:
            return _STREAM
        if self.whole is None and not self.gone:
            raise AssertionError(f"still parked: {self.wait}")
        return super()._answer()


_STREAM = p.Response(
    200,
    [
        *("content-type", "text/event-stream", "incremental", "?1"),
        *("cache-control", "no-cache, no-transform", "x-accel-buffering", "no"),
    ],
    None,
)  # its head; messages have come with it as far as they have been published


class Whole(p.Response, array_like=True, frozen=True):
    """A response put together from a stream, or from rows: it may be longer than what goes into a frame."""

    def __post_init__(self) -> None:
        pass


def answer_of(
    outcome: p.Outcome, then: p.Answer, wait: p.Wait, request: Request, pending: Callable[[bytes], p.Response]
) -> p.Response:
    """What the core answers alone; `pending` makes the answer for a job that has not ended."""
    match outcome:
        case p.Completed(result=result):
            value = decode_result(result)
            made = value if isinstance(value, Made) else Made(value, 204 if value is None else 200)
            return Whole(*flat_of(made))
        case p.Pending(id=id):
            return pending(id)
        case p.NoResult(id=id, reason=reason, text=text):
            return inline(problem_response(JobError(text, reason=reason, id=text_of_id(id)), request))
        case p.Message(cursor=cursor, content_type=content_type, body=body, gap=gap, event=event):
            events = [] if event is None else ["parkade-event", event]
            gaps = ["parkade-gap", "true"] if gap else []
            return Whole(200, ["content-type", content_type, "etag", f'"{cursor}"', *_NO_STORE, *events, *gaps], body)
        case p.Held(cursor=cursor):
            history = json_encode(value_of_outcome(outcome))
            return Whole(200, ["content-type", JSON, "etag", f'"{cursor}"', *_NO_STORE], history)
        case p.Published(cursor=cursor):
            return Whole(200, ["content-type", JSON], json_encode({"cursor": cursor}))
        case p.Refused(text=text, status=status):
            return inline(problem_response(HTTPError(status, text), request))
        case p.Rows(columns=[_, *_], count=0) if shape_of(wait) != "rows":
            error = QueryError("", reason="not one", effect="completed", status=404)
            return inline(problem_response(error, request))
        case p.Rows(body=body):
            return Whole(200, ["content-type", JSON], body)
        case p.Elapsed() if then.response is not None:
            return then.response
        case p.Timeout(cursor=cursor):
            return p.Response(204, ["etag", f'"{cursor}"', *_NO_STORE], None)
        case _:
            return p.Response(503, None, None)


def answer_of_failed(failed: p.Failed, request: Request) -> p.Response:
    """What the core answers for a query that failed; the log says more, as the core's does."""
    log_fault(f"{request.method} {request.raw_path}: {failed.text}")
    return inline(problem_response(error_of(failed), request))


_NO_STORE = ("cache-control", "no-store")
