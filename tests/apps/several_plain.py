"""Plain functions that wait for several things at a time, in a worker without an event loop."""

from __future__ import annotations

from typing import Any

from parkade import App, First, Wait, after, all_of, channel, first_of, query

app = App()


@app.get("/all-of/{count:int}")
def everything(count: int) -> Wait:
    return all_of(*(query("select $1 as text", str(n) * 100_000).value() for n in range(count)), after(0.01)).then(told)


def told(found: list[Any]) -> object:
    return [text and [text[0], len(text)] for text in found]


@app.get("/first-of/{name}")
def either(name: str) -> Wait:
    return first_of(after(20), channel(name).next()).then(told_first, name=name)


def told_first(first: First[Any], name: str) -> str:
    return f"{name} {first.index} {first.value.text}"


app.get("/route", all_of(query("select 1 as n").one(), after(0)))
