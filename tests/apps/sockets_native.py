"""WebSockets of Parkade's own interface."""

import asyncio

from parkade import App, Request, Status, WebSocket, after, channel

app = App()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.before
def check(request: Request) -> object:
    return Status(403) if "stranger" in request.query else None


@app.websocket("/echo")
async def echo(socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(message)
    print("the loop ends", flush=True)


@app.websocket("/told/{number:int}")
async def told(socket: WebSocket, number: int, name: str, request: Request) -> None:
    await socket.accept(subprotocol="chat" if "chat" in socket.subprotocols else None, headers={"x-a": "1"})
    await socket.send({"number": number, "name": name, "agreed": socket.subprotocol, "path": request.path})


@app.websocket("/close/{code:int}")
async def close(socket: WebSocket, code: int) -> None:
    await socket.receive()
    await socket.close(code, "because")


@app.websocket("/fails")
async def fails(socket: WebSocket) -> None:
    await socket.receive()
    raise ValueError("in the middle")


@app.websocket("/rooms/{room}")
async def chat(socket: WebSocket, room: str) -> None:
    """What anybody says in a room is sent to everybody in it."""
    said = channel(f"rooms/{room}")

    async def forward() -> None:
        since = (await said.history(0)).cursor
        await socket.send("welcome")
        while True:
            message = await said.next(since=since)
            assert message is not None
            since = message.cursor
            await socket.send(message)

    task = asyncio.create_task(forward())
    try:
        async for text in socket:
            said.publish(text)
    finally:
        task.cancel()


@app.websocket("/ticks")
async def ticks(socket: WebSocket) -> None:
    """Never receives."""
    await socket.send("first")
    try:
        await after(1_000)
    except asyncio.CancelledError:
        print("ticks were cancelled", flush=True)
        raise
