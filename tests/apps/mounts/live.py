"""The application at `/live`, for Parkade's own interface."""

from __future__ import annotations

import os

from gates import hold
from letters import write

from parkade import App, Request, Response, channel, query, redirect

app = App()


@app.get("/news")
def news():
    """The next message."""
    return channel("news").next(timeout=20)


@app.get("/hola/{name}")
def hola(name: str, request: Request) -> dict[str, object]:
    """The path as the application sees it."""
    return {"hola": name, "path": request.path, "link": app.path("hola", name=name), "pid": os.getpid()}


@app.get("/folder/")
def folder() -> str:
    """With a slash at its end."""
    return "folder"


@app.get("/away")
def away() -> Response:
    """To another page of its own."""
    return redirect(app.path("hola", name="you"))


@app.get("/hold/{gate}")
def hold_at(gate: str) -> str:
    """Keeps its worker busy."""
    hold(gate)
    return "held"


@app.get("/letter")
def letter():
    """A job that both applications know."""
    return write.enqueue("Bo").result(timeout=20)


@app.job
def shout(text: str) -> str:
    """In capitals."""
    return text.upper()


@app.post("/shout")
def shouting():
    """Where the job will be."""
    return shout.enqueue("hey").result(timeout=20)


@app.get("/sum")
def total():
    """A query."""
    return query("select 3 + 4 as sum").one()
