"""A wait: one object, used in three ways. It is returned, returned with `.then`, or awaited."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .._job import Job
from .._limits import FRAME_MAX
from .._link import port
from .._link.exchange import AWAITED_ELSEWHERE
from .._mappings import Headers
from .._requests.request import Request
from .._validation.values import Conversion
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import Refused, WaitError
from .functions import Function, Place, describe
from .message import History, Message

if TYPE_CHECKING:  # only checkers know defaults before Python 3.13: `Wait` alone is `Wait[Any]`
    from typing_extensions import Self
    from typing_extensions import TypeVar as TypeVarWithDefault

    T_co = TypeVarWithDefault("T_co", covariant=True, default=Any)
else:
    T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")


@overload
def after(seconds: float) -> Wait[None]: ...
@overload
def after(seconds: float, response: T) -> Wait[T]: ...
def after(seconds: float, response: Any = None) -> Wait[Any]:
    """Waits until `seconds` have passed.

    ```python
    @app.get("/echo")
    def echo(field: str) -> Wait:
        return after(2, f"You said: {field}")
    ```

    Returned, the answer is then `response`, anything that a handler may return (204 for None); awaited, it gives that
    value.

    Raises `ValueError` for seconds that are negative or not finite.
    """
    return Wait(p.Timer(check_seconds(seconds)), response)


_NO_STATE: Mapping[str, Any] = {}


class Wait(Generic[T_co]):
    """What a request waits for, and what happens then: `await` gives a `T`, and so does the wait to the function of
    `.then`. Make it with `after`, `channel` or `query`. It is immutable.
    """

    __slots__ = ("_added", "_convert", "_function", "_made_at", "_place", "_response", "_state", "_used", "_wait")

    def __init__(
        self,
        wait: p.Wait,
        response: object = None,
        function: Function | None = None,
        state: Mapping[str, Any] | None = None,
        convert: Conversion | None = None,
    ) -> None:
        self._wait = wait
        self._response = response  # a timer's
        self._function = function
        self._state: Mapping[str, Any] = state or _NO_STATE
        self._convert = convert  # makes what awaiting gives a value of a type
        self._added: p.Added | None = None  # to the answer that the core gives alone
        self._used: bool  # set when it is returned, awaited, or another wait is made of it
        self._made_at: str  # file:line, set under `parkade dev`
        self._place: Place | None  # set by `park`

    # The function may take the request, or the job, before or after the outcome; checkers know no other places.
    @overload
    def then(
        self, function: Callable[Concatenate[T_co, P], object], /, *args: P.args, **state: P.kwargs
    ) -> Wait[Any]: ...
    @overload
    def then(
        self, function: Callable[Concatenate[T_co, Request, P], object], /, *args: P.args, **state: P.kwargs
    ) -> Wait[Any]: ...
    @overload
    def then(
        self, function: Callable[Concatenate[Request, T_co, P], object], /, *args: P.args, **state: P.kwargs
    ) -> Wait[Any]: ...
    @overload
    def then(
        self, function: Callable[Concatenate[T_co, Job, P], object], /, *args: P.args, **state: P.kwargs
    ) -> Wait[Any]: ...
    @overload
    def then(
        self, function: Callable[Concatenate[Job, T_co, P], object], /, *args: P.args, **state: P.kwargs
    ) -> Wait[Any]: ...
    @overload
    def then(self, function: Callable[P, object], /, *args: P.args, **state: P.kwargs) -> Wait[Any]: ...
    def then(self, function: Callable[..., Any], /, *args: Any, **state: Any) -> Wait[Any]:
        """Returned, this has any worker call `function` when the wait is over; what that returns is the answer.

        ```python
        @app.get("/news")
        def news() -> Wait:
            return channel("news").next(timeout=30).then(page, title="News")

        def page(message: Message | None, title: str) -> Response:
            return html(f"<h1>{title}</h1><p>{message.text if message else 'Nothing yet.'}")
        ```

        It may return another wait. It must be defined at the top of a module. Its first parameter gets the outcome
        (None for a timer; a `Message`, or None when the time is up) unless `state` names that parameter. A parameter
        annotated `Request` gets the request, without its body. When a job waited, a parameter annotated `Job`, or
        called `job` without a type of its own, gets the job. `state` is passed by name, as MessagePack, and decoded by
        the annotations. Raises `SignatureError` for a function that is nested, a lambda, or does not take this state,
        and `WaitError` for a second `.then`.

        For type checkers, the request or the job is the first or the second parameter.
        """
        if args:
            raise TypeError(f"the state of {getattr(function, '__qualname__', function)} is passed by name")
        if isinstance(self._wait, p.Stream):
            raise WaitError("a stream of messages goes straight to the client: it has no .then")
        if isinstance(self._wait, p.File | p.Files):
            raise WaitError("a file goes straight to the client: it has no .then")
        if isinstance(self._wait, p.Socket):
            raise WaitError("a WebSocket has no .then: on_message is called for what its client says")
        if self._added is not None:
            raise WaitError(_THEN_ADDED)
        if self._function is not None:
            raise WaitError(_THEN_TWICE)
        self._used = True
        return type(self)(self._wait, self._response, describe(function, frozenset(state)), state)

    def headers(
        self, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), *, status: int | None = None
    ) -> Self:
        """The same wait, with these headers on the answer that the server gives when it is over: for a wait that is
        returned, or is a route itself. `status` (200 to 299) takes the place of 200.

        A header takes the place of the server's own of that name. On an answer that is an error, headers about the
        content (`cache-control`, `etag`, `content-type` and so on) are left out. `Response(wait, status, headers)` says
        the same, and sets cookies.

        Raises `WaitError` with `.then`, `ValueError` for headers and a status that cannot be sent.
        """
        if self._function is not None:
            raise WaitError(_THEN_ADDED)
        made = copy(self)
        made._added = added_to(self._wait, self._added, Headers(headers), status)
        self._used = True
        return made

    def __await__(self) -> Generator[Any, None, T_co]:
        return self._outcome().__await__()

    async def _outcome(self) -> Any:
        self._used = True
        if isinstance(self._wait, p.Socket):
            raise WaitError("a WebSocket of a channel is returned, not awaited")
        if self._function is not None:
            raise WaitError("a wait with .then is returned, not awaited")
        if self._added is not None:
            raise WaitError("a wait with headers is returned, not awaited")
        if isinstance(self._wait, p.Stream):
            raise WaitError("a stream is returned, not awaited: await channel(name).next(since=cursor) repeatedly")
        if isinstance(self._wait, p.File | p.Files):
            raise WaitError("a file is returned, not awaited")
        exchange = port.exchange.get()
        if exchange is None:
            raise WaitError(AWAITED_ELSEWHERE)
        outcome = await exchange.wait(encode_park(self._wait, AWAIT))
        if isinstance(outcome, p.Elapsed):
            return self._response
        value = self._value(outcome)
        return value if self._convert is None else self._convert(value)

    def _value(self, outcome: p.Outcome) -> Any:
        """What awaiting gives. Queries and results of jobs have outcomes of their own."""
        return value_of_outcome(outcome)

    def __repr__(self) -> str:
        then = f".then({self._function.name})" if self._function is not None else ""
        return f"<Wait {self._wait}{then}>"


_THEN_ADDED = "after .then the function gives the answer: set its status and headers there"
_THEN_TWICE = "a wait has one .then: its function may return another wait, or call the next function itself"
_OF_THE_SERVER = ("content-length", "connection", "keep-alive", "transfer-encoding", "upgrade")
_OF_FILES = ("accept-ranges", "content-range", "etag", "last-modified")

AWAIT = p.Await()


def added_to(wait: p.Wait, known: p.Added | None, headers: Headers, status: int | None = None) -> p.Added:
    """What is added to the answer of a wait, with these headers in the place of those that are known.

    Raises `ValueError` for headers and a status that cannot be sent.
    """
    if status is not None and not 200 <= status <= 299:
        raise ValueError(f"the status of an answer after a wait is 200 to 299, not {status}")
    known = known or p.Added(None, None)
    merged = Headers._of_request(known.headers or [])
    for name in headers:
        if name != "set-cookie":
            merged.pop(name, None)
    for name, value in headers.pairs():
        merged.add(name, value)
    reserved = (*_OF_THE_SERVER, *_OF_FILES) if isinstance(wait, p.File | p.Files) else _OF_THE_SERVER
    if (unsendable := next((name for name in reserved if name in merged), None)) is not None:
        raise ValueError(f"{unsendable} is set by the server alone")
    return p.Added(known.status if status is None else int(status), merged._flat())


def encode_park(wait: p.Wait, then: object) -> bytes:
    """An encoded PARK. Raises `ValueError` for a query that is too long for a frame."""
    encoded = encode_payload((wait, then))
    if len(encoded) > FRAME_MAX:
        raise ValueError(f"a query has at most {FRAME_MAX} bytes with its parameters, not {len(encoded)}")
    return encoded


def value_of_outcome(outcome: p.Outcome) -> Any:
    """The value of a wait that is over: a `Message`, a `History`, the cursor of a message that was published; None for
    a timer, and when the time is up.

    Raises `Refused` for a wait that the core did not accept.
    """
    match outcome:
        case p.Message(cursor=cursor, content_type=content_type, body=body, gap=gap, event=event):
            return Message(body, content_type, cursor, gap, event)
        case p.Held(cursor=cursor, messages=messages):
            return History(
                (Message(held.body, held.content_type, held.cursor, False, held.event) for held in messages), cursor
            )
        case p.Published(cursor=cursor):
            return cursor
        case p.Refused(text=text, status=status):
            raise Refused(text, status)
        case _:
            return None


def check_seconds(seconds: float) -> float:
    """Returns the seconds unchanged. Raises `ValueError` when they are negative or not finite."""
    if not (isinstance(seconds, (int, float)) and 0 <= seconds <= 1e15):  # neither infinity nor NaN passes
        raise ValueError(f"seconds must be a finite number, 0 or more, not {seconds!r}")
    return seconds
