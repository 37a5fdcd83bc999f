"""What handlers may return, hooks, error handlers, and what the core is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial, wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest

from parkade import App, HTTPError, Request, Response, SignatureError, Status, after, channel, html
from parkade._origin import source_of
from parkade._responses.problems import preferred
from parkade.testing import Client

TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
FAILED = (
    b'{"title":"Internal Server Error","status":500,"detail":"the application failed; its log says why",'
    b'"fault":"application"}'
)
JSON = "application/json"
PROBLEM = "application/problem+json"


@dataclass
class Point:
    x: int


class Circle(msgspec.Struct):
    r: float


def pieces() -> Iterator[str]:
    yield "a"
    yield "ü"


class Numbers:
    def __init__(self) -> None:
        self.left = [b"1", b"2"]

    def __iter__(self) -> Numbers:
        return self

    def __next__(self) -> bytes:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)


def answered(handler: Callable[..., Any], **request: Any) -> tuple[int, str | None, bytes]:
    app = App()
    app.get("/", handler)
    response = Client(app).get("/", **request)
    return response.status, response.headers.get("content-type"), response.body


@pytest.mark.parametrize(
    ("result", "status", "content_type", "body"),
    [
        ("ü", 200, TEXT, "ü".encode()),
        ("", 200, TEXT, b""),
        ("x" * 20_000, 200, TEXT, b"x" * 20_000),
        ("ü" * 100_000, 200, TEXT, ("ü" * 100_000).encode()),
        (b"\xff", 200, "application/octet-stream", b"\xff"),
        (bytearray(b"a"), 200, "application/octet-stream", b"a"),
        (html("<p>"), 200, "text/html; charset=utf-8", b"<p>"),
        ({"a": 1}, 200, JSON, b'{"a":1}'),
        ([1, None], 200, JSON, b"[1,null]"),
        (1.5, 200, JSON, b"1.5"),
        (True, 200, JSON, b"true"),
        (Point(1), 200, JSON, b'{"x":1}'),
        (Circle(1), 200, JSON, b'{"r":1}'),
        (date(2024, 5, 6), 200, JSON, b'"2024-05-06"'),
        (None, 204, None, b""),
        (Status(202), 202, None, b""),
        (202, 200, JSON, b"202"),
        (HTTPStatus.CREATED, 201, None, b""),
        (Response("x", 201, {"X-A": "b"}), 201, TEXT, b"x"),
        (Response({"a": 1}), 200, JSON, b'{"a":1}'),
        (Response("<a/>", headers={"Content-Type": "text/xml"}), 200, "text/xml", b"<a/>"),
    ],
)
def test_a_result_becomes_an_answer(result: object, status: int, content_type: str | None, body: bytes) -> None:
    assert answered(lambda: result) == (status, content_type, body)


@pytest.mark.parametrize(
    ("make", "content_type", "body"),
    [
        (pieces, TEXT, "aü".encode()),
        (Numbers, "application/octet-stream", b"12"),
        (lambda: iter(()), TEXT, b""),
        (lambda: Response(pieces(), headers={"content-type": "text/csv"}), "text/csv", "aü".encode()),
    ],
)
def test_an_iterator_is_streamed(make: Callable[[], Any], content_type: str, body: bytes) -> None:
    assert answered(lambda: make()) == (200, content_type, body)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (("x", 404), "a tuple"),
        (object(), "returned object"),
        (print, "returned builtin_function_or_method"),
        ({1: object()}, "may be str, bytes"),
        ({"wait": after(1)}, "Wait"),
        (Response("x", headers={"x": "y" * 70_000}), "headers of more than"),
    ],
)
def test_nonsense_is_500_and_the_log_says_what_it_was(
    result: object, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answered(lambda: result)[0] == 500
    assert said in capsys.readouterr().err


def test_an_exception_is_500_and_tells_the_client_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def handler() -> None:
        raise ValueError("secret")

    def leaving() -> None:
        raise SystemExit("secret")

    for broken in (handler, leaving):
        assert answered(broken) == (500, PROBLEM, FAILED)
        assert answered(broken, headers={"accept": "text/plain"})[:2] == (500, TEXT)
    assert "ValueError: secret" in capsys.readouterr().err


def test_an_http_error_is_told_as_the_client_likes_it() -> None:
    def handler() -> None:
        raise HTTPError(409, "taken <b>", {"x-why": "a"})

    told = b'{"title":"Conflict","status":409,"detail":"taken <b>","fault":"client"}'
    assert answered(handler) == (409, PROBLEM, told)
    assert answered(handler, headers={"accept": "application/json, text/plain, */*"}) == (409, PROBLEM, told)
    text = answered(handler, headers={"accept": "text/plain"})
    assert text == (409, TEXT, b"409 Conflict\ntaken <b>\n")
    status, kind, page = answered(handler, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (status, kind) == (409, "text/html; charset=utf-8")
    assert b"<h1>Conflict</h1>" in page
    assert b"taken &lt;b&gt;" in page


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PROBLEM),
        ("*/*", PROBLEM),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        ("application/json, text/plain, */*", PROBLEM),
        ("text/html, application/json", PROBLEM),
        ("text/html, text/plain, */*;q=0.01", HTML),
        ("text/*", TEXT),
        ("TEXT/HTML ; Q=0.5", HTML),
        ("text/html;q=0.5, application/*;q=0.6", PROBLEM),
        ("text/html;q=0, text/plain;q=0.1", TEXT),
        ("text/html;q=0", PROBLEM),
        ("image/png", PROBLEM),
        ("text/html;q=nonsense", HTML),
        ("text/plain;q=0.1, text/html", HTML),
    ],
)
def test_an_error_has_the_form_that_the_client_prefers(accept: str, form: str) -> None:
    assert preferred(accept) == form


def test_a_path_that_is_nowhere_is_404_and_a_wrong_method_405() -> None:
    app = App()
    app.get("/a", lambda: "a")
    client = Client(app)
    assert client.get("/b").status == 404
    response = client.post("/a")
    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")


def test_a_line_break_in_a_header_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        Response("x", headers={"location": "/a\r\nset-cookie: b"})


# Error handlers


class Missing(Exception): ...


class Special(Missing): ...


def failing() -> App:
    app = App()
    app.get("/missing", lambda: (_ for _ in ()).throw(Special("x")))
    app.get("/other", lambda: 1 / 0)
    app.get("/teapot", lambda: (_ for _ in ()).throw(HTTPError(418)))
    app.get("/raise/{kind}", raising)
    return app


def raising(kind: str) -> None:
    raise {"special": Special("x"), "zero": ZeroDivisionError(), "teapot": HTTPError(418)}[kind]


def test_an_error_handler_answers_with_the_errors_status() -> None:
    app = failing()

    @app.error(404)
    def not_found(request: Request) -> Response:
        return html(f"<p>{request.path}")

    @app.error(Missing)
    def missing(error: Missing) -> dict[str, str]:
        return {"missing": str(error)}

    @app.error(500)
    def broken(request: Request, error: Exception) -> Response:
        return Response(f"{request.path} {type(error).__name__}", 503)

    @app.error(418)
    def teapot() -> str:
        return "tea"

    client = Client(app)
    found = [
        (response.status, response.text)
        for response in map(client.get, ("/no", "/raise/special", "/raise/zero", "/raise/teapot"))
    ]
    assert found == [(404, "<p>/no"), (500, '{"missing":"x"}'), (503, "/raise/zero ZeroDivisionError"), (418, "tea")]
    assert app._ready().fallback


def test_a_handler_for_another_status_leaves_404_to_the_core() -> None:
    app = failing()
    app.error(500)(lambda: "x")
    assert not app._ready().fallback


def test_a_handler_for_every_exception_leaves_http_errors_alone() -> None:
    app = failing()
    app.error(Exception)(lambda error: "caught")
    client = Client(app)
    assert [client.get(f"/raise/{kind}").status for kind in ("zero", "teapot")] == [500, 418]
    assert client.get("/raise/zero").text == "caught"


def test_an_error_handler_that_raises_is_a_plain_500(capsys: pytest.CaptureFixture[str]) -> None:
    app = failing()

    @app.error(Missing)
    def missing() -> None:
        raise RuntimeError("again")

    assert Client(app).get("/raise/special").status == 500
    assert "again" in capsys.readouterr().err


TRACEBACK = "ERROR: GET /other: ZeroDivisionError: division by zero\nTraceback"


@pytest.mark.parametrize(
    ("key", "logged"),
    [(ZeroDivisionError, ""), (ArithmeticError, ""), (KeyError, TRACEBACK), (Exception, TRACEBACK), (500, TRACEBACK)],
)
def test_only_what_nobody_expected_is_in_the_log(
    key: int | type[Exception], logged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = failing()
    app.error(key)(lambda error: "caught")
    assert Client(app).get("/other").status == 500
    errors = capsys.readouterr().err
    assert errors.startswith(logged)
    assert bool(errors) is bool(logged)


# Hooks


def test_hooks_run_around_every_handler() -> None:
    app = App()

    @app.before
    def who(request: Request) -> object:
        request.state["who"] = request.headers.get("x-who")
        return None if request.state["who"] else HTTPStatus.UNAUTHORIZED

    @app.after
    def mark(request: Request, response: Response) -> None:
        response.headers["x-seen"] = request.path

    @app.after
    def twice(request: Request, response: Response) -> Response | None:
        return (
            Response(f"{response.body}!", response.status, response.headers.pairs()) if request.path == "/a" else None
        )

    app.get("/a", lambda: "a")
    app.get("/constant", "c")
    app.get("/broken", lambda: 1 / 0)
    client = Client(app, headers={"x-who": "me"})
    response = client.get("/a")
    assert (response.text, response.headers["x-seen"]) == ("a!", "/a")
    assert (client.get("/constant").text, client.get("/constant").headers["x-seen"]) == ("c", "/constant")
    assert (client.get("/broken").status, client.get("/broken").headers["x-seen"]) == (500, "/broken")
    assert Client(app).get("/a").status == 401
    assert [route.kind for route in app._ready().routes] == ["sync", "sync", "sync"]


def test_one_async_hook_makes_the_application_concurrent() -> None:
    app = App()
    ran: list[str] = []

    @app.before
    async def before(request: Request) -> None:
        await asyncio.sleep(0)
        ran.append("before")

    @app.after
    async def behind(request: Request, response: Response) -> None:
        ran.append("after")

    @app.error(ValueError)
    async def wrong(error: ValueError) -> str:
        return str(error)

    @app.get("/")
    def handler(x: int = 0) -> str:
        if x:
            raise ValueError("x")
        return "fine"

    with Client(app) as client:
        assert client.get("/").text == "fine"
        assert (client.get("/?x=1").status, client.get("/?x=1").text) == (500, "x")
    assert app._ready().concurrent
    assert ran[:2] == ["before", "after"]


@pytest.mark.parametrize("register", [App().before, App().after, App().on_start])
def test_a_hook_with_other_parameters_is_refused(register: Callable[[Any], Any]) -> None:
    with pytest.raises(SignatureError):
        register(lambda a, b, c: None)


def test_start_and_stop_hooks_run_once() -> None:
    app, ran = App(), list[str]()
    app.on_start(lambda: ran.append("start"))
    app.on_stop(lambda: ran.append("stop"))
    with Client(app):
        assert ran == ["start"]
    assert ran == ["start", "stop"]


# Coroutines


def test_a_coroutine_answers_as_a_function_does() -> None:
    app = App()

    @app.get("/a")
    async def a(x: int) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"x": x}

    @app.get("/stream")
    async def stream() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(0)
        yield "b"

    @app.get("/broken")
    async def broken() -> None:
        raise HTTPError(409)

    with Client(app) as client:
        assert client.get("/a?x=1").json() == {"x": 1}
        assert client.get("/stream").text == "ab"
        assert client.get("/broken").status == 409
        assert client.get("/a").status == 422


# What the core is told


def test_routes_are_told_with_their_kind() -> None:
    app = App()
    app.get("/constant", "c", deadline=3)
    app.get("/long", "c" * 100_000)
    app.get("/timer", after(2, {"a": 1}))
    app.get("/next", channel("bids").next(timeout=30), name="next")
    app.get("/stream", channel("bids").stream())
    app.route("/sync", lambda: "", methods=["put", "PATCH"], deadline=0)
    app.channel("bids", count=10)
    app.channel("auction/*", age=60, bytes=1_000)
    told = msgspec.to_builtins(app._ready())
    kinds = [(route["path"], route["kind"]) for route in told["routes"]]
    assert kinds == [
        ("/constant", "constant"),
        ("/long", "sync"),
        ("/timer", "wait"),
        ("/next", "wait"),
        ("/stream", "wait"),
        ("/sync", "sync"),
    ]
    assert told["routes"][0]["answer"] == [200, ["content-type", TEXT], "c"]
    assert (told["routes"][2]["wait"], told["routes"][2]["then"][0]) == (["timer", 2], "answer")
    assert told["routes"][3]["wait"] == ["next", "bids", {"timeout": 30}]
    assert (told["routes"][5]["methods"], told["routes"][5]["deadline"]) == (["PUT", "PATCH"], 0)
    assert told["channels"] == [["bids", {"count": 10}], ["auction/*", {"bytes": 1_000, "age": 60}]]


def written(function: object) -> str:
    """Where a function of this file begins, as `file:line`."""
    code = function.__code__  # type: ignore[attr-defined]
    return f"{code.co_filename.removeprefix(f'{Path.cwd()}/')}:{code.co_firstlineno}"


def test_people_are_told_who_answers_and_where_it_is_written() -> None:
    class Pages:
        def home(self) -> str:
            return ""

        def __call__(self) -> str:
            return ""

    def plain(word: str = "") -> str:
        return word

    @wraps(plain)
    def wrapped(*words: str) -> str:
        return plain(*words)

    app = App()
    app.get("/plain", plain)
    app.get("/named", plain, name="mine")
    app.get("/wrapped", wrapped)
    app.get("/partial", partial(plain, "x"))
    app.get("/method", Pages().home)
    app.get("/object", Pages())
    app.get("/constant", "c")
    job = app.job(nothing_to_do)
    told = {route.path: (route.name, route.handler, route.source) for route in app._ready().routes}
    here, inside = __name__, test_people_are_told_who_answers_and_where_it_is_written.__qualname__ + ".<locals>"
    assert told["/plain"] == ("plain", f"{here}:{inside}.plain", written(plain))
    assert told["/named"] == ("mine", f"{here}:{inside}.plain", written(plain))
    assert told["/wrapped"] == told["/plain"]
    assert told["/partial"] == (None, *told["/plain"][1:])
    assert told["/method"] == ("home", f"{here}:{inside}.Pages.home", written(Pages.home))
    assert told["/object"] == (None, f"{here}:{inside}.Pages", written(Pages.__call__))
    name, handler, source = told["/constant"]
    assert (name, handler) == (None, None)
    assert source is not None
    assert source.partition(":")[0] == written(plain).partition(":")[0]
    assert source_of(len) is None
    assert app._ready().jobs[0].source == written(job._function)


def nothing_to_do() -> None: ...


def test_constants_that_do_not_fit_into_a_frame_are_given_by_a_worker() -> None:
    app = App()
    for n in range(20):
        app.get(f"/{n}", "x" * 60_000)
    told = app._ready()
    assert {route.kind for route in told.routes} == {"constant", "sync"}
    assert len(msgspec.msgpack.encode(told)) < 600_000
    assert Client(app).get("/19").text == "x" * 60_000


def test_a_response_can_be_returned_again_and_again() -> None:
    app = App()
    page = html("p")
    app.get("/", lambda: page)
    app.error(404)(lambda: page)

    @app.after
    def mark(request: Request, response: Response) -> None:
        response.headers.add("x-mark", "1")

    client = Client(app)
    found = [client.get(path) for path in ("/", "/none", "/")]
    assert [(response.status, response.headers.getlist("x-mark")) for response in found] == [
        (200, ["1"]),
        (404, ["1"]),
        (200, ["1"]),
    ]


def test_a_route_has_a_name_and_its_path_can_be_made() -> None:
    app = App()

    @app.get("/hola/{name}")
    def hola(name: str, request: Request) -> str:
        return f"{request.route} {request.parameters['name']}"

    assert app.path("hola", name="a b") == "/hola/a%20b"
    assert Client(app).get("/hola/x").text == "hola x"
    with pytest.raises(KeyError):
        app.path("nobody")


@pytest.mark.parametrize(
    "register",
    [
        lambda app: app.get("no-slash", "x"),
        lambda app: app.route("/", "x", methods=["BREW"]),
        lambda app: app.get("/", ("a", "tuple")),
        lambda app: app.get("/", after(1, after(1))),
        lambda app: app.error(200),
        lambda app: app.channel("", count=1),
        lambda app: app.channel("x", count=-1),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_registered(register: Callable[[App], Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        register(App())
