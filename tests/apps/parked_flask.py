"""Flask views that park."""

import gzip
import threading
from typing import Any

from flask import Flask, Response, abort, request, session, url_for
from parked_waits import WAITS, write_after, write_async, write_log

from parkade import Message, channel, park
from parkade.errors import JobError

app = Flask(__name__)
app.secret_key = "of a test"


@app.after_request
def mark(response: Response) -> Response:
    response.headers["x-marked"] = "yes"
    if "etag" in request.args:
        response.set_etag("of nothing")
    if "gzip" in request.args:
        response.set_data(gzip.compress(response.get_data()))
        response.headers["content-encoding"] = "gzip"
    if "replaced" in request.args:
        return Response("instead", 403)
    return response


@app.errorhandler(JobError)
def without_a_result(error: JobError) -> tuple[str, int]:
    return f"the job is {error.reason}", 503


@app.get("/hola/<name>")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/wait/<name>")
def wait(name: str) -> Any:
    session["visits"] = session.get("visits", 0) + 1
    return park(WAITS[name]())


@app.get("/wait_in_loop/<name>")
async def wait_in_loop(name: str) -> Any:
    return park(WAITS[name]())


@app.get("/visits")
def visits() -> str:
    return str(session.get("visits", 0))


kept: list[Any] = []


@app.get("/kept")
def keep() -> Any:
    """A response of an earlier request."""
    if not kept:
        kept.append(park(channel("news").next(timeout=20)))
    return kept[0]


@app.get("/own")
def own() -> Any:
    response = Response(status=201)
    response.headers["x-own"] = "yes"
    return park(channel("news").next(timeout=20), response)


@app.get("/template")
def template() -> Any:
    return park(channel("news").next(timeout=20).then(page))


@app.get("/foreign")
def foreign() -> Any:
    return park(channel("news").next(timeout=20).then(own_response))


def own_response(message: Message | None) -> Response:
    response = Response(f"mine {message.text if message else ''}", 203, {"x-mine": "yes"})
    response.set_cookie("mine", "1")
    return response


@app.get("/aborts")
def aborts() -> Any:
    return park(channel("news").next(timeout=20).then(abort_after))


def abort_after(message: Message | None) -> None:
    abort(418)


def page(message: Message | None) -> str:
    text = message.text if message else ""
    return f"{text} {url_for('visits')} {request.path} {session.get('visits')}"


@app.post("/publish/<name>")
def publish(name: str) -> str:
    channel(name).publish(request.get_data(as_text=True))
    return "published"


@app.post("/publish_in_thread/<name>")
def publish_in_thread(name: str) -> str:
    text = request.get_data(as_text=True)
    thread = threading.Thread(target=lambda: channel(name).publish(text))
    thread.start()
    thread.join()
    return "published"


@app.post("/enqueue/<kind>")
def enqueue(kind: str) -> dict[str, str]:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return {"id": job.enqueue(request.get_data(as_text=True)).id}


@app.get("/not_a_wait")
def not_a_wait() -> Any:
    return park("no wait")  # type: ignore[arg-type]
