"""Quart views that park."""

from typing import Any

from parked_waits import WAITS, write_after, write_async, write_log
from quart import Quart, Response, request, session
from quart.utils import run_sync

from parkade import Message, channel, park

app = Quart(__name__)
app.secret_key = "of a test"


@app.after_request
async def mark(response: Response) -> Response:
    response.headers["x-marked"] = "yes"
    if "etag" in request.args:
        response.headers["etag"] = '"of nothing"'
    if "replaced" in request.args:
        return Response("instead", 403)
    return response


@app.get("/hola/<name>")
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/wait/<name>")
def wait(name: str) -> Any:
    """In a thread."""
    session["visits"] = session.get("visits", 0) + 1
    return park(WAITS[name]())


@app.get("/wait_in_loop/<name>")
async def wait_in_loop(name: str) -> Any:
    return park(WAITS[name]())


@app.get("/awaited")
async def awaited() -> str:
    message = await channel("news").next(timeout=20)
    return "" if message is None else message.text


@app.get("/visits")
async def visits() -> str:
    return str(session.get("visits", 0))


@app.get("/own")
async def own() -> Any:
    response = Response(status=201)
    response.headers["x-own"] = "yes"
    return park(channel("news").next(timeout=20), response)


@app.get("/foreign")
async def foreign() -> Any:
    return park(channel("news").next(timeout=20).then(own_response))


async def own_response(message: Message | None) -> Response:
    response = Response(f"mine {message.text if message else ''}", 203, {"x-mine": "yes"})
    response.set_cookie("mine", "1")
    return response


@app.post("/publish/<name>")
async def publish(name: str) -> str:
    channel(name).publish((await request.get_data()).decode())
    return "published"


@app.post("/publish_in_thread/<name>")
async def publish_in_thread(name: str) -> str:
    await run_sync(lambda: channel(name).publish("hello") and None)()
    return "published"


@app.post("/enqueue/<kind>")
async def enqueue(kind: str) -> dict[str, str]:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return {"id": job.enqueue((await request.get_data()).decode()).id}
