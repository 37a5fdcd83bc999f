"""Handlers that publish, and continue in every possible way."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from parkade import App, Message, Request, Status, Wait, after, channel

app = App()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/answers/{name}")
def answers(name: str) -> Status:
    channel(name).publish("x")
    return Status(202)


@app.post("/waits/{name}")
def waits(name: str) -> Wait:
    channel(name).publish("x")
    return after(0.01, "published")


@app.post("/calls/{name}")
def calls(name: str) -> Wait:
    channel(name).publish("x")
    return after(0.01).then(called)


def called() -> str:
    return "published"


@app.post("/streams/{name}")
def streams(name: str) -> Iterator[str]:
    yield "begun"
    channel(name).publish("x")
    yield "ended"


@app.post("/thread/{name}")
def thread(name: str) -> Status:
    """Publishes outside of any request."""
    other = threading.Thread(target=channel(name).publish, args=("x",))
    other.start()
    other.join()
    return Status(202)


@app.get("/next/{name}")
def following(name: str) -> Wait:
    return channel(name).next(timeout=2)


@app.get("/then/{name}")
def then(name: str, request: Request) -> Wait:
    return channel(name).next(timeout=2, since=request.cursor).then(told)


def told(message: Message | None) -> dict[str, object]:
    return {} if message is None else {"text": message.text, "gap": message.gap}


@app.get("/stream/{name}")
def stream(name: str) -> Wait:
    return channel(name).stream()
