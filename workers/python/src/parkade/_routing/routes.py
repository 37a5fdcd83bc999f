"""A route: what the application registered, and what READY says of it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import Raw

from .._cors import Cors
from .._hooks import Hooks, is_asynchronous
from .._limits import HEADERS_MAX, PATH_MAX
from .._mappings import Headers
from .._origin import handler_of, source_of
from .._requests.request import Request
from .._responses.encoding import SHORT_TEXT, TEXT_HEAD, check_content, encode_kept, encode_string, inline
from .._responses.response import Response, normalise
from .._sql.outcomes import shape_of
from .._sql.transactions import Statement
from .._validation.returned import check_returned
from .._waits.files import NO_FILE
from .._waits.functions import encode_state
from .._waits.groups import Group, answered
from .._waits.wait import Wait, encode_park
from .._wire import payloads as p
from .._wire.codec import encode_payload
from .._wire.ready import Route as ReadyRoute
from ..errors import HTTPError, InvalidResult, SignatureError
from .parameters import Call, bind
from .patterns import Pattern, join, parse
from .streaming import Streaming


@dataclass(frozen=True, slots=True)
class About:
    """What is only told to people. For the description of the application: the router's name, further responses by
    status (a text, or the type of the body), and whether the route is left out. And the line that registered it.
    """

    tag: str | None = None
    responses: Mapping[int, Any] = field(default_factory=dict)
    hidden: bool = False
    line: str | None = None


_NOTHING_MORE = About()


@dataclass(frozen=True, slots=True)
class Route:
    """`target` is a function, a wait, or a constant; `call` is the function, bound to its parameters (None for the
    others). `scopes` are the hooks around it: those of its router first, then those of the routers that this one is in.
    `streaming` says that it reads bodies while they arrive.
    """

    methods: tuple[str, ...]
    pattern: Pattern
    target: Any
    deadline: float | None
    name: str
    call: Call | None
    scopes: tuple[Hooks, ...] = ()
    about: About = _NOTHING_MORE
    own_cors: Cors | bool | None = None
    streaming: Streaming | None = None
    is_socket: bool = False
    """Its target is a coroutine for a WebSocket, or a function that leaves it to the core."""

    @property
    def asynchronous(self) -> bool:
        """Whether the target is a coroutine function or an asynchronous generator."""
        return self.call is not None and is_asynchronous(self.target)

    def request(self, raw: p.Request) -> Request:
        """The request as this route's handler sees it."""
        return Request(raw, self.name, self.pattern.names, self.streaming is not None)

    def included(self, prefix: str, name: str | None, scope: Hooks) -> Route:
        """The same route under a prefix of another router, whose hooks are around it too.

        Its handler may take the parameters of the prefix, and need not. Raises as `make_route`.
        """
        pattern = parse(join(prefix, self.pattern.path))
        full_name = self.name if name is None else f"{name}.{self.name}"
        if self.name == self.pattern.path:  # it has no name of its own
            full_name = pattern.path
        takes_socket = self.is_socket and self.asynchronous
        call = self.call and _bound(self.target, pattern, full_name, pattern.names, self.streaming, takes_socket)
        return replace(self, pattern=pattern, name=full_name, call=call, scopes=(*self.scopes, scope))

    def _wait(self, path: str | None) -> Wait:
        """The wait that is its target. `path`: that of a request which a worker answers, for the files of a folder, as
        sent: the core decodes it.
        """
        if not isinstance(self.target._wait, p.Files):
            return cast(Wait, self.target)
        last = self.pattern.segments[-1]
        depth = len(self.pattern.segments) - (last == "" or self.pattern.ends_with_rest)
        made = copy(self.target)
        options = msgspec.structs.replace(made._wait.options, depth=depth)
        made._wait = msgspec.structs.replace(made._wait, path=path, options=options)
        return cast(Wait, made)

    def answer_of_target(self, raw: p.Request) -> Wait:
        """The wait for a request that a worker answers, because hooks are around it. Raises `HTTPError`: 404 for a path
        that is too long for a wait, and so for any file.
        """
        path = self.request(raw).raw_path
        if len(path) > PATH_MAX:
            raise HTTPError(404, NO_FILE)
        return self._wait(path)

    @property
    def cors(self) -> Cors | None:
        """Its policy for other origins: its own, or that of the nearest router that has one."""
        said = (self.own_cors, *(scope.cors for scope in self.scopes))
        nearest = next((one for one in said if one is not None), None)
        return nearest if isinstance(nearest, Cors) else None

    @property
    def is_hooked(self) -> bool:
        """Whether a hook runs before or after it."""
        return any(scope.before or scope.after for scope in self.scopes)

    def ready(self, in_worker: bool = False) -> ReadyRoute:
        """For READY.

        The core itself answers a constant or a wait, unless hooks run around it or it has to be `in_worker`.
        """
        plain = ReadyRoute(
            methods=list(self.methods),
            path=self.pattern.path,
            kind="async" if self.asynchronous else "sync",
            deadline=self.deadline,
            stream=self.streaming is not None,
            body_limit=None if self.streaming is None else self.streaming.limit,
            websocket=self.is_socket,
            name=None if self.name == self.pattern.path else self.name,
            handler=None if self.call is None else handler_of(self.target),
            source=self.about.line if self.call is None else source_of(self.target),
        )
        if self.call is not None or in_worker or self.is_hooked or isinstance(self.target, Group):
            return plain
        if isinstance(self.target, Wait):
            wait = msgspec.to_builtins(self._wait(None)._wait, builtin_types=(bytes,))
            return msgspec.structs.replace(plain, kind="wait", deadline=None, wait=wait, then=_then(self.target))
        try:
            answer = inline(_response(self.target))
        except InvalidResult:  # too long for the core to keep: a worker gives it
            return plain
        return msgspec.structs.replace(plain, kind="constant", deadline=None, answer=answer)


