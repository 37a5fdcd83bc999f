"""A chat: what anybody says in a room is sent to everybody in it, over WebSockets."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from parkade import App, File, WebSocket, WebSocketClosed, channel

app = App()
app.channel("rooms/*", count=100, age=3_600)  # an hour of talk for those who come late
app.files("/", "page")  # the folder next to this file: index.html for /, and what it needs
app.get("/style.css", File(Path(__file__).parents[1] / "style.css"))

Name = Annotated[str, Meta(min_length=1, max_length=40)]


class Said(msgspec.Struct):
    name: str
    text: Annotated[str, Meta(min_length=1, max_length=1_000)]


class Text(msgspec.Struct):
    text: Annotated[str, Meta(min_length=1, max_length=1_000)]


@app.websocket("/rooms/{room}")
async def chat(socket: WebSocket, room: str, name: Name) -> None:
    listener = asyncio.create_task(forward(socket, room))
    try:
        async for message in socket:
            try:
                said = msgspec.json.decode(message, type=Text)
            except msgspec.MsgspecError:
                await socket.close(4000, "send {text}, at most 1,000 characters")
                return
            channel(f"rooms/{room}").publish(Said(name, said.text))
    finally:
        listener.cancel()


async def forward(socket: WebSocket, room: str) -> None:
    """Sends what was said lately, and then everything that is said, until the WebSocket is closed."""
    said = channel(f"rooms/{room}")
    history = await said.history()
    since = history.cursor
    with suppress(WebSocketClosed):
        for earlier in history:
            await socket.send(earlier)
        while (message := await said.next(since=since)) is not None:
            since = message.cursor
            await socket.send(message)
