"""A REST service: notes of users in SQLite, with a login, validation, pages for errors, an export and an import."""

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from enum import Enum
from html import escape
from typing import Annotated

from msgspec import Meta, Struct

from parkade import (
    App,
    Cookie,
    HTTPError,
    Request,
    Response,
    Router,
    Row,
    Status,
    Upload,
    Wait,
    html,
    query,
    redirect,
    transaction,
)

SECRET = os.environ.get("NOTES_SECRET", "only for development").encode()


class Colour(Enum):
    YELLOW = "yellow"
    BLUE = "blue"


class Note(Struct):
    title: Annotated[str, Meta(min_length=1, max_length=80)]
    text: Annotated[str, Meta(max_length=10_000)] = ""
    colour: Colour = Colour.YELLOW


app = App(redirect_slashes=True)
notes = Router("/notes", name="notes")

# Who asks


def signed(user: str) -> str:
    return f"{user}.{hmac.new(SECRET, user.encode(), hashlib.sha256).hexdigest()}"


@app.post("/login")
def login(user: Annotated[str, Meta(pattern=r"^[a-z]{1,20}$")], next: str = "/notes") -> Response:
    return redirect(next, local=True).set_cookie("session", signed(user), max_age=30 * 86_400)


@app.post("/logout")
def logout(session: Annotated[str | None, Cookie()] = None) -> Response:
    return redirect("/").delete_cookie("session")


@notes.before
def check(request: Request) -> None:
    user, _, _ = request.cookies.get("session", "").rpartition(".")
    if not hmac.compare_digest(request.cookies.get("session", "").encode(), signed(user).encode()):
        raise HTTPError(401, "log in first")
    request.state["user"] = user


def user_of(request: Request) -> str:
    return str(request.state["user"])


# Notes


@notes.get("/")
def all_notes(request: Request, limit: Annotated[int, Meta(ge=1, le=100)] = 20, colour: Colour | None = None) -> Wait:
    sql = "select id, title, colour from notes where owner = $1 and coalesce(colour = $2, true) order by id limit $3"
    return query(sql, user_of(request), colour, limit)


@notes.post("/")
async def create(request: Request, body: Note) -> Response:
    id = await insert(user_of(request), body)
    return Response({"id": id}, 201, {"location": notes.path("show", id=id)})


def insert(user: str, note: Note) -> Wait[int | None]:
    sql = "insert into notes (owner, title, text, colour) values ($1, $2, $3, $4) returning id"
    return query(sql, user, note.title, note.text, note.colour).value(int)


@notes.get("/{id:int}")
def show(request: Request, id: int) -> Wait:
    return query("select * from notes where id = $1 and owner = $2", id, user_of(request)).one()


@notes.delete("/{id:int}")
async def remove(request: Request, id: int) -> Status:
    rows = await query("delete from notes where id = $1 and owner = $2", id, user_of(request))
    return Status(204 if rows.count else 404)


@notes.get("/export.jsonl")
async def export(request: Request) -> Response:
    rows = await query("select title, text, colour from notes where owner = $1 order by id", user_of(request))
    return Response(lines(rows), headers={"content-disposition": 'attachment; filename="notes.jsonl"'})


def lines(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row) + "\n"


@notes.post("/import")
async def take(request: Request, files: list[Upload]) -> dict[str, int]:
    """All notes of all files, or none."""
    found = [Note(file.filename[:80] or "note", file.body.decode(errors="replace")[:10_000]) for file in files]
    async with transaction() as t:
        for note in found:
            sql = "insert into notes (owner, title, text, colour) values ($1, $2, $3, $4)"
            await t.query(sql, user_of(request), note.title, note.text, note.colour)
    return {"imported": len(found)}


app.include(notes)

# Pages

app.get("/", html("<!doctype html><title>Notes</title><h1>Notes</h1><form method=post action=/login><input name=user>"))


@app.error(404)
def not_found(request: Request, error: HTTPError) -> Response:
    if "html" not in request.headers.get("accept", ""):
        return Response({"error": error.detail}, 404)
    return html(f"<!doctype html><title>404</title><h1>Nothing is at {escape(request.path)}</h1>", 404)
