"""Plain handlers with transactions, in workers that run one at a time."""

from typing import Any

from paying import pay, totals, write_within

from parkade import App, Request

app = App()


@app.post("/pay")
def paying(request: Request) -> object:
    return pay(request.body)


@app.get("/totals")
def sums() -> Any:
    return totals()


@app.post("/enqueue/{line}")
def enqueue(line: str) -> str:
    return write_within.enqueue(line).id
