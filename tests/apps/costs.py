"""Uses every part of a request that a worker reads for its handler. Each response is what was understood, shortened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from parkade import App, Request, Upload


@dataclass
class Order:
    price: Decimal
    parts: list[Order] = field(default_factory=list)


class Tree(msgspec.Struct):
    children: list[Tree] = []


def short(value: object) -> str:
    return repr(value)[:200]


def cookies(request: Request) -> str:
    return short(request.cookies)


def text(request: Request) -> str:
    return short(request.text)


def text_body(body: str) -> str:
    return short(body)


def json(request: Request) -> str:
    return short(type(request.json()))


def echo(body: dict[str, Any]) -> dict[str, Any]:
    return body


def order(body: Order) -> str:
    return f"{body.price:f}"[:200]


def tree(body: Tree) -> str:
    return short(len(body.children))


def form(request: Request) -> str:
    return short(len(request.form))


def file(upload: Upload) -> str:
    return short(len(upload.body))


def query(request: Request) -> str:
    return short(len(request.query))


def numbers(
    i: int = 0, f: float = 0.0, d: Decimal = Decimal(0), u: UUID | None = None, t: datetime | None = None
) -> str:
    return short((i, f, f"{d:f}", u, t))


def headers(request: Request) -> str:
    return short((request.cursor, request.accepts_json, len(request.headers), request.path))


def rest(rest: str, request: Request) -> str:
    return short((len(rest), len(request.path)))


def boom(what: str, request: Request) -> None:
    print(what.replace("\n", " "))  # output of several lines stays in several lines
    raise RuntimeError(f"no {what} in {request.body.decode(errors='replace')}")


ROUTES: dict[str, Callable[..., Any]] = {
    "/cookies": cookies,
    "/text": text,
    "/text_body": text_body,
    "/json": json,
    "/echo": echo,
    "/order": order,
    "/tree": tree,
    "/form": form,
    "/file": file,
    "/query": query,
    "/numbers": numbers,
    "/headers": headers,
    "/rest/{rest:path}": rest,
    "/boom/{what:path}": boom,
}


def as_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def handler(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return handler


def make(asynchronous: bool) -> App:
    made = App()
    for path, function in ROUTES.items():
        made.route(path, as_coroutine(function) if asynchronous else function, methods=["GET", "POST"])
    made.get("/hola/{name}")(lambda name: f"Hola {name}")
    return made


app = make(asynchronous=False)
