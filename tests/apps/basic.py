"""Plain functions: one request at a time in a worker, or next to an event loop if the environment has `CONCURRENT`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from gates import hold

from parkade import (
    BEGINNING,
    App,
    History,
    HTTPError,
    Message,
    Request,
    Response,
    Status,
    Wait,
    after,
    channel,
    html,
)

app = App(concurrent="CONCURRENT" in os.environ)
app.channel("short/*", count=3)
app.channel("deep/*", bytes=4_000_000)
app.channel("brief/*", age=0.3)
app.channel("small/*", bytes=4_000)

app.get("/constant", "constant")
app.get("/constant-page", html("<p>page"))
app.get("/standing-timer", after(0.2, "later"))
app.get("/standing-next", channel("standing").next(timeout=30))
app.get("/standing-stream", channel("standing").stream())
app.get("/standing-past", channel("short/past").stream(since=BEGINNING))
app.get("/standing-oldest", channel("short/past").next(timeout=0, since=BEGINNING))


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/pid")
def pid() -> str:
    return str(os.getpid())


# The contents of a request


@app.route("/echo", methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def echo(request: Request) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.raw_path,
        "query": request.query_string,
        "headers": request.headers.pairs(),
        "client": request.client,
        "scheme": request.scheme,
        "version": request.http_version,
        "body": request.body.decode("latin-1"),
    }


@app.get("/echo/{rest:path}")
def echo_path(rest: str) -> str:
    return rest


@app.post("/digest")
def digest(request: Request) -> dict[str, object]:
    return {"bytes": len(request.body), "sha256": hashlib.sha256(request.body).hexdigest()}


# The kinds of responses


@app.get("/bytes/{count:int}")
def some_bytes(count: int) -> bytes:
    return b"x" * count


@app.get("/stream/{count:int}/{size:int}")
def stream(count: int, size: int) -> Iterator[bytes]:
    return (b"%c" % (97 + at % 26) * size for at in range(count))


@app.get("/gated-stream/{gate}")
def gated_stream(gate: str) -> Iterator[str]:
    yield "before"
    hold(gate)
    yield "behind"


@app.get("/status/{code:int}")
def status(code: int) -> Status:
    return Status(code)


@app.get("/bodiless/{code:int}")
def bodiless(code: int) -> Response:
    """A body where there must be none."""
    return Response("five!", status=code)


@app.get("/bodiless-stream/{code:int}")
def bodiless_stream(code: int) -> Response:
    return Response(iter(["five!"] * 3), status=code)


@app.get("/dated")
def dated() -> Response:
    return Response("then", headers={"Date": "Sun, 06 Nov 1994 08:49:37 GMT"})


@app.get("/raise")
def raise_error() -> str:
    raise ValueError("the handler of /raise raises")


@app.get("/teapot")
def teapot() -> str:
    raise HTTPError(418, "a teapot")


# Handlers that take their time


@app.get("/hold/{gate}")
def hold_at(gate: str) -> str:
    print(f"holds at {gate}", flush=True)
    hold(gate)
    return f"{os.getpid()}"


@app.get("/hold-for-ever/{gate}", deadline=0)
def hold_without_deadline(gate: str) -> str:
    hold(gate)
    return "held"


# Waits


@app.get("/after/{seconds:float}")
def after_seconds(seconds: float) -> object:
    return after(seconds, f"after {seconds}")


@app.get("/after-then/{seconds:float}")
def after_then(seconds: float) -> object:
    return after(seconds).then(told, what="time")


def told(outcome: Message | None, what: str) -> dict[str, object]:
    return {"what": what, "outcome": None if outcome is None else outcome.value, "pid": os.getpid()}


@app.get("/next/{name:path}")
def next_message(name: str, timeout: float | None = None, since: str | None = None) -> object:
    return channel(name).next(timeout=timeout, since=since)


@app.get("/next-then/{name:path}")
def next_then(name: str, timeout: float | None = None, since: str | None = None) -> object:
    return channel(name).next(timeout=timeout, since=since).then(told_message, name=name)


def told_message(message: Message | None, name: str, request: Request) -> dict[str, object]:
    if message is None:
        return {"name": name, "value": None, "path": request.path}
    return {
        "name": name,
        "value": message.value,
        "cursor": message.cursor,
        "gap": message.gap,
        "path": request.path,
        "pid": os.getpid(),
    }


@app.get("/twice/{name:path}")
def twice(name: str) -> object:
    return channel(name).next().then(once_more, name=name)


def once_more(message: Message | None, name: str) -> object:
    assert message is not None
    return channel(name).next(since=message.cursor).then(both, first=message.text)


def both(message: Message | None, first: str) -> list[str]:
    assert message is not None
    return [first, message.text]


@app.get("/events/{name:path}")
def events(name: str, since: str | None = None) -> object:
    return channel(name).stream(since=since)


@app.post("/publish/{name:path}")
def publish(name: str, request: Request) -> Status:
    channel(name).publish(request.body, request.content_type or None)
    return Status(202)


@app.post("/publish-event/{name:path}")
def publish_event(name: str, event: str, request: Request) -> Status:
    channel(name).publish(request.body, event=event)
    return Status(202)


@app.get("/history/{name:path}")
def history(name: str) -> Wait:
    return channel(name).history()


@app.get("/history-then/{name:path}")
def history_then(name: str) -> Wait:
    return channel(name).history().then(told_history)


def told_history(history: History, request: Request) -> list:
    return [len(history), request.path, history.cursor]


@app.post("/publish-many/{count:int}/{name:path}")
def publish_many(count: int, name: str) -> Status:
    for number in range(count):
        channel(name).publish(f"{number}")
    return Status(202)


@app.post("/publish-json/{name:path}")
def publish_json(name: str, body: dict) -> Status:
    channel(name).publish(body)
    return Status(202)
