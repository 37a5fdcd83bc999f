"""The auction as an application of Flask: plain views that wait, and occupy no worker meanwhile."""

from pathlib import Path
from typing import Any

from flask import Flask, request

from parkade import BEGINNING, File, channel, limit_history, park

EXAMPLES = Path(__file__).parents[1]

app = Flask(__name__, static_folder=None)
limit_history("auction/*", count=1_000, age=3_600)  # an hour of bids for those who come late


@app.post("/auction/<lot>")
def bid(lot: str) -> tuple[str, int]:
    body = request.get_json()
    match body:
        case {"bidder": str(bidder), "amount": int(amount)} if 1 <= len(bidder) <= 40 and 1 <= amount <= 1_000_000:
            channel(f"auction/{lot}").publish({"bidder": bidder, "amount": amount})
            return "", 202
        case _:
            return "a bid has a bidder and an amount", 422


@app.get("/auction/<lot>/next")
def next_bid(lot: str) -> Any:
    return park(channel(f"auction/{lot}").next(timeout=30))


@app.get("/auction/<lot>/bids")
def bids(lot: str) -> Any:
    return park(channel(f"auction/{lot}").stream(since=BEGINNING))


@app.get("/")
def page() -> Any:
    return park(File(EXAMPLES / "auction/page/index.html"))


@app.get("/auction.js")
def script() -> Any:
    return park(File(EXAMPLES / "auction/page/auction.js"))


@app.get("/style.css")
def style() -> Any:
    return park(File(EXAMPLES / "style.css"))
