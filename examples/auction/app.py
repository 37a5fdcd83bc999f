"""An auction: bids go to everybody who waits, in one order, and the order decides who leads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from parkade import BEGINNING, App, File, Status, Wait, channel

app = App()
app.channel("auction/*", count=1_000, age=3_600)  # an hour of bids for those who come late
app.files("/", "page")  # the folder next to this file: index.html for /, and what it needs
app.get("/style.css", File(Path(__file__).parents[1] / "style.css"))


@dataclass(frozen=True)
class Bid:
    bidder: Annotated[str, Meta(min_length=1, max_length=40)]
    amount: Annotated[int, Meta(ge=1, le=1_000_000)]


@app.post("/auction/{lot}")
def bid(lot: str, body: Bid) -> Status:
    channel(f"auction/{lot}").publish(body)
    return Status(202)


@app.get("/auction/{lot}/next")
def next_bid(lot: str) -> Wait:
    return channel(f"auction/{lot}").next(timeout=30)


@app.get("/auction/{lot}/bids")
def bids(lot: str) -> Wait:
    return channel(f"auction/{lot}").stream(since=BEGINNING)
