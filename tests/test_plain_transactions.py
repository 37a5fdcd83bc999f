"""Transactions of plain code: views of WSGI, endpoints in threads, plain handlers and jobs, and their coroutines.

All or nothing, and rolled back when the client leaves, as `test_query_transactions` shows for coroutines.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.jobs import Ran
from .harness.postgres import Postgres
from .harness.server import APPS, Server
from .harness.until import BUSY, until

Step = dict[str, Any]

KINDS = {
    "native": ("paying_native", 1, ["/pay"]),
    "native in threads": ("paying_threads", 3, ["/pay", "/pay_in_loop"]),
    "flask": ("paying_flask", 1, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
    "flask in threads": ("paying_flask", 3, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
    "django": ("paying_django:application", 1, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
    "django in threads": ("paying_django:application", 3, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
    "django on asgi": ("paying_django:asgi", 1, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
    "fastapi": ("paying_fastapi", 1, ["/pay", "/pay_in_loop", "/pay_in_thread"]),
}
"""The application, its threads, and its views."""

WAYS = [(kind, view) for kind, (_, _, views) in KINDS.items() for view in views]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("ran"))


@pytest.fixture(scope="module")
def servers(serve_for_all: Serve, postgres: Postgres, ran: Ran) -> dict[str, Server]:
    """Those that were started so far, one for each kind."""
    return {}


@pytest.fixture(params=WAYS, ids=[f"{kind}{view}" for kind, view in WAYS])
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    kind, view = request.param
    return kind, view


@pytest.fixture
def view(way: tuple[str, str]) -> str:
    return way[1]


@pytest.fixture
def server(
    way: tuple[str, str], servers: dict[str, Server], serve_for_all: Serve, postgres: Postgres, ran: Ran
) -> Iterator[Server]:
    kind, _ = way
    yield from at_rest(started(kind, servers, serve_for_all, postgres, ran), postgres)


def started(kind: str, servers: dict[str, Server], serve: Serve, postgres: Postgres, ran: Ran) -> Server:
    if kind not in servers:
        name, threads, _ = KINDS[kind]
        target = str(APPS / name.replace(":", ".py:")) if ":" in name else name
        told: dict[str, Any] = {"workers": 1, "job_workers": 1, "database_slots": 3, "deadline": 30}
        servers[kind] = serve(
            target, threads=threads, database=postgres.url, jobs=postgres.url, folder=ran.file.parent, **told
        )
    return servers[kind]


def at_rest(server: Server, postgres: Postgres) -> Iterator[Server]:
    postgres.psql("drop table if exists accounts; create table accounts (id int primary key, amount int)")
    postgres.psql("insert into accounts values (1, 100), (2, 100)")
    postgres.psql("create table if not exists orders (line text)")
    yield server
    server.leave()
    server.until_zero()
    assert not in_transaction(postgres)


def pay(amount: int) -> list[Step]:
    return [
        {"sql": "update accounts set amount = amount - $1 where id = 1", "parameters": [amount]},
        {"sql": "update accounts set amount = amount + $1 where id = 2 returning amount", "parameters": [amount]},
    ]


def begin(server: Server, view: str, *steps: Step) -> Client:
    """A client that has requested these steps in one transaction."""
    client: Client = server.connect()
    return client.ask("POST", view, body=json.dumps(steps).encode())


def amounts(postgres: Postgres) -> list[int]:
    return [int(amount or "") for (amount,) in postgres.psql("select amount from accounts order by id")]


def in_transaction(postgres: Postgres) -> list[dict[str, Any]]:
    return [row for row in postgres.activity() if (row["state"] or "").startswith("idle in transaction")]


def test_the_end_of_the_block_commits(server: Server, view: str, postgres: Postgres) -> None:
    first, second = begin(server, view, *pay(30)).answer().json()
    assert (first["command"], first["count"]) == ("UPDATE", 1)
    assert second["rows"] == [{"amount": 130}]
    assert amounts(postgres) == [70, 130]


def test_an_exception_rolls_back(server: Server, view: str, postgres: Postgres) -> None:
    *_, last = begin(server, view, *pay(30), {"fail": True}).answer().json()
    assert last["error"] == "Fails"
    assert amounts(postgres) == [100, 100]
    assert not in_transaction(postgres)


def test_a_statement_that_fails_rolls_back(server: Server, view: str, postgres: Postgres) -> None:
    *_, last = begin(server, view, *pay(30), {"sql": "insert into accounts values (1, 1)"}).answer().json()
    assert (last["error"], last["effect"]) == ("QueryError", "none")
    assert amounts(postgres) == [100, 100]


def test_rows_of_megabytes_arrive(server: Server, view: str, postgres: Postgres) -> None:
    (found,) = (
        begin(server, view, {"sql": "select repeat('x', 1000) as x from generate_series(1, 3000)"}).answer().json()
    )
    assert (found["count"], {len(row["x"]) for row in found["rows"]}) == (3000, {1000})


def test_a_hundred_one_after_the_other(server: Server, view: str, postgres: Postgres) -> None:
    """Numbers of branches are used again; so are connections."""
    with server.connect() as client:
        for _ in range(100):
            assert client.ask("POST", view, body=json.dumps(pay(1)).encode()).answer().status == 200
    assert amounts(postgres) == [0, 200]


def test_many_at_a_time(server: Server, view: str, postgres: Postgres) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: begin(server, view, *pay(1)).answer().status, range(40)))
    assert answers == [200] * 40
    assert amounts(postgres) == [60, 140]


@pytest.mark.promise(3)
def test_a_client_that_leaves_in_a_statement_rolls_back(server: Server, view: str, postgres: Postgres) -> None:
    with postgres.locked(41):
        client = begin(server, view, *pay(30), {"sql": "select pg_advisory_xact_lock(41)"})
        postgres.until_locked(1)
        client.close()
        postgres.until_idle(BUSY)
    assert amounts(postgres) == [100, 100]
    assert begin(server, view, *pay(30)).answer().status == 200, "its worker goes on"
    assert "Traceback" not in server.log(), "nobody failed"


@pytest.mark.promise(3)
def test_a_client_that_leaves_between_two_statements_rolls_back(server: Server, view: str, postgres: Postgres) -> None:
    gate = server.new_gate()
    client = begin(server, view, *pay(30), {"gate": gate}, *pay(1))
    until("it is open", lambda: in_transaction(postgres))
    client.close()
    until("it is rolled back", lambda: not in_transaction(postgres), BUSY, told=postgres.activity)
    server.open_gate(gate)
    server.until_zero()
    assert amounts(postgres) == [100, 100]


def test_a_deadline_ends_it(server: Server, view: str, postgres: Postgres) -> None:
    with postgres.locked(42):
        wait = {"sql": "set local statement_timeout = 200"}, {"sql": "select pg_advisory_xact_lock(42)"}
        *_, last = begin(server, view, *pay(30), *wait).answer().json()
    assert (last["error"], last["reason"]) == ("QueryError", "refused")
    assert amounts(postgres) == [100, 100]


def test_its_worker_dies_and_it_is_rolled_back(server: Server, view: str, postgres: Postgres) -> None:
    with postgres.locked(43):
        client = begin(server, view, *pay(30), {"sql": "select pg_advisory_xact_lock(43)"})
        postgres.until_locked(1)
        for worker in server.worker_pids():
            os.kill(worker, signal.SIGKILL)
        assert client.answer().status == 502
        postgres.until_idle(BUSY)
    assert amounts(postgres) == [100, 100]


def test_jobs_are_enqueued_when_it_commits(server: Server, view: str, postgres: Postgres, ran: Ran) -> None:
    line = server.new_gate()
    begin(server, view, *pay(30), {"enqueue": f"lost {line}"}, {"fail": True}).answer()
    begin(server, view, *pay(30), {"enqueue": f"kept {line}"}).answer()
    until("it has run", lambda: f"kept {line}" in ran.lines())
    assert f"lost {line}" not in ran.lines()
    assert amounts(postgres) == [70, 130]


@pytest.fixture(params=["flask", "flask in threads"])
def flask(
    request: pytest.FixtureRequest, servers: dict[str, Server], serve_for_all: Serve, postgres: Postgres, ran: Ran
) -> Iterator[Server]:
    yield from at_rest(started(request.param, servers, serve_for_all, postgres, ran), postgres)


def test_a_response_ends_what_a_thread_of_it_is_doing(flask: Server, postgres: Postgres) -> None:
    gate = flask.new_gate()
    with postgres.locked(44):
        client = begin(flask, f"/leaves_a_thread/{gate}", *pay(30), {"sql": "select pg_advisory_xact_lock(44)"})
        postgres.until_locked(1)
        flask.open_gate(gate)
        assert client.answer().text == "answered"
        postgres.until_idle(BUSY)
    assert amounts(postgres) == [100, 100]
    assert begin(flask, "/pay", *pay(30)).answer().status == 200, "its worker goes on"


def test_a_response_in_pieces_may_have_one(flask: Server, postgres: Postgres) -> None:
    assert flask.get("/streamed").text == "begin\n1\n2\n"
    assert not in_transaction(postgres)


@pytest.mark.parametrize("kind", list(KINDS))
def test_functions_after_a_wait_and_jobs_have_them(
    kind: str, servers: dict[str, Server], serve_for_all: Serve, postgres: Postgres, ran: Ran
) -> None:
    for server in at_rest(started(kind, servers, serve_for_all, postgres, ran), postgres):
        assert server.get("/totals").text.strip('"') == "200"
        line = f"a job of {kind}"
        postgres.psql(f"delete from orders where line = '{line}'")
        told = server.post(f"/enqueue/{line.replace(' ', '%20')}")
        assert told.status == 200, told.text
        until("both have run", lambda line=line: line in ran.lines())
        assert len(postgres.psql(f"select 1 from orders where line = '{line}'")) == 1


def test_a_second_one_at_a_time_is_an_error_that_says_so(flask: Server, postgres: Postgres) -> None:
    (last,) = begin(flask, "/pay", {"begin": True}).answer().json()
    assert last == {
        "error": "WaitError",
        "text": "this request already has an open transaction: end that before you begin another",
    }
    (_, _, last) = begin(flask, "/pay", *pay(30), {"rollback": True}, *pay(1)).answer().json()
    assert last == {"error": "WaitError", "text": "this transaction has ended: begin another"}
    assert amounts(postgres) == [100, 100]
