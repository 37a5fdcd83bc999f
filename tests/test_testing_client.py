"""The testing client behaves as the server: one set of cases, against both, for both kinds of worker."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

import pytest

from .conftest import KINDS, Serve
from .harness.server import APPS, PYTHON, Server, clean_environment

TEXT, JSON = "text/plain; charset=utf-8", "application/json"
PROBLEM, PAGE = "application/problem+json", "text/html; charset=utf-8"
VARY = {"vary": ["Accept"]}
COMPARED = (
    "content-type",
    "location",
    "allow",
    "set-cookie",
    "x-why",
    "x-part",
    "cache-control",
    "parkade-gap",
    "parkade-event",
    "preference-applied",
    "vary",
)
COMPARED += ("accept-ranges", "content-disposition", "content-encoding", "content-range", "x-content-type-options")
COMPARED += ("x-usual", *(f"access-control-allow-{what}" for what in ("origin", "credentials")))
COMPARED += ("access-control-expose-headers", "access-control-max-age")
COMPARED += ("access-control-allow-methods", "access-control-allow-headers")
USUAL = {"x-usual": ["yes"], "x-why": ["usual"]}  # what the application adds to all answers


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, list[str]]
    body: bytes
    etag: str  # not compared: cursors differ


class Driver(Protocol):
    """Sends a request, and waits for its answer."""

    def ask(self, method: str, path: str, **options: Any) -> Answer: ...


class InProcess:
    """The testing client, in a process of its own."""

    def __init__(self, kind: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [PYTHON, APPS / "in_process.py", APPS / "behaviour.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(**kind),
        )

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        status, headers, body = self._tell({"method": method, "path": path, "options": options})
        return Answer(status, _compared(headers), base64.b64decode(body), _etag(headers))

    def encode(self, options: dict[str, Any]) -> tuple[bytes, str | None]:
        """The body of a request and its content type."""
        body, content_type = self._tell({"encode": options})
        return base64.b64decode(body), content_type

    def _tell(self, asked: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=20)


class Served:
    """The server, asked over HTTP. `encode` writes the bodies."""

    def __init__(self, server: Server, encode: Callable[[dict[str, Any]], tuple[bytes, str | None]]) -> None:
        self._server = server
        self._encode = encode

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        headers = dict(options.pop("headers", {}))
        if params := options.pop("params", None):
            path = f"{path}?{urlencode(params, doseq=True)}"
        body, content_type = self._encode(options)
        if content_type is not None:
            headers.setdefault("content-type", content_type)
        if not body and method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = "0"
        fields = [f"{name}: {value}" for name, value in headers.items()]
        with self._server.connect().ask(method, path, *fields, body=body) as client:
            answer = client.answer(head=method == "HEAD")
        return Answer(answer.status, _compared(answer.fields), answer.body, _etag(answer.fields))


def _etag(pairs: list[tuple[str, str]]) -> str:
    return next((value for name, value in pairs if name == "etag"), "")


def _compared(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in COMPARED:
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture(scope="module", params=["in process", "served"])
def driver(request: pytest.FixtureRequest, kind: dict[str, str], serve_for_all: Serve) -> Iterator[Driver]:
    in_process = InProcess(kind)
    if request.param == "served":
        yield Served(serve_for_all("behaviour", environment=kind), in_process.encode)
    else:
        yield in_process
    in_process.close()


@dataclass(frozen=True)
class Case:
    name: str
    method: str
    path: str
    status: int
    body: str | bytes | None = None
    type: str | None = None
    headers: dict[str, list[str]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


ECHO = '{"method":"%s","path":"/echo","query":[],"text":"%s","type":"%s","x":[]}'
FORM = "application/x-www-form-urlencoded"
NOT_FOUND = '{"title":"Not Found","status":404,"detail":"no route matches this path","fault":"client"}'
DOT_SEGMENT = (
    '{"title":"Bad Request","status":400,'
    '"detail":"a path must not have segments that are . or .. (clients resolve them)","fault":"client"}'
)
OTHER_SLASH = NOT_FOUND.replace("this path", "this path; there is a route for /text")
NO_FILE = '{"title":"Not Found","status":404,"detail":"there is no such file","fault":"client"}'
NO_RANGE = '{"title":"Range Not Satisfiable","status":416,"detail":"the file has no such bytes","fault":"client"}'
OTHER_STATE = (
    '{"title":"Precondition Failed","status":412,'
    '"detail":"the file is not in the state that the request requires","fault":"client"}'
)
UNREADABLE = (
    '{"title":"Internal Server Error","status":500,"detail":"a file cannot be read; the log says why",'
    '"fault":"application"}'
)
NO_METHOD = (
    '{"title":"Method Not Allowed","status":405,"detail":"this path does not support the method; see Allow",'
    '"fault":"client"}'
)
NO_ROW = '{"title":"Not Found","status":404,"detail":"no such row","fault":"client","effect":"completed"}'
BAD_QUERY = (
    '{"title":"Internal Server Error","status":500,"detail":"the database rejected the query; the log says why",'
    '"fault":"application","effect":"none"}'
)
LIMIT = (
    '{"title":"Unprocessable Content","status":422,"detail":"invalid or missing: limit","fault":"client",'
    '"parameters":[{"name":"limit","where":"query","reason":"an integer is expected","value":"x"}]}'
)
GONE = '{"title":"Gone","status":410,"detail":"it is gone","fault":"client"}'
BROKEN = (
    '{"title":"Internal Server Error","status":500,"detail":"the application failed; its log says why",'
    '"fault":"application"}'
)

FILE = {"accept-ranges": ["bytes"], "x-content-type-options": ["nosniff"]}
STATIC = FILE | {"cache-control": ["public, max-age=60"], "vary": ["Accept-Encoding"]}
VARIES = {"vary": ["Origin"]}
PREFLIGHT_VARIES = {"vary": ["Origin, Access-Control-Request-Method, Access-Control-Request-Headers"]}
GIVEN = {"x-why": ["w"], "cache-control": ["max-age=60"]} | VARIES


def permitted(origin: str) -> dict[str, list[str]]:
    return {
        "access-control-allow-origin": [origin],
        "access-control-allow-credentials": ["true"],
        "access-control-expose-headers": ["etag"],
    }


def from_(origin: str, method: str = "", headers: str = "") -> dict[str, Any]:
    asked = {"access-control-request-method": method, "access-control-request-headers": headers}
    return {"headers": {"origin": origin} | {name: value for name, value in asked.items() if value}}


CASES = [
    Case("a constant", "GET", "/constant", 200, "constant", TEXT),
    Case("a page", "GET", "/page", 200, "<p>page", "text/html; charset=utf-8"),
    Case("a text", "GET", "/text", 200, "text", TEXT),
    Case("bytes", "GET", "/bytes", 200, b"\x00\xff", "application/octet-stream"),
    Case("nothing", "GET", "/nothing", 204, ""),
    Case("JSON", "GET", "/json", 200, '{"a":[1,null,"ü"]}', JSON),
    Case("a long body", "GET", "/long", 200, "x" * 200_000, TEXT),
    Case("a generator", "GET", "/pieces", 200, "one, two", TEXT),
    Case("HEAD of a text", "HEAD", "/text", 200, "", TEXT),
    Case("HEAD of a constant", "HEAD", "/constant", 200, "", TEXT),
    Case("HEAD of a generator", "HEAD", "/pieces", 200, "", TEXT),
    Case("HEAD of nothing", "HEAD", "/nowhere", 404, "", PROBLEM, VARY),
    Case("OPTIONS without a route", "OPTIONS", "/text", 405, NO_METHOD, PROBLEM, {"allow": ["GET, HEAD"]} | VARY),
    Case("OPTIONS with a route", "OPTIONS", "/options", 200, "allowed", TEXT),
    Case("no route", "GET", "/nowhere", 404, NOT_FOUND, PROBLEM, VARY),
    Case("a slash at the end", "GET", "/text/", 404, OTHER_SLASH, PROBLEM, VARY),
    Case("another method", "DELETE", "/form", 405, NO_METHOD, PROBLEM, {"allow": ["POST"]} | VARY),
    Case("a parameter that the path does not take", "GET", "/number/x", 404, NOT_FOUND, PROBLEM, VARY),
    Case("a file", "GET", "/static/a.txt", 200, "0123456789", TEXT, STATIC),
    Case("HEAD of a file", "HEAD", "/static/a.txt", 200, "", TEXT, STATIC),
    Case("another method for a file", "PUT", "/static/a.txt", 405, None, PROBLEM, {"allow": ["GET, HEAD"]} | VARY),
    Case(
        *("a file that is stored compressed", "GET", "/static/a.txt", 200, "gzip", TEXT),
        STATIC | {"content-encoding": ["gzip"]},
        {"headers": {"accept-encoding": "gzip"}},
    ),
    *(
        Case(
            *("a range", "GET", "/static/a.txt", 206, body, TEXT),
            STATIC | {"content-range": [told]},
            {"headers": {"range": asked}},
        )
        for asked, body, told in (
            ("bytes=2-4", "234", "bytes 2-4/10"),
            ("bytes=-3", "789", "bytes 7-9/10"),
            ("bytes=7-99", "789", "bytes 7-9/10"),
        )
    ),
    *(
        Case("no range", "GET", "/static/a.txt", 200, "0123456789", TEXT, STATIC, {"headers": {"range": asked}})
        for asked in ("bytes=1-2,4-5", "bytes=4-2", "lines=1-2")
    ),
    Case(
        *("a range that there is not", "GET", "/static/a.txt", 416, NO_RANGE, PROBLEM),
        {"content-range": ["bytes */10"]} | VARY,
        {"headers": {"range": "bytes=10-"}},
    ),
    *(
        Case("a file that the client has", method, "/static/a.txt", 304, "", None, STATIC, {"headers": fields})
        for method in ("GET", "HEAD")
        for fields in ({"if-none-match": "*"}, {"if-modified-since": "Sun, 09 Sep 2001 01:46:40 GMT"})
    ),
    Case(
        *("a file in another state", "GET", "/static/a.txt", 412, OTHER_STATE, PROBLEM, VARY),
        {"headers": {"if-match": '"x"'}},
    ),
    Case("a folder with its slash", "GET", "/static/docs/", 200, "<p>docs", "text/html; charset=utf-8", STATIC),
    Case(
        "a folder",
        "GET",
        "/static/docs",
        307,
        "",
        None,
        {"location": ["./docs/"], "cache-control": ["public, max-age=60"]},
    ),
    Case(
        "a folder with a query",
        "GET",
        "/static/docs?v=1&to=/%20",
        307,
        "",
        None,
        {"location": ["./docs/?v=1&to=/%20"], "cache-control": ["public, max-age=60"]},
    ),
    *(
        Case("no file", "GET", path, 404, NO_FILE, PROBLEM, VARY)
        for path in (
            *("/static/", "/static/b", "/static/.env", "/static/a%2fb", "/static/a.txt/", "/static/a%0a"),
            *("/within?name=../x", "/within?name=/a", "/within?name=missing"),
        )
    ),
    Case("a file that cannot be read", "GET", "/file?name=missing", 500, UNREADABLE, PROBLEM, VARY),
    Case(
        *("a file to download", "GET", "/download", 200, "0123456789", TEXT),
        FILE | {"content-disposition": ["attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A4.txt"]},
    ),
    Case("a file of that name", "GET", "/within?name=a.txt", 200, "0123456789", TEXT, FILE),
    Case("a redirect", "GET", "/redirect", 303, "", None, {"location": ["/text"]}),
    *(
        Case(
            f"{method} with a body",
            method,
            "/echo",
            200,
            ECHO % (method, "ü", TEXT),
            JSON,
            options={"content": "ü", "headers": {"content-type": TEXT}},
        )
        for method in ("POST", "PUT", "PATCH")
    ),
    Case("DELETE", "DELETE", "/echo", 200, ECHO % ("DELETE", "", ""), JSON),
    Case(
        "a query",
        "GET",
        "/echo",
        200,
        '{"method":"GET","path":"/echo","query":[["a","1 2"],["b","ü"],["b","&"]],"text":"","type":"","x":["y"]}',
        JSON,
        options={"params": {"a": "1 2", "b": ["ü", "&"]}, "headers": {"x-given": "y"}},
    ),
    Case("a body", "POST", "/note", 200, '{"title":"a","stars":1}', JSON, options={"json": {"title": "a"}}),
    Case("a body of another type", "POST", "/note", 415, None, PROBLEM, VARY, options={"data": {"title": "a"}}),
    Case("a body that is no JSON", "POST", "/note", 400, None, PROBLEM, VARY, options={"content": "{"}),
    Case("a body that does not fit", "POST", "/note", 422, None, PROBLEM, VARY, options={"json": {"title": 5}}),
    Case("no body", "POST", "/note", 422, None, PROBLEM, VARY),
    Case("parameters", "GET", "/number/-3", 200, '[-3,7,["a"]]', JSON, options={"params": {"limit": 7, "tag": "a"}}),
    Case(
        "a parameter that does not fit",
        "GET",
        "/number/3",
        422,
        LIMIT,
        PROBLEM,
        VARY,
        options={"params": {"limit": "x"}},
    ),
    Case("a form", "POST", "/form", 200, '["Ana",7]', JSON, options={"data": {"name": "Ana", "age": 7}}),
    Case("an incomplete form", "POST", "/form", 422, None, PROBLEM, VARY, options={"data": {"age": 7}}),
    Case(
        "a file",
        "POST",
        "/files",
        200,
        '["a _b_.txt","text/plain","ü","t"]',
        JSON,
        options={"files": {"file": ['a "b".txt', "ü"]}, "data": {"title": "t"}},
    ),
    Case("no file", "POST", "/files", 422, None, PROBLEM, VARY, options={"data": {"title": "t"}}),
    Case(
        "cookies that are set",
        "GET",
        "/cookies/set",
        200,
        "set",
        TEXT,
        {
            "set-cookie": [
                'a="\\303\\274\\073 b"; Path=/; HttpOnly; SameSite=Lax',
                "b=2; Path=/; Secure; HttpOnly; SameSite=Lax",
                "c=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/; Secure; HttpOnly; SameSite=Lax",
            ]
        },
    ),
    Case(
        "cookies that come back",
        "GET",
        "/cookies",
        200,
        '{"a":"ü; b","b":"2"}',
        JSON,
        options={"headers": {"cookie": 'a="\\303\\274\\073 b"; b=2'}},
    ),
    Case("an error that is meant", "GET", "/gone", 410, GONE, PROBLEM, {"x-why": ["age"]} | VARY),
    Case("an error that is not meant", "GET", "/broken", 500, BROKEN, PROBLEM, VARY),
    *(
        Case(f"{name} as {accept}", "GET", path, status, None, form, more | VARY, {"headers": {"accept": accept}})
        for name, path, status, more in (
            ("an error of the core", "/nowhere", 404, {}),
            ("an error that is meant", "/gone", 410, {"x-why": ["age"]}),
            ("an error that is not meant", "/broken", 500, {}),
            ("a wrong query", "/bad-query", 500, {}),
            ("no row", "/no-row", 404, {}),
        )
        for accept, form in ((JSON, PROBLEM), ("text/plain", TEXT), ("text/html,*/*;q=0.8", PAGE))
    ),
    Case("a router", "GET", "/part", 200, "part", TEXT, {"x-part": ["yes"]}),
    Case("the error of a router", "GET", "/part/error", 410, "part: it is gone", TEXT, {"x-part": ["yes"]}),
    Case("a timer and an after hook", "GET", "/part/timer", 200, "late", TEXT, {"x-part": ["yes"]}),
    Case(
        "a long poll and an after hook",
        "GET",
        "/part/next",
        204,
        "",
        None,
        {"x-part": ["yes"], "cache-control": ["no-store"]},
    ),
    Case(
        "a query and an after hook",
        "GET",
        "/part/row",
        200,
        '{"one":1}',
        JSON,
        {"x-part": ["yes"], "x-why": ["w"]},
    ),
    Case(
        "an after hook that answers instead of a wait",
        "GET",
        "/part/replaced",
        203,
        "instead of the wait",
        TEXT,
        {"x-part": ["another"]},
    ),
    *(
        Case(f"a timer with headers at {path}", "GET", path, 201, "late", TEXT, GIVEN)
        for path in ("/added/timer", "/added/timer/handler")
    ),
    Case("a long poll with headers", "GET", "/added/next", 204, "", None, GIVEN),
    Case("a row with headers as a route", "GET", "/added/row", 201, '{"one":1}', JSON, GIVEN),
    Case("a row with headers", "GET", "/added/row/handler", 201, '{"one":1}', JSON, GIVEN),
    Case(
        "no row, with headers",
        "GET",
        "/added/no-row",
        404,
        NO_ROW,
        PROBLEM,
        {"x-why": ["w"], "vary": ["Accept", "Origin"]},
    ),
    Case(
        "rows with a cookie",
        "GET",
        "/added/cookie",
        202,
        '[{"one":1}]',
        JSON,
        {"set-cookie": ["a=1; Path=/; Secure; HttpOnly; SameSite=Lax"]} | VARIES,
    ),
    *(
        Case(f"an answer for {origin}", "GET", "/added/row", 201, None, JSON, GIVEN | permitted(origin), from_(origin))
        for origin in ("https://a.example", "https://x.b.example")
    ),
    *(
        Case(f"an answer for {origin}", "GET", "/added/row", 201, None, JSON, GIVEN, from_(origin))
        for origin in ("https://b.example", "http://a.example", "null")
    ),
    Case(
        "an answer that says itself for whom it is",
        "GET",
        "/added/own",
        200,
        "own",
        TEXT,
        VARIES | permitted("https://a.example") | {"access-control-allow-origin": ["https://own.example"]},
        from_("https://a.example"),
    ),
    Case(
        "an answer for anybody",
        "GET",
        "/added/anybody",
        200,
        "anybody",
        TEXT,
        {"access-control-allow-origin": ["*"]},
    ),
    Case("an answer for nobody", "GET", "/added/nobody", 200, "nobody", TEXT, {}, from_("https://a.example")),
    Case("no route for another origin", "GET", "/nowhere", 404, NOT_FOUND, PROBLEM, VARY, from_("https://a.example")),
    Case(
        "a preflight",
        "OPTIONS",
        "/added/row",
        204,
        "",
        None,
        {
            "access-control-allow-origin": ["https://a.example"],
            "access-control-allow-methods": ["GET"],
            "access-control-allow-headers": ["x-a, x-b"],
            "access-control-allow-credentials": ["true"],
            "access-control-max-age": ["60"],
        }
        | PREFLIGHT_VARIES,
        from_("https://a.example", "GET", "x-a, x-b"),
    ),
    Case(
        "a preflight for anybody",
        "OPTIONS",
        "/added/anybody",
        204,
        "",
        None,
        {
            "access-control-allow-origin": ["*"],
            "access-control-allow-methods": ["GET"],
            "access-control-allow-headers": ["x-a"],
            "access-control-max-age": ["600"],
        }
        | PREFLIGHT_VARIES,
        from_("https://c.example", "GET"),
    ),
    Case(
        "a preflight that is not permitted",
        "OPTIONS",
        "/added/row",
        204,
        "",
        None,
        PREFLIGHT_VARIES,
        from_("https://c.example", "GET"),
    ),
    Case(
        "a preflight for a route without a policy",
        "OPTIONS",
        "/added/nobody",
        405,
        NO_METHOD,
        PROBLEM,
        {"allow": ["GET, HEAD"]} | VARY,
        from_("https://a.example", "GET"),
    ),
    Case("a timer", "GET", "/after/0.1", 200, '{"waited":0.1}', JSON),
    Case("a timer of no time", "GET", "/after/0", 200, '{"waited":0.0}', JSON),
    Case("a constant timer of no time", "GET", "/after-constant", 200, "at once", TEXT),
    Case("a function after a wait", "GET", "/then", 200, "word /then", TEXT),
    Case("a long poll of no time", "GET", "/next", 204, "", None, {"cache-control": ["no-store"]}),
    Case("a long poll whose time is up", "GET", "/next?timeout=0.1", 204, "", None, {"cache-control": ["no-store"]}),
    Case("a long poll of no time as a route", "GET", "/next/constant", 204, "", None, {"cache-control": ["no-store"]}),
    Case("a long poll of no time, and a function", "GET", "/next/then", 200, "nothing", TEXT),
    Case(
        "a long poll that is shorter because its client prefers it",
        "GET",
        "/next?timeout=600",
        204,
        "",
        None,
        {"cache-control": ["no-store"], "preference-applied": ["wait=0.1"]},
        {"headers": {"prefer": "respond-async, wait=0.1"}},
    ),
    Case(
        "a long poll that is not longer though its client prefers it",
        "GET",
        "/next",
        204,
        "",
        None,
        {"cache-control": ["no-store"]},
        {"headers": {"prefer": "wait=600"}},
    ),
    Case(
        "a long poll of no time as a route, as its client prefers",
        "GET",
        "/next/constant",
        204,
        "",
        None,
        {"cache-control": ["no-store"], "preference-applied": ["wait=0"]},
        {"headers": {"prefer": "wait=0"}},
    ),
    Case(
        "a function decides how long it waits",
        "GET",
        "/next/then",
        200,
        "nothing",
        TEXT,
        options={"headers": {"prefer": "wait=0"}},
    ),
    Case(
        "QUERY",
        "QUERY",
        "/search?limit=2",
        200,
        '{"found":{"a":"b"},"limit":2}',
        JSON,
        options={"json": {"a": "b"}},
    ),
    Case("QUERY without a body", "QUERY", "/search", 422, None, PROBLEM, VARY),
    Case("another method than QUERY", "GET", "/search", 405, NO_METHOD, PROBLEM, {"allow": ["QUERY"]} | VARY),
    Case(
        "a preflight for QUERY",
        "OPTIONS",
        "/added/search",
        204,
        "",
        None,
        {
            "access-control-allow-origin": ["https://a.example"],
            "access-control-allow-methods": ["QUERY"],
            "access-control-allow-headers": ["content-type"],
            "access-control-allow-credentials": ["true"],
            "access-control-max-age": ["60"],
        }
        | PREFLIGHT_VARIES,
        from_("https://a.example", "QUERY", "content-type"),
    ),
    Case("a row", "GET", "/row", 200, '{"one":1}', JSON),
    Case("no row", "GET", "/no-row", 404, NO_ROW, PROBLEM, VARY),
    Case("a query that is wrong", "GET", "/bad-query", 500, BAD_QUERY, PROBLEM, VARY),
]


@pytest.mark.parametrize("path", ["/number/..", "/%2e%2e/text", "/a%2f..%2ftext"])
def test_a_path_that_leads_upwards_never_gets_to_the_application(driver: Driver, path: str) -> None:
    answer = driver.ask("GET", path)
    assert (answer.status, answer.body.decode()) == (400, DOT_SEGMENT)
    assert answer.headers == USUAL | {"content-type": [PROBLEM]} | VARY


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_is_the_same(driver: Driver, case: Case) -> None:
    answer = driver.ask(case.method, case.path, **case.options)
    assert answer.status == case.status, answer.body
    if case.body is not None:
        assert answer.body == (case.body.encode() if isinstance(case.body, str) else case.body)
    expected = USUAL | case.headers | ({} if case.type is None else {"content-type": [case.type]})
    told = {name: value for name, value in answer.headers.items() if case.type is not None or name != "content-type"}
    assert told == expected


def test_messages_are_the_same(driver: Driver, kind: dict[str, str]) -> None:
    assert driver.ask("POST", "/publish", content="one").status == 204
    assert driver.ask("POST", "/publish", content="two").status == 204
    missed = driver.ask("GET", "/next", headers={"if-none-match": '"0.0"'})
    assert (missed.status, missed.body, missed.headers) == (
        200,
        b"one",
        USUAL | {"content-type": [TEXT], "cache-control": ["no-store"], "parkade-gap": ["true"]},
    )
    first = driver.ask("GET", "/first")
    assert (first.body, "parkade-gap" in first.headers) == (b"one", False), "what is held, and nothing was missed"
    again = driver.ask("GET", "/first", headers={"if-none-match": first.etag})
    assert again.body == b"two", "a client that comes back goes on where it was"
    assert driver.ask("GET", "/next/then").body == b"nothing", "without a cursor it begins now"
    if kind:
        assert driver.ask("GET", "/history").body == b'["one","two"]'
        assert driver.ask("GET", "/ticks").body == b"tick one"


def test_histories_cursors_and_events_are_the_same(driver: Driver, kind: dict[str, str]) -> None:
    for text in ("one", "two"):
        assert driver.ask("POST", "/publish", content=text).status == 204
    assert driver.ask("POST", "/publish/event", content="three").status == 204
    held = driver.ask("GET", "/held")
    told = json.loads(held.body)
    assert (held.status, held.headers) == (200, USUAL | {"content-type": [JSON], "cache-control": ["no-store"]})
    assert [message["data"] for message in told["messages"]][-3:] == ["one", "two", "three"]
    assert [message.get("event") for message in told["messages"]][-3:] == [None, None, "typing"]
    assert told["messages"][-1]["cursor"] == told["cursor"] == held.etag.strip('"')
    before = {"if-none-match": f'"{told["messages"][-2]["cursor"]}"'}
    event = driver.ask("GET", "/next", headers=before)
    assert (event.body, event.headers["parkade-event"]) == (b"three", ["typing"])
    newest = driver.ask("GET", "/held/newest")
    assert (newest.status, newest.headers["x-why"]) == (201, ["w"])
    assert json.loads(newest.body) == told | {"messages": told["messages"][-1:]}
    then = json.loads(driver.ask("GET", "/held/then").body)
    assert then == ["/held/then", *(message["data"] for message in told["messages"])]
    returned = driver.ask("POST", "/publish/returned", json={"n": 1})
    assert (returned.status, returned.headers["content-type"]) == (200, [JSON])
    cursor = json.loads(returned.body)["cursor"]
    assert json.loads(driver.ask("GET", "/held").body)["messages"][-1] == {"cursor": cursor, "data": {"n": 1}}
    assert driver.ask("POST", "/publish/then", content="its own").body == b"another", "what follows its own message"
    assert driver.ask("GET", "/publish/unknown").status == 500
    if kind:
        awaited = driver.ask("POST", "/publish/awaited", json={"n": 2})
        assert json.loads(awaited.body) == [True, True, {"n": 2}, "typing", False]
        coroutine = json.loads(driver.ask("GET", "/held/awaited").body)
        assert coroutine == {"held": [{"n": 2}, "\ufffd"], "last": None, "more": False}


@pytest.mark.parametrize(
    ("name", "count", "size", "held"),
    [
        ("usual", 103, 1, [str(number) for number in range(3, 103)]),
        ("short", 4, 1, ["2", "3"]),
        ("shorter", 6, 1, ["1", "2", "3", "4", "5"]),
        ("small", 4, 100, ["3" * 100]),
        ("small-and-more", 4, 1, ["2", "3"]),
        ("large", 3, 400_000, ["2" * 400_000]),
    ],
)
def test_what_a_channel_holds_and_what_is_a_gap_is_the_same(
    driver: Driver, name: str, count: int, size: int, held: list[str]
) -> None:
    def since(cursor: str) -> Any:
        body = driver.ask("GET", f"/many/{name}/next", params={"since": cursor}).body
        return json.loads(body) if body else None

    assert driver.ask("POST", f"/many/{name}", params={"count": count, "size": size}).status == 204
    told = json.loads(driver.ask("GET", f"/many/{name}").body)
    assert [str(message["data"]) for message in told["messages"]][-len(held) :] == held
    if name != "large":  # whose answer has less than the history
        assert len(told["messages"]) == len(held)
    epoch, _, last = told["cursor"].partition(".")
    oldest = told["messages"][0]["cursor"]
    assert since(oldest) == ([held[1], False] if len(held) > 1 else None)
    assert since(told["cursor"]) is None
    assert since("beginning")[1] is False
    for lost in ("0.0", "nonsense", f"{epoch}.{int(last, 16) + 1:x}"):
        assert since(lost) == [since("beginning")[0], True]
    assert since(f"{epoch}.0")[1] is True


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/sent/204", 204, b""),
        ("/sent/205", 205, b""),
        ("/sent/304", 304, b""),
        ("/sent/201", 201, b"body"),
        ("/sent/length", 500, b"the application returned a response that cannot be sent; the log says why"),
        ("/sent/control", 500, b"the application returned a response that cannot be sent; the log says why"),
        ("/sent/fields", 200, b'["x-one"]'),
        ("/sent/a%00b", 400, b"the request target is malformed"),
    ],
)
def test_what_can_be_sent_is_the_same(driver: Driver, path: str, status: int, body: bytes) -> None:
    answer = driver.ask("GET", path, headers={"x-one": "1", "x_two": "2"})
    assert answer.status == status
    assert (body in answer.body) if status >= 400 else (answer.body == body)


def test_both_kinds_are_tried() -> None:
    assert [bool(kind) for kind in KINDS.values()] == [False, True]
