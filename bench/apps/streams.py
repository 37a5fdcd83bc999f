"""Event streams, and WebSockets with and without a coroutine, that are told what one channel publishes; an echo."""

from parkade import App, Wait, WebSocket, channel

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


@app.websocket("/held")
def held() -> Wait:
    return bench.socket(heard)


def heard(message: str) -> None:
    """Nobody says anything."""


@app.websocket("/echo")
async def echo(socket: WebSocket) -> None:
    async for message in socket:
        await socket.send(message)
