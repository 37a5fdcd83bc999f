"""The request as a handler sees it. Each part is decoded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

import msgspec

from .._link import port
from .._mappings import Fields, Headers
from .._validation.json import decoder_of
from .._wire import payloads as p
from ..errors import BodyError, HTTPError
from .body_stream import BodyStream, WholeBody
from .charsets import decode_text
from .cookies import parse_cookies
from .forms import FormValue, parse_content_type, parse_form, parse_query
from .percent import percent_decode_text

T = TypeVar("T")

_NO_BODY = b""


class once(Generic[T]):
    """A property that is computed at its first use.

    `functools.cached_property` takes a lock for that, before Python 3.12.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | once[T]:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


class Request:
    """One HTTP request.

    `method` is upper case; `path` decoded, `raw_path` as sent; `client` the client's address, empty for a Unix socket;
    `id` is also in the log and in the response; `scheme` `http` or `https`; `http_version` `1.0`, `1.1` or `2`;
    `deadline` the seconds that were left when the request arrived, or None; `route` the name of its route, or None;
    `parameters` the path parameters as text; `state` is for hooks that pass values to the handler.
    """

    route: str | None
    """The name of its route; None if it has none."""

    def __init__(
        self, raw: p.Request, route: str | None = None, names: tuple[str, ...] = (), streams: bool = False
    ) -> None:
        self._raw = raw
        self.route = route
        self._names = names
        self._streams = streams
        self._stream: BodyStream | None = None

    @once
    def _head(self) -> p.RequestHead:
        return p.read_head(self._raw.head)

    @property
    def method(self) -> str:
        """In upper case."""
        return self._head.method

    @property
    def id(self) -> str:
        """What the log and the response (`X-Request-Id`) call this request: the `X-Request-Id` of a trusted proxy, the
        id of its trace (`traceparent`), or an id that the server makes.
        """
        return self._head.id

    @property
    def raw_path(self) -> str:
        """As it was sent, percent-encoded."""
        return self._head.path

    @property
    def query_string(self) -> str:
        """What follows `?`, as it was sent."""
        return self._head.query

    @property
    def client(self) -> str:
        """The client's address; empty for a Unix socket."""
        return self._head.client

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._head.scheme

    @property
    def http_version(self) -> str:
        """`1.0`, `1.1` or `2`."""
        return self._head.version

    @property
    def deadline(self) -> float | None:
        """The seconds that were left when the request came; None without a deadline."""
        return self._raw.deadline

    @once
    def parameters(self) -> Mapping[str, str]:
        """The path parameters by name."""
        return dict(zip(self._names, self._raw.parameters, strict=False))

    @once
    def state(self) -> dict[str, Any]:
        """Empty at first."""
        return {}

    @once
    def path(self) -> str:
        """Percent-decoded; bytes that are not UTF-8 become U+FFFD."""
        return percent_decode_text(self.raw_path)

    @once
    def headers(self) -> Headers:
        """Case does not matter; `getlist` has every value."""
        return Headers._of_request(p.read_headers(self._head.headers))

    @once
    def query(self) -> Fields[str]:
        """The fields after `?`."""
        return Fields(parse_query(self.query_string))

    @once
    def cookies(self) -> Mapping[str, str]:
        """Name to value; malformed cookies are left out (RFC 6265, section 5.4)."""
        return parse_cookies(self.headers.getlist("cookie"))

    @property
    def body(self) -> bytes:
        """The whole body. Raises `BodyError` if its route has `stream=True`."""
        if self._streams:
            raise BodyError(f"{self._told} has stream=True: its body is read with request.stream()")
        return self._raw.body or _NO_BODY

    def stream(self) -> BodyStream:
        """The body as it arrives, for a route with `stream=True`: pieces for `async for` in a coroutine, a binary file
        in a plain function. It is the same one each time.

        Raises `BodyError` if its route has not.
        """
        if not self._streams:
            raise BodyError(f"{self._told} has its whole body, in request.body: register it with stream=True")
        if self._stream is None:
            whole = self._raw.body
            self._stream = BodyStream(port.port().body() if whole is None else WholeBody(whole))
        return self._stream

    @property
    def _told(self) -> str:
        return f"the route of {self.method} {self.raw_path}"

    @once
    def text(self) -> str:
        """The body as text, in the charset of its content type, otherwise UTF-8.

        Raises `HTTPError`: 415 for a charset other than UTF-8, US-ASCII, ISO-8859-1, Windows-1252 and UTF-16, 400 when
        the body is not text in its charset.
        """
        content_type = self.content_type
        if ";" not in content_type:
            return decode_text(self.body, "utf-8")
        _, parameters = parse_content_type(content_type)
        return decode_text(self.body, parameters.get("charset") or "utf-8")

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, type: type[T]) -> T: ...
    def json(self, type: Any = Any) -> Any:
        """The body decoded from JSON, as `type` if given (a dataclass, `msgspec.Struct`, …).

        Raises `HTTPError`: 400 not JSON or deeper than 200, 422 not of that type.
        """
        try:
            return decoder_of(type)(self.body)
        except msgspec.ValidationError as error:
            raise HTTPError(422, str(error)) from error

    @once
    def form(self) -> Fields[FormValue]:
        """The fields of a form, text or `Upload`.

        Raises `HTTPError`: 415 when the body is not a form, 413 when it is too long, 400 when it is malformed.
        """
        return parse_form(self.content_type, self.body)

    @property
    def content_type(self) -> str:
        """The header's value, or empty."""
        return self.headers._first("content-type")

    @once
    def cursor(self) -> str | None:
        """Where the client's copy of a channel ends: its `Last-Event-ID`, else its `If-None-Match`; None without
        either.

        The core interprets it: the newest of several ETags counts, and an invalid one is a gap.
        """
        told = self.headers.get("last-event-id")
        told = (self.headers.get("if-none-match", "") if told is None else told).strip()
        if "," not in told:
            told = told.removeprefix("W/").strip('"')
        return told if told not in ("", "*") else None

    @property
    def accepts_json(self) -> bool:
        """Whether the client asks for JSON by name."""
        return "json" in self.headers.get("accept", "")

    def _carried(self) -> p.Request:
        """The request for the function after a wait: everything except the body."""
        return msgspec.structs.replace(self._raw, deadline=None, body=b"")

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.raw_path}>"
