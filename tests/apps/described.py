"""An application that describes itself, for `test_openapi`: schemathesis makes requests of the description."""

import os
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal, TypedDict
from uuid import UUID

from msgspec import Meta, Struct

from parkade import App, Cookie, Header, HTTPError, Response, Router, Upload, Wait, after, channel, html, query


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Line(Struct, forbid_unknown_fields=True):
    item: UUID
    count: Annotated[str, Meta(pattern="^[1-9][0-9]?$")]  # no int: 1.0 is one in JSON Schema, and none for msgspec


class Order(Struct):
    """What somebody wants."""

    lines: Annotated[list[Line], Meta(min_length=1)]
    size: Size = Size.SMALL
    note: Annotated[str, Meta(max_length=20)] | None = None


@dataclass
class Placed:
    id: int
    order: Order


class Point(TypedDict):
    x: float
    y: float


NOBODY = UUID(int=0)

app = App(concurrent=bool(os.environ.get("CONCURRENT")))
orders = Router("/orders", name="orders")


@orders.post("/")
def place(body: Order) -> Placed:
    """Places an order.

    It is not kept.
    """
    return Placed(7, body)


@orders.get("/{id:int}", responses={409: "It is still to come"})
def show(id: int, verbose: bool = False, size: Size | None = None) -> dict[str, int | bool]:
    """One order."""
    if id < 0:
        raise HTTPError(409)
    return {"id": id, "verbose": verbose}


@orders.delete("/{id:int}")
async def cancel(id: int) -> None:
    """Cancels an order."""


app.include(orders, prefix="/v1")


@app.get("/search")
def search(q: str, limit: int = 20, tag: list[str] = [], when: date | None = None) -> list[str]:  # noqa: B006
    return [q, str(limit), *tag, str(when)]


@app.get("/me")
def me(
    limit: Annotated[int, Meta(ge=1, le=100)],
    code: Annotated[str, Meta(min_length=2, max_length=5)] = "none",
    version: Annotated[int, Header("x-version")] = 1,
    session: Annotated[UUID, Cookie()] = NOBODY,
) -> list[str | int]:
    return [limit, code, version, str(session)]


@app.get("/rooms/{name}/{kind}")
def room(name: str, kind: Literal["single", "double"]) -> str:
    return f"{name} {kind}"


@app.put("/points/{id:uuid}")
def put_point(id: UUID, body: Point) -> Point:
    return body


@app.post("/upload", responses={200: dict[str, int]})
def upload(file: Upload, title: str = "") -> Response:
    return Response({"bytes": len(file.body), "title": len(title)})


@app.post("/form")
def form(name: str, age: int) -> list[str]:
    return [name, str(age)]


@app.post("/text")
def text(body: str) -> str:
    return body[::-1]


@app.get("/maybe/{n:int}")
def maybe(n: int) -> Placed | None:
    return None if n % 2 else Placed(n, Order([Line(UUID(int=n % 7), "5")]))


@app.get("/later")
def later() -> Wait:
    return after(0.01, "later")


app.get("/constant", "constant")
app.get("/page", html("<p>"))
app.get("/one", query("select 1 as one").one())
app.get("/news", channel("news").next(timeout=0))
app.get("/secret", lambda: "nobody is told", hidden=True)


@app.job
def count(to: int) -> int:
    return to


app.openapi("Described & <tried>", "1.2", description="An application for a test.")
