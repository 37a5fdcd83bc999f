"""Plain handlers with transactions, in the threads of a worker that has coroutines, too."""

from typing import Any

from paying import pay, pay_in_loop, totals, write_within

from parkade import App, Request

app = App()


@app.post("/pay")
def paying(request: Request) -> object:
    return pay(request.body)


@app.post("/pay_in_loop")
async def paying_in_loop(request: Request) -> object:
    return await pay_in_loop(request.body)


@app.get("/totals")
def sums() -> Any:
    return totals()


@app.post("/enqueue/{line}")
def enqueue(line: str) -> str:
    return write_within.enqueue(line).id
