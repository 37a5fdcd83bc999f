"""Litestar handlers that park."""

from typing import Any

from litestar import Litestar, MediaType, Request, get, post
from litestar.middleware.session.server_side import ServerSideSessionConfig
from litestar.response.base import ASGIResponse
from parked_waits import WAITS, write_after, write_async, write_log

from parkade import channel, park


@get("/hola/{name:str}", media_type=MediaType.TEXT)
async def hola(name: str) -> str:
    return f"Hola {name}"


@get("/wait/{name:str}", sync_to_thread=True)
def wait(name: str, request: Request[Any, Any, Any]) -> ASGIResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    return park(WAITS[name]())  # type: ignore[no-any-return]


@get("/wait_in_loop/{name:str}")
async def wait_in_loop(name: str) -> ASGIResponse:
    return park(WAITS[name]())  # type: ignore[no-any-return]


@get("/awaited", media_type=MediaType.TEXT)
async def awaited() -> str:
    message = await channel("news").next(timeout=20)
    return "" if message is None else message.text


@get("/visits", media_type=MediaType.TEXT)
async def visits(request: Request[Any, Any, Any]) -> str:
    return str(request.session.get("visits", 0))


@get("/own")
async def own() -> ASGIResponse:
    response = ASGIResponse(status_code=201, headers={"x-own": "yes"})
    return park(channel("news").next(timeout=20), response)  # type: ignore[no-any-return]


@post("/publish/{name:str}", media_type=MediaType.TEXT)
async def publish(name: str, request: Request[Any, Any, Any]) -> str:
    channel(name).publish((await request.body()).decode())
    return "published"


@post("/publish_in_thread/{name:str}", media_type=MediaType.TEXT, sync_to_thread=True)
def publish_in_thread(name: str) -> str:
    channel(name).publish("hello")
    return "published"


@post("/enqueue/{kind:str}")
async def enqueue(kind: str, request: Request[Any, Any, Any]) -> dict[str, str]:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return {"id": job.enqueue((await request.body()).decode()).id}


async def mark(message: Any, scope: Any) -> None:
    if message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], (b"x-marked", b"yes")]
        if b"etag" in scope["query_string"]:
            message["headers"].append((b"etag", b'"of nothing"'))


app = Litestar(
    [hola, wait, wait_in_loop, awaited, visits, own, publish, publish_in_thread, enqueue],
    middleware=[ServerSideSessionConfig().middleware],
    before_send=[mark],
)
