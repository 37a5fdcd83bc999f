"""Headers of answers that the core gives alone, and policies for pages of other origins."""

from __future__ import annotations

from typing import Any

import pytest

from parkade import App, Cors, HTTPError, Request, Response, Router, Wait, after, channel, query
from parkade.errors import WaitError
from parkade.testing import Client


def elsewhere(outcome: None) -> str:
    return "elsewhere"


def test_headers_and_status_come_together_from_several_calls() -> None:
    app = App()
    app.get("/", query("select 1 as one").headers({"x-a": "1", "set-cookie": "a"}).one().headers(
        [("X-A", "2"), ("set-cookie", "b")], status=202))  # fmt: skip
    answer = Client(app).get("/")
    assert (answer.status, answer.text) == (202, '{"one":1}')
    assert answer.headers.getlist("x-a") == ["2"]
    assert answer.headers.getlist("set-cookie") == ["a", "b"]


def test_a_wait_stays_as_it_was() -> None:
    wait = channel("a").next(timeout=0)
    other = wait.headers({"x-a": "1"})
    app = App()
    app.get("/", wait)
    app.get("/other", other)
    client = Client(app)
    assert "x-a" not in client.get("/").headers
    assert client.get("/other").headers["x-a"] == "1"


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda: after(1).headers(status=304), ValueError, "200 to 299"),
        (lambda: after(1).headers({"a": "b\r\nc: d"}), ValueError, "line break"),
        (lambda: after(1).headers({"content-length": "7"}), ValueError, "set by the server alone"),
        (lambda: after(1).then(elsewhere).headers({"a": "b"}), WaitError, "after .then the function"),
        (lambda: after(1).headers({"a": "b"}).then(elsewhere), WaitError, "after .then the function"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(make: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        make()


@pytest.mark.parametrize("response", [Response(channel("a").next(), 404), Response(after(1).then(elsewhere), 201)])
def test_a_response_of_a_wait_that_cannot_be_is_a_fault(response: Response, capfd: pytest.CaptureFixture[str]) -> None:
    app = App()
    app.get("/", lambda: response)
    assert Client(app).get("/").status == 500
    assert "returned a response whose body is a wait" in "".join(capfd.readouterr())


def test_a_wait_with_headers_is_not_awaited() -> None:
    app = App()

    @app.get("/")
    async def waits() -> str:
        try:
            await after(0).headers({"a": "b"})
        except WaitError as error:
            return str(error)
        return "it was"

    with Client(app) as client:
        assert client.get("/").text == "a wait with headers is returned, not awaited"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_hook_sees_a_wait_and_changes_its_answer(asynchronous: bool) -> None:
    app = App()
    seen: list[Any] = []

    def look(request: Request, response: Response) -> None:
        seen.append((request.path, response.status, response.body))
        response.set_cookie("a", "1", secure=False)
        response.headers["x-why"] = response.headers.get("x-why", "none") + ", hooked"
        if request.path == "/row":
            response.status = 201

    async def look_async(request: Request, response: Response) -> Response:
        look(request, response)
        return response

    app.after(look_async if asynchronous else look)
    app.get("/row", query("select 1 as one").one().headers({"x-why": "own"}))
    app.get("/timer", after(0, Response("late", 202)))
    app.get("/stream", channel("a").stream())
    app.get("/then", lambda: after(0).then(elsewhere))
    with Client(app) as client:
        row, timer, stream, then = (client.get(path) for path in ("/row", "/timer", "/stream", "/then"))
    assert (row.status, row.text, row.headers["x-why"]) == (201, '{"one":1}', "own, hooked")
    assert (timer.status, timer.text, timer.headers["x-why"]) == (202, "late", "none, hooked")
    assert (stream.status, stream.headers["x-why"]) == (200, "none, hooked")
    assert (then.text, then.headers["x-why"]) == ("elsewhere", "none, hooked")
    assert all(answer.headers["set-cookie"].startswith("a=1") for answer in (row, timer, stream, then))
    assert [(path, status) for path, status, _ in seen] == [
        ("/row", 200),
        ("/timer", 202),
        ("/stream", 200),
        ("/then", 200),
    ]
    assert isinstance(seen[0][2], Wait)
    assert seen[1][2] == "late"


def test_a_hook_may_answer_instead_or_fail() -> None:
    app = App()

    @app.after
    def other(request: Request, response: Response) -> Response:
        if request.path == "/error":
            raise HTTPError(418)
        return Response("instead", headers=response.headers.pairs())

    app.get("/instead", channel("a").next().headers({"x-a": "1"}))
    app.get("/error", channel("a").next())
    client = Client(app)
    instead = client.get("/instead")
    assert (instead.parked, instead.text, instead.headers["x-a"]) == (False, "instead", "1")
    assert client.get("/error").status == 418


def test_the_cookie_of_a_stream_is_held_while_it_is_parked() -> None:
    app = App()
    app.get("/", lambda: Response(channel("a").stream()).set_cookie("seen", "yes"))
    client = Client(app)
    assert client.get("/").parked
    assert client.cookies["seen"] == "yes"


def test_the_headers_of_all_answers_add_up() -> None:
    app = App()
    app.headers({"x-a": "1", "content-security-policy": "default-src 'self'"})
    app.headers({"X-A": "2"})
    app.get("/", lambda: "text")
    for path, status in (("/", 200), ("/nowhere", 404)):
        answer = Client(app).get(path)
        assert (answer.status, answer.headers["x-a"]) == (status, "2")
        assert answer.headers["content-security-policy"] == "default-src 'self'"
    with pytest.raises(ValueError, match="etag is different for each answer"):
        app.headers({"ETag": "x"})


def test_the_nearest_policy_counts() -> None:
    app, inner, outer = App(), Router("/inner"), Router("/outer")
    app.cors(origins="https://app.example")
    outer.cors(origins="https://outer.example")
    inner.get("/a", "a")
    inner.get("/b", "b", cors=Cors("https://b.example"))
    inner.get("/c", "c", cors=False)
    outer.include(inner)
    app.include(outer)
    app.get("/", "app")
    client = Client(app)

    def permitted(path: str) -> str | None:
        for name in ("app", "outer", "b"):
            answer = client.get(path, headers={"origin": f"https://{name}.example"})
            if "access-control-allow-origin" in answer.headers:
                return name
        return None

    paths = ("/", "/nowhere", "/outer/inner/a", "/outer/inner/b", "/outer/inner/c")
    assert [permitted(path) for path in paths] == ["app", "app", "outer", "b", None]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"origins": []}, "origins are missing"),
        ({"origins": "*", "credentials": True}, "browsers refuse credentials"),
        ({"origins": "https://a.example/"}, "without a slash at its end"),
        ({"origins": "https://A.example"}, "lower case"),
        ({"origins": "a.example"}, "is not an origin"),
        ({"origins": "null"}, "is not an origin"),
        ({"origins": "https://a*.example"}, "is not an origin"),
        ({"origins": "https://a.example:443"}, "leave this port out"),
        ({"origins": "*", "methods": "GET"}, "methods must be a list"),
        ({"origins": "*", "headers": ["a b"]}, "neither a method nor"),
        ({"origins": "*", "max_age": -1}, "max_age is seconds"),
        ({"origins": "https://a.example", "credentials": True, "expose": ["*"]}, "write the names"),
    ],
)
def test_a_policy_that_no_browser_would_follow_is_refused(policy: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        App().cors(**policy)


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://*.a.example", "http://[::1]:8000", "app://x"])
def test_origins_as_browsers_write_them_are_taken(origin: str) -> None:
    App().cors(origins=[origin])
