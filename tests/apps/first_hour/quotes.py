"""Asynchronous code with httpx: asks many suppliers at once, races two of them, gives up in time. The suppliers are
this application too, in another server.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import Annotated

import httpx
import msgspec
from msgspec import Meta

from parkade import App, HTTPError, Response, Wait, after, channel

SUPPLIERS = [f"supplier{number}" for number in range(50)]


@dataclass(frozen=True)
class Quote:
    supplier: str
    item: str
    cents: int


Seconds = Annotated[float, Meta(ge=0, le=60)]

app = App()
client: httpx.AsyncClient


@app.on_start
async def connect() -> None:
    global client
    client = httpx.AsyncClient(
        base_url=os.environ.get("SUPPLIERS", "http://127.0.0.1:8001"),
        timeout=70,
        limits=httpx.Limits(max_connections=200),
        trust_env=False,
    )


@app.on_stop
async def disconnect() -> None:
    await client.aclose()


# A supplier: its answer is computed at once and sent later. No worker is busy meanwhile.


@app.get("/suppliers/{supplier}/{item}")
def supply(supplier: str, item: str, seconds: Seconds = 0.05) -> Wait:
    if item == "unicorn":
        raise HTTPError(404, "never heard of it")
    return after(seconds, Quote(supplier, item, 100 + sum(map(ord, supplier + item)) % 900))


async def ask(supplier: str, item: str, seconds: float) -> Quote:
    answer = await client.get(f"/suppliers/{supplier}/{item}", params={"seconds": seconds})
    if answer.status_code != 200:
        raise HTTPError(502, f"{supplier} answers {answer.status_code}")
    return msgspec.json.decode(answer.content, type=Quote)


# Those who ask them


@app.get("/quotes/{item}")
async def quotes(item: str, seconds: Seconds = 0.05) -> list[Quote]:
    """All of them, the cheapest first. If the client leaves, so do all these requests."""
    found = await asyncio.gather(*(ask(supplier, item, seconds) for supplier in SUPPLIERS))
    return sorted(found, key=lambda quote: quote.cents)


@app.get("/quick/{item}")
async def quick(item: str) -> Quote:
    """The first of two; the other one is abandoned."""
    tasks = {asyncio.create_task(ask(supplier, item, seconds)) for supplier, seconds in (("slow", 30), ("fast", 0.05))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()


@app.get("/patient/{item}")
async def patient(item: str, patience: Seconds = 0.2) -> Quote:
    try:
        return await asyncio.wait_for(ask("slow", item, 30), patience)
    except asyncio.TimeoutError:
        raise HTTPError(504, "the supplier takes too long") from None


@app.get("/watched/{item}")
async def watched(item: str) -> Response:
    """Whichever comes first: word that the price has changed, or the end of the wait. Then the price."""
    message = await channel(f"prices/{item}").next(timeout=1)
    quote = await ask("fast", item, 0)
    return Response(quote, headers={"x-changed": "yes" if message is not None else "no"})


@app.post("/prices/{item}")
def changed(item: str) -> None:
    channel(f"prices/{item}").publish("changed")
