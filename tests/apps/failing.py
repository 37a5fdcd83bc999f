"""An application that fails in every way: for the shapes of errors, and for what the log says of them."""

import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from parkade import App, HTTPError, Request, Response, Wait, after, channel, query

app = App(concurrent=bool(os.environ.get("CONCURRENT")))


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/like-the-core")
def like_the_core() -> None:
    raise HTTPError(404, "no route matches this path")


@app.get("/gone/{what}")
def gone(what: str) -> None:
    raise HTTPError(410, f"{what} is <gone>")


@app.get("/raise/{what}")
def fails(what: str) -> None:
    raise ValueError(what)


@app.get("/number")
def number(n: int) -> int:
    return n


@app.post("/note")
def note(body: dict[str, int]) -> int:
    return len(body)


@app.get("/raise-later")
def fails_later() -> Wait:
    return after(0).then(failing, what="later")


def failing(outcome: None, what: str) -> None:
    raise ValueError(what)


@app.get("/channel")
def bad_channel(name: str) -> Wait:
    return channel(name).next(timeout=0)


@app.get("/query")
def returned() -> Wait:
    return query("selct 1")


@app.get("/pieces")
def pieces() -> Iterator[str]:
    yield "one"
    raise ValueError("in the middle")


@app.get("/log/{level:int}")
def logs(level: int, text: str = "told") -> None:
    logging.getLogger("shop").log(level, "%s", text, extra={"count": 3, "who": {"name": "Ana"}, "level": "mine"})


@app.get("/surrogate/{way}")
def surrogate(way: str) -> None:
    """Text that UTF-8 cannot express, as in JSON of a client and in names of files."""
    match way:
        case "raised":
            raise ValueError("\ud800")
        case "answered":
            raise HTTPError(404, "no \ud800")
    logging.getLogger("shop").error("%s", os.fsdecode(b"caf\xe9"), extra={"who": {"\ud800": ["\udfff"]}})


@app.get("/log-exception")
def logs_exception() -> str:
    try:
        raise KeyError("caught")
    except KeyError:
        logging.exception("it went on")
    return "on"


@app.get("/log-later")
def logs_later() -> Wait:
    return after(0).then(logging_later)


def logging_later(outcome: None) -> str:
    logging.warning("after the wait")
    return "logged"


@app.get("/id")
def its_id(request: Request) -> str:
    return request.id


@app.get("/id/own")
def own_id() -> Response:
    return Response("own", headers={"X-Request-Id": "own"})


@app.get("/id/later")
def its_id_later() -> Wait:
    return after(0).then(told_id)


def told_id(outcome: None, request: Request) -> str:
    return request.id


@app.get("/id/never")
def never() -> Wait:
    return channel("ids").next(timeout=5)


@app.get("/id/events")
def events() -> Wait:
    return channel("ids").stream()


@app.get("/print")
def prints(text: str) -> None:
    print(text)
    print(text, file=sys.stderr)


@app.get("/thread")
def thread_fails() -> None:
    thread = threading.Thread(target=failing, args=(None, "in a thread"), name="mine")
    thread.start()
    thread.join()


@app.get("/die")
def dies() -> None:
    os._exit(3)


if os.environ.get("CONCURRENT"):

    @app.get("/query/awaited")
    async def awaited() -> Any:
        return await query("selct 1")

    @app.get("/pieces/async")
    async def pieces_async() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("in the middle")


if os.environ.get("HANDLERS"):

    @app.error(404)
    def nowhere(request: Request) -> None:
        raise HTTPError(404, f"nothing at {request.path}")
