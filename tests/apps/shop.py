"""A native application with all features: parameters, forms, errors, hooks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

import msgspec

from parkade import App, HTTPError, Request, Response, Status, Upload, after, html

app = App()
started: list[str] = []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Bid:
    bidder: str
    amount: int


class Order(msgspec.Struct):
    items: list[str]
    express: bool = False


class OutOfStock(Exception):
    pass


@app.on_start
def start() -> None:
    started.append("on_start")


@app.before
def note(request: Request) -> Response | None:
    request.state["seen"] = request.headers.get("x-see", "nothing")
    return Response("not today", 403) if request.headers.get("x-forbid") else None


@app.after
def sign(request: Request, response: Response) -> None:
    response.headers["x-signed"] = str(request.state.get("seen", "no hook"))


@app.error(OutOfStock)
def out_of_stock(error: OutOfStock) -> Response:
    return Response({"out of stock": str(error)}, 409)


@app.error(404)
def nowhere(request: Request, error: HTTPError) -> str:
    return f"nothing at {request.path}"


@app.get("/started")
def what_started() -> list[str]:
    return started


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/lot/{number:int}")
def lot(number: int) -> int | dict[str, int]:
    return {"lot": number}


@app.get("/price/{price:float}")
def price(price: float) -> dict[str, float]:
    return {"price": price}


@app.get("/user/{user:uuid}")
def user(user: UUID) -> dict[str, str]:
    return {"user": str(user)}


@app.get("/search")
def search(
    word: str,
    page: int = 1,
    exact: bool = False,
    since: datetime | None = None,
    colour: Colour | None = None,
    tag: list[str] | None = None,
) -> dict[str, object]:
    return {
        "word": word,
        "page": page,
        "exact": exact,
        "since": since and since.isoformat(),
        "colour": colour and colour.name,
        "tag": tag,
    }


@app.post("/bid")
def bid(body: Bid) -> Bid:
    return body


@app.post("/order")
def order(body: Order) -> list[object]:
    return [body.items, body.express]


@app.post("/form")
def form(name: str, count: int) -> dict[str, object]:
    return {"name": name, "count": count}


@app.post("/upload")
def upload(file: Upload, title: str = "untitled") -> dict[str, object]:
    return {"name": file.filename, "bytes": len(file.body), "title": title}


@app.get("/cookies")
def cookies(request: Request) -> dict[str, str]:
    return dict(request.cookies)


@app.get("/page")
def page() -> Response:
    return html("<p>page", 202)


@app.get("/nothing")
def nothing() -> None:
    return None


@app.get("/sold-out")
def sold_out() -> None:
    raise OutOfStock("lamps")


@app.get("/teapot")
def teapot() -> None:
    raise HTTPError(418, "a teapot", {"x-pot": "yes"})


@app.delete("/hola/{name}")
def goodbye(name: str) -> Status:
    return Status(204)


@app.patch("/bid")
def change(body: Bid) -> Response:
    return Response({"changed": body.amount}, 200, {"x-bid": body.bidder})


@app.get("/later")
def later() -> object:
    return after(0.05, Response("later", 201, {"x-later": "yes"}))


@app.get("/memory")
def memory() -> str:
    """Allocates without end, as far as the operating system allows."""
    import resource

    limit = 512 << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)))
