"""Channels that PostgreSQL feeds: NOTIFY becomes a message, on one connection for all; a lost connection is a gap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Serve
from .harness.asking import until_settled
from .harness.postgres import Postgres
from .harness.server import Server, run
from .harness.until import until

pytestmark = pytest.mark.also_in_perl


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    server = serve_for_all("shop_queries", database=postgres.url, listen=["orders", "Mixed-Case"])
    listeners(postgres)
    return server


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield shared
    shared.cleared()
    until_settled(shared)


def listeners(postgres: Postgres) -> list[dict[str, Any]]:
    """The connections that listen, as soon as there is one."""
    return until("somebody listens", lambda: [row for row in postgres.activity() if "listen" in row["query"].lower()])


def notify(postgres: Postgres, payload: str, channel: str = "orders") -> None:
    with postgres.connected() as connection:
        connection.execute("select pg_notify(%s, %s)", [channel, payload])


@pytest.mark.promise(5)
def test_who_waits_for_a_channel_gets_the_notification(server: Server, postgres: Postgres) -> None:
    polls = server.waiting("/next/orders", 20) + server.waiting("/next-then/orders", 1)
    events = server.events("/events/orders")
    server.until_parked(22)
    notify(postgres, "number 7")
    answers = [poll.answer() for poll in polls]
    assert {answer.text for answer in answers[:20]} == {"number 7"}
    assert answers[0]["content-type"] == "text/plain; charset=utf-8"
    assert answers[20].json() == {"value": "number 7", "gap": False}
    assert events.data(1) == ["number 7"]
    assert len(listeners(postgres)) == 1, "one connection for all"


@pytest.mark.promise(5)
def test_a_payload_that_is_json_says_so(server: Server, postgres: Postgres) -> None:
    poll, then = (server.connect().ask("GET", f"/{way}/orders") for way in ("next", "next-then"))
    server.until_parked(2)
    notify(postgres, '{"id": 7, "name": "ü"}')
    answer = poll.answer()
    assert (answer["content-type"], answer.json()) == ("application/json", {"id": 7, "name": "ü"})
    assert then.answer().json()["value"] == {"id": 7, "name": "ü"}


@pytest.mark.promise(5)
def test_notifications_come_in_their_order_and_none_twice(server: Server, postgres: Postgres) -> None:
    events = server.events("/events/orders")
    server.until_parked(1)
    with postgres.connected() as connection:
        for number in range(200):
            connection.execute("select pg_notify('orders', %s)", [str(number)])
    assert events.data(200) == [str(number) for number in range(200)]


def test_a_channel_is_called_exactly_as_it_is_written(server: Server, postgres: Postgres) -> None:
    poll = server.connect().ask("GET", "/next/Mixed-Case")
    server.until_parked(1)
    notify(postgres, "lower", "mixed-case")
    notify(postgres, "exact", "Mixed-Case")
    assert poll.answer().text == "exact"


def test_the_server_publishes_beside_it(server: Server) -> None:
    poll = server.connect().ask("GET", "/next/orders")
    server.until_parked(1)
    server.publish("orders", b"by hand")
    assert poll.answer().text == "by hand"


@pytest.mark.promise(5)
def test_a_lost_connection_is_told_as_a_gap_and_listening_goes_on(server: Server, postgres: Postgres) -> None:
    events = server.events("/events/orders")
    first = server.connect().ask("GET", "/next/orders")
    server.until_parked(2)
    notify(postgres, "before")
    cursor = first.answer()["etag"].strip('"')
    assert events.data(1) == ["before"]
    waiting = server.connect().ask("GET", "/next-then/orders")
    server.until_parked(2)
    (listener,) = listeners(postgres)
    before = len(re.findall("LISTEN is active again", server.log()))
    lost = "WARN LISTEN is not active, because its connection to the database default was lost; .*are missed: "
    assert len(re.findall(lost, server.log())) == before
    postgres.psql(f"select pg_terminate_backend({listener['pid']})")
    server.until_logged(lost, times=before + 1)
    server.until_logged("INFO LISTEN is active again on the database default", times=before + 1)
    told = events.next()
    assert told.event == "gap", told
    again, other = (server.connect().ask("GET", f"/next/orders{since}") for since in (f"?since={cursor}", ""))
    server.until_parked(4)
    notify(postgres, "behind")
    assert waiting.answer().json() == {"value": "behind", "gap": True}
    answer = again.answer()
    assert (answer.text, answer["parkade-gap"]) == ("behind", "true")
    answer = other.answer()
    assert (answer.text, answer.all("parkade-gap")) == ("behind", [])
    assert events.data(1) == ["behind"]


def test_an_announcement_is_seen_only_when_it_is_committed(server: Server, postgres: Postgres) -> None:
    poll = server.connect().ask("GET", "/next/orders")
    server.until_parked(1)
    with postgres.connected() as connection:
        connection.execute("begin")
        connection.execute("notify orders, 'taken back'")
        connection.execute("rollback")
        connection.execute("notify orders, 'said'")
    assert poll.answer().text == "said"


def test_a_query_of_the_application_announces_too(server: Server) -> None:
    poll = server.connect().ask("GET", "/next/orders")
    server.until_parked(1)
    assert server.post("/returned", json.dumps({"sql": "notify orders, 'by a query'"}).encode()).status == 200
    assert poll.answer().text == "by a query"


def test_listening_needs_a_postgresql() -> None:
    ended = run("serve", "tests/apps/basic.py", "--database", "sqlite:///x.db", "--listen", "orders")
    assert ended.returncode != 0
    assert "--listen needs a PostgreSQL" in ended.stderr
