"""Event streams and WebSockets that are told what is published on one channel, and an echo."""

from parkade import App, WebSocket, channel

app = App()
bench = channel("bench")

app.get("/events", bench.stream())


@app.websocket("/socket")
async def told(socket: WebSocket) -> None:
    await socket.accept()
    since = (await bench.history(0)).cursor
    while (message := await bench.next(since=since)) is not None:
        since = message.cursor
        await socket.send(message)


@app.websocket("/echo")
async def echo(socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(message)
