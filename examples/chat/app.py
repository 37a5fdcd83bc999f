"""A chat: what anybody says in a room is sent to everybody in it, over WebSockets that no code holds."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from parkade import BEGINNING, App, File, Wait, channel

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
def chat(room: str, name: Name) -> Wait:
    """The core sends what was said lately, and then everything that is said, until the WebSocket is closed."""
    return channel(f"rooms/{room}").socket(on_message=said, since=BEGINNING, room=room, name=name)


def said(message: Text, room: str, name: str) -> None:
    """Any worker publishes what a visitor says."""
    channel(f"rooms/{room}").publish(Said(name, message.text))
