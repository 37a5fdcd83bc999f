"""A decoded dataclass has all of its fields, so that encoding it again loses none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pytest

from parkade import App, Request, Status, channel
from parkade._validation.records import whole
from parkade.testing import Client


@dataclass
class Bid:
    amount: int
    name: str = ""
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lot:
    best: Bid
    reserve: int | None = None
    bids: dict[str, list[Bid]] = field(default_factory=dict)


@dataclass(slots=True)
class Slotted:
    amount: int
    name: str = ""


@dataclass
class Node:
    name: str = "node"
    children: list[Node] = field(default_factory=list)
    parent: Any = None

    def __post_init__(self) -> None:
        for child in self.children:
            child.parent = self.children  # ties a knot


class Auction(msgspec.Struct):
    lot: Lot | None = None
    next: Auction | None = None


BID = b'{"amount":1,"name":"","tags":[]}'


@pytest.mark.parametrize(
    ("kind", "sent", "written"),
    [
        (Bid, b'{"amount":1}', BID),
        (Bid, b'{"amount":1,"name":"x"}', b'{"amount":1,"name":"x","tags":[]}'),
        (list[Bid], b'[{"amount":1}]', b"[" + BID + b"]"),
        (dict[str, tuple[Bid, int]], b'{"a":[{"amount":1},2]}', b'{"a":[' + BID + b",2]}"),
        (Annotated[Bid, msgspec.Meta(description="annotated")] | None, b'{"amount":1}', BID),
        (Lot, b'{"best":{"amount":1}}', b'{"best":' + BID + b',"reserve":null,"bids":{}}'),
        (
            Auction,
            b'{"next":{"lot":{"best":{"amount":1},"bids":{"a":[{"amount":1}]}}}}',
            b'{"lot":null,"next":{"lot":{"best":' + BID + b',"reserve":null,"bids":{"a":[' + BID + b']}},"next":null}}',
        ),
        (Slotted, b'{"amount":1}', b'{"amount":1,"name":""}'),
    ],
    ids=str,
)
def test_what_was_not_sent_is_written_all_the_same(kind: Any, sent: bytes, written: bytes) -> None:
    assert msgspec.json.encode(whole(msgspec.json.Decoder(kind).decode, kind)(sent)) == written


def test_objects_that_are_tied_to_each_other_are_completed_once() -> None:
    node = whole(msgspec.json.Decoder(Node).decode, Node)(b'{"children":[{},{"name":"b"}]}')
    assert [vars(child)["name"] for child in node.children] == ["node", "b"]


@pytest.mark.parametrize("kind", [int, str, list[int], dict[str, Any], Any, Slotted], ids=str)
def test_where_nothing_can_be_missing_nothing_is_done(kind: Any) -> None:
    decode = msgspec.json.Decoder(kind).decode
    assert whole(decode, kind) is decode


def test_a_body_is_published_and_returned_with_its_defaults() -> None:
    app = App()

    @app.post("/publish")
    def publish(body: Bid) -> Status:
        channel("c").publish(body)
        return Status(202)

    @app.post("/json")
    def json(request: Request) -> Any:
        return request.json(Bid)

    app.get("/next", channel("c").next())
    with Client(app) as client:
        parked = client.get("/next")
        client.post("/publish", json={"amount": 1})
        assert parked.body == BID
        assert client.post("/json", json={"amount": 1}).body == BID
