"""FastAPI endpoints that park."""

from typing import Any

from fastapi import FastAPI, Request, Response
from parked_waits import WAITS, write_after, write_async, write_log
from starlette.middleware.sessions import SessionMiddleware

from parkade import channel, park

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key="of a test")


@app.middleware("http")
async def mark(request: Request, call_next: Any) -> Response:
    response: Response = await call_next(request)
    response.headers["x-marked"] = "yes"
    if "replaced" in request.query_params:
        return Response("instead", 403)
    if "etag" in request.query_params:
        response.headers["etag"] = '"of nothing"'
    return response


@app.get("/hola/{name}")
async def hola(name: str) -> Response:
    return Response(f"Hola {name}")


@app.get("/wait/{name}")
def wait(name: str, request: Request) -> Any:
    request.session["visits"] = request.session.get("visits", 0) + 1
    return park(WAITS[name]())


@app.get("/wait_in_loop/{name}")
async def wait_in_loop(name: str, request: Request) -> Any:
    return wait(name, request)


@app.get("/awaited")
async def awaited() -> str | None:
    message = await channel("news").next(timeout=20)
    return None if message is None else message.text


@app.get("/visits")
def visits(request: Request) -> Response:
    return Response(str(request.session.get("visits", 0)))


@app.get("/own")
def own() -> Any:
    return park(channel("news").next(timeout=20), Response(status_code=201, headers={"x-own": "yes"}))


@app.post("/publish/{name}")
async def publish(name: str, request: Request) -> str:
    channel(name).publish((await request.body()).decode())
    return "published"


@app.post("/publish_in_thread/{name}")
def publish_in_thread(name: str, text: str = "hello") -> str:
    channel(name).publish(text)
    return "published"


@app.post("/enqueue/{kind}")
async def enqueue(kind: str, request: Request) -> dict[str, str]:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return {"id": job.enqueue((await request.body()).decode()).id}