def make_route(
    methods: tuple[str, ...],
    pattern: Pattern,
    target: Any,
    deadline: float | None,
    name: str | None,
    scope: Hooks,
    optional: Collection[str] = (),
    about: About = _NOTHING_MORE,
    cors: Cors | bool | None = None,
    streaming: Streaming | None = None,
) -> Route:
    """Checks and compiles. A handler need not take the parameters of the path that are `optional`.

    Raises `SignatureError` for a handler that cannot be bound, `InvalidResult` for a constant that is not an answer.
    """
    if not is_handler(target):
        if streaming is not None:
            raise SignatureError(f"{pattern.path}: stream=True is for a function, which reads the body")
        if type(target) is int and 100 <= target <= 599:
            raise SignatureError(
                f"{pattern.path}: a number is JSON; write Status({target}) for the status, "
                f"Response({target}) for the JSON"
            )
        made = target if isinstance(target, Wait) else normalise(target, 200)
        if isinstance(made, Wait):
            park(made, None)  # refuses an answer that the core cannot keep, now rather than at the first request
        elif not isinstance(made.body, Iterator | AsyncIterator):
            check_content(made.body)
        return Route(methods, pattern, made, deadline, name or pattern.path, None, (scope,), about, cors)
    try:
        inspect.signature(target)
    except ValueError:
        raise SignatureError(
            f"{pattern.path}: the parameters of {handler_of(target)} cannot be read; write a function that calls it"
        ) from None
    check_returned(target)
    name = name or str(getattr(target, "__name__", pattern.path))
    call = _bound(target, pattern, name, optional, streaming)
    return Route(methods, pattern, target, deadline, name, call, (scope,), about, cors, streaming)


