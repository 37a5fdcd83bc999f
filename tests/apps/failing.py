"""An application that fails in every way: for the shapes of errors, and for what the log says of them."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

from parkade import App, HTTPError, Request, Wait, after, channel, query

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
