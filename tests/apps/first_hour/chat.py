"""A chat with rooms: a page for people, a long poll and a stream for programs, and what was said before."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from parkade import BEGINNING, App, Status, Wait, channel, html

Room = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[\w -]+$")]


@dataclass(frozen=True)
class Line:
    author: Annotated[str, Meta(min_length=1, max_length=40)]
    text: Annotated[str, Meta(min_length=1, max_length=2_000)]


app = App()
app.channel("room/*", count=500, age=86_400)  # so much is held for those who come later


@app.post("/rooms/{room}")
def say(room: Room, body: Line) -> Status:
    channel(f"room/{room}").publish(body)
    return Status(202)


@app.get("/rooms/{room}/stream")
def stream(room: Room) -> Wait:
    """Everything that is held, and then every line; a browser that comes back misses nothing."""
    return channel(f"room/{room}").stream(since=BEGINNING)


@app.get("/rooms/{room}/next")
def next_line(room: Room, timeout: Annotated[float, Meta(ge=0, le=60)] = 30) -> Wait:
    return channel(f"room/{room}").next(timeout=timeout)


@app.get("/rooms/{room}/lines")
async def lines(room: Room) -> list[Line]:
    """What is held now."""
    return (await channel(f"room/{room}").history()).json(Line)


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Chat</title>
<style>body { font: 1rem/1.5 system-ui; max-width: 40rem; margin: 2rem auto; color-scheme: light dark }</style>
<h1>Lobby</h1>
<p id="state" role="status">connecting</p>
<ol id="lines"></ol>
<form>
  <input name="author" placeholder="name" required maxlength="40">
  <input name="text" placeholder="what you say" required maxlength="2000">
  <button>Say it</button>
</form>
<script>
  const lines = document.getElementById("lines"), state = document.getElementById("state");
  const stream = new EventSource("/rooms/lobby/stream");
  stream.onopen = () => { state.textContent = "connected"; };
  stream.onerror = () => { state.textContent = "the server is away; this page reconnects"; };
  stream.addEventListener("gap", () => lines.replaceChildren());
  stream.onmessage = ({ data }) => {
    const { author, text } = JSON.parse(data), line = document.createElement("li");
    line.textContent = `${author}: ${text}`;
    lines.append(line);
  };
  document.forms[0].onsubmit = async (event) => {
    event.preventDefault();
    const { author, text } = event.target;
    const body = JSON.stringify({ author: author.value, text: text.value });
    const headers = { "content-type": "application/json" };
    const answer = await fetch("/rooms/lobby", { method: "POST", body, headers });
    if (answer.ok) text.value = "";
  };
</script>
"""

app.get("/", html(PAGE))
