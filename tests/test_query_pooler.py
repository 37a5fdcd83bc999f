"""Behind a pooler in transaction mode: nothing relies on a session, and no cancel hits another query."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator

import pytest

from .conftest import Serve
from .harness.asking import LOCK, WAYS, ask, database, left_at_rest, until_running, until_settled, value, waiting
from .harness.client import Client
from .harness.pooler import Pooler
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import BUSY, until

pytestmark = pytest.mark.also_in_perl

TRANSACTIONS = pytest.mark.python_only("transactions")

SLOTS = 3


@pytest.fixture(scope="module")
def pooler(postgres: Postgres) -> Iterator[Pooler]:
    with Pooler(postgres, processes=SLOTS) as pooler:
        yield pooler


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, pooler: Pooler) -> Server:
    return serve_for_all("shop_queries", workers=2, database=pooler.url(), database_slots=SLOTS)


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


def test_it_is_recognised_and_shown(server: Server) -> None:
    assert value(server, "select 7") == 7
    told = database(server)
    assert (told["state"], told["is_pooled"]) == ("up", True)


@pytest.fixture(scope="module")
def mood(postgres: Postgres) -> None:
    """A type that only this database has."""
    postgres.psql("drop type if exists mood; create type mood as enum ('sad', 'glad')")


@pytest.mark.usefixtures("mood")
@pytest.mark.parametrize("way", WAYS)
def test_rows_parameters_and_types_are_the_same(server: Server, way: str) -> None:
    sql = "select $1::int8 as n, $2::text[] as t, $3::jsonb as j, 'glad'::mood as m, array['sad', null]::mood[] as a"
    for _ in range(2 * SLOTS):
        answer = ask(server, way, sql, 7, ["a", None], {"k": [1]})
        found = {"n": 7, "t": ["a", None], "j": {"k": [1]}, "m": "glad", "a": ["sad", None]}
        assert (answer.status, answer.json()) == (200, [found])


def test_every_python_value_goes_there_and_back(server: Server) -> None:
    assert server.get("/values").status == 200
    assert server.get("/many/5000/1000").json()[-1] == {"n": 5000, "text": "x" * 1000}


def test_what_fails_is_told(server: Server) -> None:
    for sql, state in [("select 1/0", "22012"), ("selec", "42601"), ("select * from nowhere", "42P01")]:
        assert ask(server, "caught", sql).json()["sqlstate"] == state
    assert ask(server, "caught", "select $1::int").json()["reason"] == "parameters"
    assert value(server, "select 7") == 7


def test_nothing_is_kept_prepared_and_no_session_is_changed(server: Server, pooler: Pooler) -> None:
    for _ in range(2 * SLOTS):
        value(server, "select 'not kept'")
    parsed = [body for body in pooler.said if body.startswith(b"P") and b"not kept" in body]
    assert len(parsed) >= 2 * SLOTS
    assert all(body.startswith(b"P\0") for body in parsed), "a statement has a name"
    assert value(server, "select count(*) from pg_prepared_statements") == 0
    assert value(server, "show client_connection_check_interval") == "0"


def steps(server: Server, *sql: str) -> Client:
    client: Client = server.connect()
    return client.ask("POST", "/transaction", body=json.dumps({"steps": [{"sql": one} for one in sql]}).encode())


@TRANSACTIONS
def test_a_transaction_stays_on_its_process_and_commits(server: Server, postgres: Postgres) -> None:
    postgres.psql("drop table if exists pooled; create table pooled (n int primary key)")
    pid = "select pg_backend_pid() as pid"
    found = steps(server, pid, "insert into pooled values (1)", pid).answer().json()
    assert found[0] == found[2]
    assert steps(server, "insert into pooled values (2)", "insert into pooled values (1)").answer().status == 409
    assert postgres.psql("select n from pooled") == [["1"]]


@TRANSACTIONS
@pytest.mark.promise(3)
def test_a_transaction_whose_client_leaves_is_rolled_back(server: Server, postgres: Postgres) -> None:
    postgres.psql("drop table if exists pooled; create table pooled (n int primary key)")
    with postgres.locked(91):
        client = steps(server, "insert into pooled values (1)", "select 1 from pg_advisory_xact_lock(91)")
        postgres.until_locked(1)
        client.close()
        postgres.until_idle(BUSY)
    assert postgres.psql("select n from pooled") == []


@pytest.mark.promise(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_query_of_a_client_that_leaves_ends_and_its_connection_is_used_again(
    server: Server, postgres: Postgres, way: str
) -> None:
    with postgres.locked(92):
        clients = waiting(server, way, SLOTS, LOCK, 92)
        postgres.until_locked(SLOTS)
        before = database(server)["counts"]
        for client in clients:
            client.close()
        postgres.until_idle(BUSY)
        until_settled(server)
        after = database(server)["counts"]
    assert after["cancels_sent"] - before["cancels_sent"] >= SLOTS
    repeated = after["cancels_repeated"] - before["cancels_repeated"]
    assert after["connects"] - before["connects"] <= repeated, "only what was cancelled twice is closed"
    assert value(server, "select 7") == 7


@pytest.mark.promise(3)
def test_a_deadline_ends_the_query_and_says_so(server: Server, postgres: Postgres) -> None:
    with postgres.locked(93):
        told = ask(server, "caught", LOCK, 93, deadline=0.1).json()
        assert (told["reason"], told["effect"], told["status"]) == ("deadline", "cancelled", 504)
        postgres.until_idle(BUSY)


@pytest.mark.promise(3)
def test_a_cancel_that_the_pooler_sends_on_too_late_hits_nobody(serve: Serve, postgres: Postgres) -> None:
    goes_on = threading.Event()
    with Pooler(postgres, processes=1) as pooler:
        server = serve("shop_queries", database=pooler.url(), database_slots=1)
        pooler.before_cancel = lambda: goes_on.wait(20)
        with postgres.locked(94):
            client = waiting(server, "returned", 1, LOCK, 94)[0]
            postgres.until_locked(1)
            client.close()
            server.until(lambda status: status["databases"]["default"]["counts"]["cancels_sent"] >= 1)
        # It ends by itself, and the pooler has its process back. The next statement runs when the cancel arrives.
        postgres.until_idle()
        with postgres.locked(95):
            client = waiting(server, "returned", 1, LOCK, 95)[0]
            postgres.until_locked(1)
            goes_on.set()
            until("the cancels are gone", lambda: pooler.is_quiet)
        assert client.answer().json() == [{"lock": "got it"}]
        counts = database(server)["counts"]
        assert (counts["connects"], counts["cancels_late"], counts["strays"]) == (2, 1, 0)
        assert pooler.cancels == 0


@pytest.mark.promise(3)
def test_a_query_that_waits_in_the_pooler_ends_there(serve: Serve, postgres: Postgres) -> None:
    with Pooler(postgres, processes=1) as pooler, postgres.locked(96):
        server = serve("shop_queries", database=pooler.url(), database_slots=2)
        # A new connection needs a free process for its handshake: both are made while it is free. Quick statements
        # might all find the first connection idle.
        slow = "select pg_sleep(0.02)::text"
        assert all(client.answer().status == 200 for client in waiting(server, "returned", 20, slow))
        server.until(lambda status: status["databases"]["default"]["slots"] == {"idle": 2})
        first, second = (waiting(server, "returned", 1, LOCK, 96)[0] for _ in range(2))
        until_running(server, 2)
        postgres.until_locked(1)
        for client in (first, second):
            client.close()
        postgres.until_idle(BUSY)
        until_settled(server)
        assert value(server, "select 7") == 7


def test_listening_is_refused_with_advice(serve: Serve, pooler: Pooler) -> None:
    server = serve("shop_queries", database=pooler.url(), listen="orders")
    server.until_logged("LISTEN needs its own server process: give the address of PostgreSQL itself")
    assert value(server, "select 7") == 7


@pytest.mark.promise(3)
def test_under_load_no_query_is_hit_that_somebody_waits_for(
    serve: Serve, server: Server, pooler: Pooler, postgres: Postgres
) -> None:
    chance = random.Random(7)
    begun = len(postgres.log_lines())

    def leave() -> None:
        client = waiting(server, chance.choice(WAYS), 1, "/* leaves */ select pg_sleep(0.01)::text")[0]
        chance.choice([client.close, client.reset])()

    for number in range(150):
        leave()
        answer = ask(server, chance.choice(WAYS), "/* stays */ select $1::int as n", number)
        assert (answer.status, answer.json()) == (200, [{"n": number}])
    until_settled(server)
    hit = [line for line in postgres.log_lines()[begun:] if "STATEMENT:" in line and "/* stays */" in line]
    assert hit == []
