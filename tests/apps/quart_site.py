"""An ordinary Quart application."""

import threading
from collections.abc import AsyncIterator

from event_streams import begun, three
from quart import Quart, Response, abort, make_response, request, send_file, websocket
from quart.utils import run_sync

app = Quart(__name__)
kept: dict[str, str] = {}


@app.before_serving
async def start() -> None:
    kept["shared"] = "from the start"


@app.after_serving
async def stop() -> None:
    print("the lifespan ends", flush=True)


@app.get("/hola/<name>")
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/query")
async def query() -> dict[str, object]:
    return {"a": request.args["a"], "b": request.args.getlist("b")}


@app.post("/orders")
async def order() -> dict[str, object]:
    told = await request.get_json()
    return {"item": told["item"], "count": 2 * told["count"]}


@app.post("/upload")
async def upload() -> dict[str, object]:
    file = (await request.files)["file"]
    return {"name": file.filename, "bytes": len(file.read())}


@app.get("/count/<int:end>")
async def count(end: int) -> Response:
    async def numbers() -> AsyncIterator[bytes]:
        for number in range(end):
            yield f"{number}\n".encode()

    return Response(numbers(), mimetype="text/plain")


@app.get("/events")
async def events() -> Response:
    return Response(three(), mimetype="text/event-stream")


@app.get("/endless")
async def endless() -> Response:
    response = await make_response(begun())
    response.timeout = None
    response.mimetype = "text/event-stream"
    return response  # type: ignore[return-value]


@app.get("/shared")
async def shared() -> str:
    return kept["shared"]


@app.get("/later")
async def later() -> str:
    async def work() -> None:
        print("the later work is done", flush=True)

    app.add_background_task(work)
    return "sent"


@app.get("/thread")
async def thread() -> str:
    return str(await run_sync(lambda: threading.current_thread() is threading.main_thread())())


@app.get("/whoami")
async def whoami() -> str:
    return request.headers["x-name"]


@app.get("/cookie")
async def cookie() -> Response:
    visits = int(request.cookies.get("visits", 0))
    response = await make_response({"visits": visits})
    response.set_cookie("visits", str(visits + 1))
    return response  # type: ignore[return-value]


@app.get("/url")
async def url() -> str:
    return request.url


@app.get("/file")
async def file() -> Response:
    return await send_file(__file__, mimetype="text/plain")


@app.get("/broken")
async def broken() -> str:
    raise ValueError("a mistake")


@app.websocket("/socket/echo")
async def socket_echo() -> None:
    try:
        while True:
            await websocket.send(f"echo {await websocket.receive()}")
    finally:
        print("the socket ends", flush=True)


@app.websocket("/socket/chat")
async def socket_chat() -> None:
    await websocket.accept(subprotocol="chat")
    await websocket.send_json({"hello": "you"})
    await websocket.close(4000, "enough")


@app.websocket("/socket/denied")
async def socket_denied() -> None:
    abort(401)
