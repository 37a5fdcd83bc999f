"""The auction as an application of FastAPI: endpoints that wait, without a coroutine for each client."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from parkade import BEGINNING, File, channel, limit_history, park

EXAMPLES = Path(__file__).parents[1]

app = FastAPI()
limit_history("auction/*", count=1_000, age=3_600)  # an hour of bids for those who come late


class Bid(BaseModel):
    bidder: str = Field(min_length=1, max_length=40)
    amount: int = Field(ge=1, le=1_000_000)


@app.post("/auction/{lot}", status_code=202)
async def bid(lot: str, body: Bid) -> None:
    channel(f"auction/{lot}").publish(body.model_dump())


@app.get("/auction/{lot}/next")
async def next_bid(lot: str) -> Any:
    return park(channel(f"auction/{lot}").next(timeout=30))


@app.get("/auction/{lot}/bids")
async def bids(lot: str) -> Any:
    return park(channel(f"auction/{lot}").stream(since=BEGINNING))


@app.get("/")
async def page() -> Any:
    return park(File(EXAMPLES / "auction/page/index.html"))


@app.get("/auction.js")
async def script() -> Any:
    return park(File(EXAMPLES / "auction/page/auction.js"))


@app.get("/style.css")
async def style() -> Any:
    return park(File(EXAMPLES / "style.css"))
