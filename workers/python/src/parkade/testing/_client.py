"""`Client`: what a test does with an application."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, overload

from .._app import App
from .._link import port
from .._waits.channel import channel
from ._cookies import Cookies
from ._core import Core
from ._databases import Answers
from ._jobs import Enqueued
from ._multipart import Files
from ._request import Content, body_of, request_of
from ._response import Parked, Response
from ._rows import Asked

if TYPE_CHECKING:  # Python has it from 3.11 on
    from typing_extensions import Unpack


class RequestOptions(TypedDict, total=False):
    """What `Client.get` and the others take besides the path: see `Client.request`."""

    params: Mapping[str, Any] | Iterable[tuple[str, Any]] | None
    headers: Mapping[str, str] | None
    json: Any
    data: Mapping[str, Any] | None
    content: Content
    files: Files | None
    client: str


class Client:
    """Sends requests to an application.

    With `with`, the start-up and shut-down hooks run and the test itself may publish.

    An application with coroutines runs in an event loop of the client's own; in a test that is itself a coroutine, that
    loop runs in another thread, and the test waits for it without `await`. Its plain functions run in another thread,
    as they do in a worker.

    `headers` go with every request. `cookies` holds what the application has set, and is sent back.
    """

    def __init__(self, app: App, headers: Mapping[str, str] | None = None) -> None:
        self._core = Core(app)
        self._headers = dict(headers or {})
        self._cookies = Cookies(lambda: self._core.waits.now)
        self._unread: list[tuple[str, Response]] = []  # whose cookies are still to be taken, with their paths
        self._outside: port.Port | None = None

    # Requests

    def get(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`. The answer has no body."""
        return self.request("HEAD", path, **options)

    def options(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("OPTIONS", path, **options)

    def post(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("PATCH", path, **options)

    def query(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("QUERY", path, **options)

    def delete(self, path: str, **options: Unpack[RequestOptions]) -> Response:
        """As `request`."""
        return self.request("DELETE", path, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: Mapping[str, Any] | None = None,
        content: Content = None,
        files: Files | None = None,
        client: str = "127.0.0.1",
    ) -> Response:
        """Sends a request; gives its answer, or a `Parked` for one that waits.

        `params` are added to the query (a list is a repeated field); the body is `json`, `data` (a form), `content`, or
        `files`, with `data` as the other fields of that form: `files={"photo": open("a.png", "rb")}`, or `("a.png",
        b"…")`, or `("a.png", b"…", "image/png")`. A `cookie` among the headers takes the place of `cookies`.

        `content` may be an iterable of pieces: a route with `stream=True` gets one after the other. Where the iterable
        raises `IncompleteBody`, the client leaves.
        """
        given = {name.lower(): value for name, value in (self._headers | dict(headers or {})).items()}
        plain_path = path.partition("?")[0]
        if held := self.cookies._header(plain_path):
            given.setdefault("cookie", held)
        body, content_type = body_of(json, data, content, files)
        head, raw = request_of(method, path, params, given, content_type, client)
        with self._core.connected():
            response = self._core.route(head, raw, body)
            response.is_head = head.method == "HEAD"
            response.request_id = head.id
            self._core.waits.settle()
        self._unread.append((plain_path, response))
        return response

    @property
    def cookies(self) -> Cookies:
        """The cookies that are held: what the application has set, and what the test sets here."""
        unread = self._unread
        self._unread = [(path, one) for path, one in unread if one.parked and not one.begun_as_stream]
        for path, response in unread:
            if response.done or response.begun_as_stream:
                self._cookies._take(path, response.headers.getlist("set-cookie"))
        return self._cookies

    # Databases

    @overload
    def database(self, answers: None = None, *, name: str = ...) -> sqlite3.Connection: ...
    @overload
    def database(self, answers: Answers, *, name: str = ...) -> None: ...
    def database(self, answers: Answers | None = None, *, name: str = "default") -> sqlite3.Connection | None:
        """Says what answers the queries of the application.

        Without `answers` it is SQLite in memory; this gives its connection, so that the test can create tables. The
        database `default` is that from the beginning. It takes `$1` and SQLite's SQL, not PostgreSQL's (`$1::int`,
        arrays, `now()`); columns have the types that their tables declare. There is one connection, so there is one
        transaction at a time, and all queries see what it has not committed.

        `answers` is a function that gets an `Asked`, or a mapping by the text of the statements. What it gives: rows
        (dicts), one row, a number of changed rows (None for 0) or a `QueryError`, which it may also raise; or
        `after(seconds, one of these)` for a query that takes some time on the client's clock. `begin`, `commit` and
        `rollback` are asked too; of their answers only a `QueryError` counts.
        """
        if answers is None:
            return self._core.databases.memory(name)
        self._core.databases.answer(name, answers)
        return None

    @property
    def queries(self) -> list[Asked]:
        """The statements that databases were asked so far, including `begin`, `commit` and `rollback`."""
        return list(self._core.databases.asked)

    # Jobs

    @property
    def jobs(self) -> list[Enqueued]:
        """The jobs that were enqueued so far."""
        return list(self._core.jobs.all)

    def run_jobs(self) -> None:
        """Runs the jobs that were enqueued, in that order, and those that they enqueue: at once, also those that are
        scheduled for later, and those that are retried. A job that waits is still `running` then; `advance` goes on
        with it.
        """
        with self._core.connected():
            self._core.run_jobs()

    # Meanwhile

    def advance(self, seconds: float) -> None:
        """Moves the clock: timers and timeouts that are due end, in their order."""
        with self._core.connected():
            self._core.waits.advance(seconds)

    def publish(self, name: str, value: object, content_type: str | None = None, *, event: str | None = None) -> None:
        """Publishes as `channel(name).publish` does, and wakes the requests that wait for it."""
        with self._core.connected():
            channel(name).publish(value, content_type, event=event)
            self._core.waits.settle()

    def leave(self, response: Response) -> None:
        """The client of a parked request goes away; a coroutine that waits is cancelled."""
        if not isinstance(response, Parked) or response.parking is None:
            raise AssertionError("leave takes a request that is parked, and this one is not")
        self._core.cancel(response, "client_left")

    @property
    def parked(self) -> int:
        """How many requests are parked."""
        return len(self._core.waits.parked)

    def __enter__(self) -> Client:
        self._outside = port.connect(self._core.port())
        self._core.worker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._core.worker.stop()
        finally:
            port.connect(self._outside)