def make_socket_route(
    pattern: Pattern,
    handler: Callable[..., Any],
    deadline: float | None,
    name: str | None,
    scope: Hooks,
    optional: Collection[str],
    about: About,
) -> Route:
    """The same for the handler of a WebSocket: a coroutine that has it, or a function that leaves it to the core."""
    name = name or str(getattr(handler, "__name__", pattern.path))
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        raise SignatureError(f"{pattern.path}: {name} has a WebSocket: write socket.send(…) instead of yield")
    is_coroutine = is_asynchronous(handler)
    if not is_coroutine and "socket" in inspect.signature(handler).parameters:
        raise SignatureError(
            f"{pattern.path}: {name} waits for messages, so it is a coroutine: write `async def {name}(socket)`; or "
            "take no socket, and return channel(…).socket(on_message=…)"
        )
    call = _bound(handler, pattern, name, optional, is_socket=is_coroutine)
    return Route(("GET",), pattern, handler, deadline, name, call, (scope,), about, is_socket=True)


def _bound(
    handler: Callable[..., Any],
    pattern: Pattern,
    name: str,
    optional: Collection[str],
    streaming: Streaming | None = None,
    is_socket: bool = False,
) -> Call:
    make = partial(Request, route=name, names=pattern.names, streams=streaming is not None)
    return bind(handler, pattern.names, pattern.types, make, optional, streaming is not None, is_socket)


def park(wait: Wait, request: p.Request | None) -> bytes:
    """A PARK, encoded.

    `request` goes along with a function that wants it. Raises `InvalidResult` for an answer that the core cannot keep.
    """
    wait._used = True
    wait = answered(wait)
    if isinstance(wait, Statement):
        raise InvalidResult("returned a query of a transaction, which ends with its block: await it there")
    if wait._function is not None:
        name = wait._function.name
        place = getattr(wait, "_place", None)
        state = encode_state(name, wait._state, request, shape_of(wait._wait), added=wait._added, place=place)
        return encode_park(wait._wait, ("call", name, state, wait._function.kind))
    added = wait._added
    if type(wait._wait) is not p.Timer:
        return encode_park(wait._wait, _ANSWER_OUTCOME if added is None else ("answer", None, _sendable(added)))
    response = wait._response
    if added is None and type(response) is str and len(response) <= SHORT_TEXT:
        encoded = TEXT_HEAD + encode_string(response)
    else:
        encoded = encode_kept(response_of_timer(wait))
    return encode_payload((wait._wait, ("answer", Raw(encoded))))


def response_of_timer(wait: Wait) -> Response:
    """The answer when the timer is over. Raises `InvalidResult`."""
    response = _response(wait._response)
    if wait._added is not None:
        given = Headers._of_request(wait._added.headers or [])
        for name in given:
            if name != "set-cookie":
                response.headers.pop(name, None)
        for name, value in given.pairs():
            response.headers.add(name, value)
        if response.status == 200:
            response.status = wait._added.status or 200
    return response


def _sendable(added: p.Added) -> p.Added:
    if sum(map(len, added.headers or ())) > HEADERS_MAX:
        raise InvalidResult(f"returned a wait with headers of more than {HEADERS_MAX} characters")
    return added


def _then(wait: Wait) -> p.Answer | p.Call:
    """What the core does after the wait of a route."""
    if wait._function is not None:
        state = encode_state(wait._function.name, wait._state, None, shape_of(wait._wait))
        return p.Call(wait._function.name, state, wait._function.kind)
    if isinstance(wait._wait, p.Timer):
        return p.Answer(inline(response_of_timer(wait)))
    return p.Answer(None, None if wait._added is None else _sendable(wait._added))


_ANSWER_OUTCOME = ("answer", None)


def is_handler(target: Any) -> bool:
    """Whether it is a function, or an object that can be called like one, rather than a wait or a response."""
    return callable(target) and not isinstance(target, Wait | Response)


def _response(value: object) -> Response:
    made = normalise(value, 200)
    if isinstance(made, Wait):
        raise InvalidResult("a wait cannot have another wait as its answer: use .then, and return it there")
    return made
