"""The test client itself, where the other tests do not use it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from parkade import App, Request, Response, Wait, after, channel, html
from parkade.testing import Client, Parked


def test_a_parked_request_can_be_looked_at() -> None:
    app = App()
    app.get("/", lambda: after(2, "x"))
    client = Client(app)
    parked = client.get("/")
    assert isinstance(parked, Parked)
    assert (parked.parked, parked.done, str(parked.wait)) == (True, False, "<Wait Timer(seconds=2.0)>")
    with pytest.raises(AssertionError, match="still parked"):
        parked.response()
    client.advance(2)
    assert (parked.parked, parked.done, parked.wait, parked.response().text) == (False, True, None, "x")


def test_routes_without_a_worker_are_answered() -> None:
    app = App()
    app.get("/constant", html("<p>"))
    app.get("/timer", after(1, "later"))
    app.get("/next", channel("a").next(timeout=1))
    client = Client(app)
    assert client.get("/constant").text == "<p>"
    timer, message = client.get("/timer"), client.get("/next")
    client.publish("a", "m")
    client.advance(1)
    assert (timer.text, message.text) == ("later", "m")


def test_a_message_published_by_the_same_request_that_waits_is_not_missed() -> None:
    app = App()

    def handler() -> object:
        channel("a").publish("mine")
        return channel("a").next(since="7e57.0")

    app.get("/", handler)
    assert Client(app).get("/").text == "mine"


def test_a_message_for_two_waits_of_a_request_may_end_only_one_of_them() -> None:
    app = App()

    async def heard() -> str:
        message = await channel("news").next(timeout=5)
        return message.text if message else ""

    @app.get("/")
    async def first() -> str:
        tasks = {asyncio.ensure_future(heard()) for _ in range(2)}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        return " ".join(task.result() for task in done)

    with Client(app) as client:
        response = client.get("/")
        client.publish("news", "hello")
        assert response.text == "hello"
        assert client.parked == 0


def test_requests_carry_what_they_are_given() -> None:
    app = App()

    @app.route("/ü", methods=["POST"])
    def echo(request: Request) -> list[object]:
        return [request.query.items_all(), request.text, request.content_type, request.headers["host"], request.client]

    client = Client(app, headers={"Host": "example.org"})
    response = client.post("/ü?a=1", params={"b": [2, 3]}, data={"x": "y z"}, client="::1")
    assert response.json() == [
        [["a", "1"], ["b", "2"], ["b", "3"]],
        "x=y+z",
        "application/x-www-form-urlencoded",
        "example.org",
        "::1",
    ]


def test_an_endless_answer_does_not_hang_the_test() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 1_000_000

    app = App()
    app.get("/", lambda: endless())
    with pytest.raises(AssertionError, match="endless"):
        Client(app).get("/")


def test_two_clients_do_not_hear_each_other() -> None:
    app = App()
    app.get("/", lambda: channel("a").next())
    with Client(app) as one, Client(app) as other:
        waiting, still = one.get("/"), other.get("/")
        one.publish("a", "x")
        assert (waiting.text, still.parked) == ("x", True)


def test_only_a_parked_request_can_be_left() -> None:
    app = App()
    app.get("/", "x")
    client = Client(app)
    with pytest.raises(AssertionError):
        client.leave(client.get("/"))


def test_a_coroutine_may_give_its_wait_up() -> None:
    app = App()

    @app.get("/race")
    async def race() -> str:
        slow = asyncio.ensure_future(_never())
        for _ in range(3):
            await asyncio.sleep(0)  # until it has parked
        slow.cancel()
        await asyncio.wait([slow])
        return "gave up"

    async def _never() -> None:
        await channel("never").next()

    with Client(app) as client:
        assert client.get("/race").text == "gave up"


# Plain functions of an application with coroutines run where the server runs them.

variable = contextvars.ContextVar("variable", default="unset")


def thread() -> str:
    return "the test's" if threading.current_thread() is threading.main_thread() else "another"


def concurrent(hooked: bool) -> App:
    app = App(concurrent=True)

    @app.on_start
    async def start() -> None:
        variable.set("by start")

    if hooked:

        @app.before
        async def before(request: Request) -> None:
            variable.set(variable.get() + ", by a hook")

    @app.get("/plain")
    def plain() -> str:
        seen = variable.get()
        variable.set("by a request")
        return f"{thread()} {seen}"

    @app.get("/stream")
    def stream() -> Iterator[str]:
        for _ in range(2):
            yield f"{thread()} {variable.get()};"

    @app.get("/then")
    def then() -> Wait:
        return after(1).then(behind)

    @app.get("/coroutine")
    async def coroutine() -> str:
        return f"{thread()} {variable.get()}"

    @app.get("/coroutine_stream")
    async def coroutine_stream() -> Iterator[str]:
        return iter([thread()])

    @app.get("/fails")
    def fails() -> None:
        raise KeyError("x")

    @app.error(KeyError)
    def failed(error: KeyError) -> str:
        return thread()

    @app.job
    def job() -> str:
        return thread()

    @app.get("/enqueues")
    def enqueues() -> str:
        job.enqueue()
        channel("a").publish("x")
        return "enqueued"

    @app.on_stop
    def stop() -> None:
        variable.set(variable.get() + ", to stop")
        stopped.append(variable.get())

    return app


stopped: list[str] = []


def behind() -> str:
    return f"{thread()} {variable.get()}"


@pytest.mark.parametrize("hooked", [False, True])
def test_plain_functions_among_coroutines_run_in_another_thread(hooked: bool) -> None:
    by = "by start, by a hook" if hooked else "by start"
    with Client(concurrent(hooked)) as client:
        assert [client.get("/plain").text for _ in range(2)] == [f"another {by}"] * 2
        assert client.get("/stream").text == f"another {by};" * 2
        then = client.get("/then")
        client.advance(1)
        assert then.text == "another by start"
        assert client.get("/coroutine").text == f"the test's {by}"
        assert client.get("/coroutine_stream").text == "the test's"
        client.get("/enqueues")
        client.run_jobs()
        assert client.jobs[0].result == "another"
        assert client.get("/fails").text == ("the test's" if hooked else "another")
    assert stopped.pop() == "by start, to stop"
    assert variable.get() == "unset"


def test_without_coroutines_they_run_in_the_test_s_own() -> None:
    app = App()
    app.get("/", thread)
    assert Client(app).get("/").text == "the test's"


def test_the_thread_ends_with_the_client() -> None:
    app = App(concurrent=True)
    seen: list[threading.Thread] = []
    app.get("/thread", lambda: seen.append(threading.current_thread()))
    client = Client(app)
    client.get("/thread")
    assert seen[0].is_alive()
    del client
    gc.collect()
    seen[0].join(10)
    assert not seen[0].is_alive()


def test_a_plain_function_may_use_the_client_itself() -> None:
    app = App(concurrent=True)
    client = Client(app)
    app.get("/inner", lambda: "inner")
    app.get("/outer", lambda: client.get("/inner").text)
    client = Client(app)
    assert client.get("/outer").text == "inner"


def test_a_failing_assertion_in_a_plain_function_is_seen() -> None:
    """What is no `Exception`, as `pytest.fail` raises, ends the test."""
    app = App(concurrent=True)
    app.get("/", lambda: pytest.fail("told"))
    with pytest.raises(pytest.fail.Exception, match="told"):
        Client(app).get("/")


# Files, cookies, methods, async tests


def test_files_are_sent_as_a_form(tmp_path: Path) -> None:
    app = App()

    @app.post("/")
    def take(request: Request) -> list[object]:
        return [
            [name, value if isinstance(value, str) else [value.filename, value.content_type, value.body.decode()]]
            for name, value in request.form.items_all()
        ]

    (tmp_path / "notes.txt").write_text("from a file")
    with (tmp_path / "notes.txt").open("rb") as opened:
        answer = Client(app).post(
            "/",
            data={"title": "ü", "tag": ["a", "b"]},
            files=[
                ("one", b"bytes"),
                ("two", ('a "b".png', b"png")),
                ("two", ("c.bin", "text", "text/x")),
                ("file", opened),
            ],
        )
    assert answer.json() == [
        ["title", "ü"],
        ["tag", "a"],
        ["tag", "b"],
        ["one", ["one", "application/octet-stream", "bytes"]],
        ["two", ["a _b_.png", "image/png", "png"]],
        ["two", ["c.bin", "text/x", "text"]],
        ["file", ["notes.txt", "text/plain", "from a file"]],
    ]
    with pytest.raises(ValueError, match="a part of the form contains"):
        Client(app).post("/", files={"a": b"--parkade-testing-7e57c0de"})


def app_with_cookies() -> App:
    app = App()
    app.get("/login", lambda: Response("welcome").set_cookie("user", "Ana; ü", max_age=60))
    app.get("/shop/basket", lambda: Response().set_cookie("basket", "3", path="/shop"))
    app.get("/shop/here", lambda: Response().set_cookie("here", "1", path=None))
    app.get("/logout", lambda: Response().delete_cookie("user"))
    app.get("/slow", lambda: after(1, Response().set_cookie("late", "1")))

    @app.get("/{rest:path}")
    def seen(rest: str, request: Request) -> dict[str, str]:
        return dict(request.cookies)

    return app


def test_cookies_are_held_and_sent_back() -> None:
    client = Client(app_with_cookies())
    assert client.get("/me").json() == {}
    client.get("/login")
    assert client.cookies == {"user": "Ana; ü"}
    assert client.get("/me").json() == {"user": "Ana; ü"}
    assert client.get("/me", headers={"Cookie": "user=Bo"}).json() == {"user": "Bo"}
    client.get("/logout")
    assert client.get("/me").json() == dict(client.cookies) == {}


def test_cookies_follow_their_path_and_end_on_the_clients_clock() -> None:
    client = Client(app_with_cookies())
    for path in ("/login", "/shop/basket", "/shop/here"):
        client.get(path)
    assert client.get("/shop/x").json() == {"basket": "3", "here": "1", "user": "Ana; ü"}
    assert client.get("/shopping").json() == {"user": "Ana; ü"}
    client.advance(61)
    assert client.get("/shop").json() == {"basket": "3", "here": "1"}


def test_a_test_may_set_cookies_and_forget_them() -> None:
    client = Client(app_with_cookies())
    client.cookies["seen"] = "a b"
    assert client.get("/me").json() == {"seen": "a b"}
    del client.cookies["seen"]
    assert (client.get("/me").json(), len(client.cookies)) == ({}, 0)
    with pytest.raises(KeyError):
        client.cookies["seen"]


def test_the_cookie_of_a_parked_request_comes_with_its_answer() -> None:
    client = Client(app_with_cookies())
    client.get("/slow")
    assert client.cookies == {}
    client.advance(1)
    assert client.get("/me").json() == {"late": "1"}


def test_head_and_options() -> None:
    app = App()
    app.get("/", lambda: "text")
    app.route("/", lambda: Response(None, 204, {"allow": "GET"}), methods=["OPTIONS"])
    client = Client(app)
    head = client.head("/")
    assert (head.status, head.headers["content-type"], head.body) == (200, "text/plain; charset=utf-8", b"")
    assert client.options("/").headers["allow"] == "GET"


def test_what_takes_no_time_is_answered_at_once() -> None:
    app = App()
    app.get("/after", lambda: after(0, "x"))
    app.get("/next", lambda: channel("a").next(timeout=0))
    client = Client(app)
    assert client.get("/after").text == "x"
    empty = client.get("/next")
    assert (empty.status, empty.headers["etag"]) == (204, '"7e57.0"')
    client.publish("a", "m")
    assert client.get("/next", headers={"if-none-match": empty.headers["etag"]}).text == "m"


def coroutines() -> App:
    app = App()

    @app.on_start
    async def start() -> None:
        await asyncio.sleep(0)

    @app.get("/")
    async def handler() -> str:
        await asyncio.sleep(0)
        await after(1)
        return "waited"

    @app.get("/pieces")
    async def pieces() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(0)
        yield "b"

    app.get("/plain", lambda: threading.current_thread().name)
    return app


def test_a_test_that_is_a_coroutine_uses_it_as_any_other() -> None:
    async def test() -> None:
        with Client(coroutines()) as client:
            parked = client.get("/")
            client.advance(1)
            assert parked.text == "waited"
            assert client.get("/pieces").text == "ab"
            assert client.get("/plain").text != threading.current_thread().name
            left = client.get("/")
            client.leave(left)
        await asyncio.sleep(0)

    asyncio.run(test())
