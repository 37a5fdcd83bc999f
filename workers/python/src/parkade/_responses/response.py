"""`Response`, and what else a handler may return in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from .._mappings import Headers
from .._waits.message import Message
from .._waits.wait import Wait
from ..errors import InvalidResult, WaitError
from .cookies import EPOCH, SameSite, cookie_line, is_same_cookie

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
_HTML_HEADERS = {"content-type": HTML}
BYTES = "application/octet-stream"
JSON = "application/json"


class Response:
    """An answer with its status and headers.

    `body` is anything that a handler may return: str, bytes, None, what JSON can express, an iterator of str or bytes
    (also an asynchronous one), or a wait without `.then`, whose answer gets this status (200 to 299) and these headers.
    `status` is 200 to 599; None means 200, or in an error handler the status of the error. `headers` are a mapping or
    pairs; a `content-type` there replaces the body's own.
    """

    __slots__ = ("body", "headers", "status")

    body: Any
    """Anything that a handler may return, except a wait."""
    status: int | None
    """None is 200, or in an error handler the status of the error."""
    headers: Headers
    """Those that the application sets; the core adds `date` and the length."""

    def __init__(
        self,
        body: Any = None,
        status: int | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> None:
        if status is not None and not 200 <= status <= 599:
            raise ValueError(f"a status is 200 to 599, not {status}")
        self.body = body
        self.status = None if status is None else int(status)
        self.headers = Headers(headers)

    def set_cookie(
        self,
        name: str,
        value: str = "",
        *,
        max_age: float | timedelta | None = None,
        expires: datetime | None = None,
        path: str | None = "/",
        domain: str | None = None,
        secure: bool = True,
        http_only: bool = True,
        same_site: SameSite = "lax",
        partitioned: bool = False,
    ) -> Response:
        """Sets a cookie, and returns the response itself. `value` is any text; `request.cookies` gives it back.

        By default it lasts until the browser is closed (`max_age`: seconds), is sent over HTTPS and to localhost only
        (`secure`; give `secure=False` for plain HTTP elsewhere), cannot be read by scripts (`http_only`), and is not
        sent with the forms and requests of other sites (`same_site`). A `domain` also gives it to all subdomains.
        `partitioned`: when embedded in other sites, one cookie for each of them. It replaces a cookie of this response
        that has the same name, path and domain.

        Raises `ValueError` for a cookie that browsers would drop.
        """
        line = cookie_line(
            name,
            value,
            max_age=max_age,
            expires=expires,
            path=path,
            domain=domain,
            secure=secure,
            http_only=http_only,
            same_site=same_site,
            partitioned=partitioned,
        )
        kept = [other for other in self.headers.getlist("set-cookie") if not is_same_cookie(line, other)]
        self.headers.pop("set-cookie", None)
        for other in (*kept, line):
            self.headers.add("set-cookie", other)
        return self

    def delete_cookie(
        self,
        name: str,
        *,
        path: str | None = "/",
        domain: str | None = None,
        secure: bool = True,
        partitioned: bool = False,
    ) -> Response:
        """Has the client forget a cookie. `path`, `domain`, `secure` and `partitioned` must be as it was set."""
        return self.set_cookie(
            name, max_age=0, expires=EPOCH, path=path, domain=domain, secure=secure, partitioned=partitioned
        )

    def _copied(self, status: int) -> Response:
        """A copy with another status. What was checked is not checked again."""
        copy: Response = object.__new__(type(self))
        copy.body, copy.status, copy.headers = self.body, status, self.headers._copied()
        return copy

    def __repr__(self) -> str:
        return f"Response({self.body!r}, {self.status}, {self.headers.pairs()!r})"


def html(text: str, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """Text as text/html. It is not escaped: use `html.escape` of the standard library on text that others wrote."""
    return Response(text, status, {"content-type": HTML, **headers} if headers else _HTML_HEADERS)


def normalise(result: object, status: int) -> Response | Wait:
    """A handler's result as a response or a wait; `status` is for a result that has none. Raises `InvalidResult`."""
    match result:
        case Response(body=Wait() as wait):
            return _with_headers(wait, result)
        case Response():
            # A copy: the application may return the same object again, and after hooks may change their argument.
            return result._copied(result.status or status)
        case Wait():
            return result
        case None:
            return Response(None, 204 if status == 200 else status)
        case HTTPStatus():  # also a number; any other is JSON
            return Response(None, result)
        case Message():
            event = {} if result.event is None else {"parkade-event": result.event}
            told = {"content-type": result.content_type, "etag": f'"{result.cursor}"', **event}
            return Response(result.body, status, told)
        case tuple():
            raise InvalidResult(
                f"returned a tuple: {shortened(result)}; write Response(body, status, headers), or a list for JSON"
            )
        case _:
            return Response(result, status)


def _with_headers(wait: Wait, response: Response) -> Wait:
    try:
        return wait.headers(response.headers.pairs(), status=response.status)
    except (ValueError, WaitError) as error:
        raise InvalidResult(f"returned a response whose body is a wait: {error}") from error


def shortened(value: object) -> str:
    """A value as an error message shows it: its type, and the beginning of its `repr`."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 100 else text[:100] + '…'}"
