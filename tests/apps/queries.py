"""Runs any SQL that a test sends. A real application never takes SQL from a client."""

from __future__ import annotations

from typing import Any

import msgspec

from parkade import App, Request, query

app = App()


class Ask(msgspec.Struct):
    sql: str
    parameters: list[Any] = []
    int8: str = "number"


@app.post("/rows")
def rows(request: Request) -> object:
    ask = request.json(Ask)
    return query(ask.sql, *ask.parameters, int8=ask.int8).rows()


@app.post("/one")
def one(request: Request) -> object:
    ask = request.json(Ask)
    return query(ask.sql, *ask.parameters, int8=ask.int8).one()


@app.post("/value")
def value(request: Request) -> object:
    ask = request.json(Ask)
    return query(ask.sql, *ask.parameters, int8=ask.int8).value()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"
