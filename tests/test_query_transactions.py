"""Transactions: all or nothing, one connection, rolled back when the client leaves.

The worker for Perl has no transactions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Serve
from .harness.asking import ask, left_at_rest, until_running, until_settled, value
from .harness.client import Client
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import BUSY, until

Step = dict[str, Any]


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    return serve_for_all("shop_queries", workers=1, database=postgres.url, database_slots=3)


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    postgres.psql("drop table if exists accounts; create table accounts (id int primary key, amount int)")
    postgres.psql("insert into accounts values (1, 100), (2, 100)")
    yield from left_at_rest(shared, postgres)


def pay(amount: int, payer: int = 1, payee: int = 2) -> list[Step]:
    return [
        {"sql": "update accounts set amount = amount - $1 where id = $2", "parameters": [amount, payer]},
        {"sql": "update accounts set amount = amount + $1 where id = $2", "parameters": [amount, payee]},
    ]


def begin(server: Server, *steps: Step, way: str = "transaction", **options: object) -> Client:
    """A client that has requested these steps in one transaction."""
    client: Client = server.connect()
    return client.ask("POST", f"/{way}", body=json.dumps({"steps": steps, **options}).encode())


def amounts(postgres: Postgres) -> list[int]:
    return [int(amount or "") for (amount,) in postgres.psql("select amount from accounts order by id")]


def in_transaction(postgres: Postgres) -> list[dict[str, Any]]:
    return [row for row in postgres.activity() if (row["state"] or "").startswith("idle in transaction")]


UPDATED = {"command": "UPDATE", "rows": 1}


def test_the_end_of_the_block_commits(server: Server, postgres: Postgres) -> None:
    assert begin(server, *pay(30)).answer().json() == [UPDATED, UPDATED]
    assert amounts(postgres) == [70, 130]


def test_nobody_sees_it_before_that(server: Server, postgres: Postgres) -> None:
    gate = server.new_gate()
    client = begin(server, *pay(30), {"gate": gate})
    until("it is open", lambda: in_transaction(postgres))
    assert amounts(postgres) == [100, 100]
    server.until(lambda status: status["databases"]["default"]["slots"].get("held") == 1)
    server.open_gate(gate)
    assert client.answer().status == 200
    assert amounts(postgres) == [70, 130]


def test_an_exception_rolls_back_and_goes_on(server: Server, postgres: Postgres) -> None:
    answer = begin(server, *pay(30), {"status": 418}).answer()
    assert (answer.status, answer.json()["detail"]) == (418, "as the test says")
    assert amounts(postgres) == [100, 100]
    assert not in_transaction(postgres)


def test_a_statement_that_fails_rolls_back(server: Server, postgres: Postgres) -> None:
    answer = begin(server, *pay(30), {"sql": "insert into accounts values (1, 1)"}).answer()
    assert (answer.status, answer.json()["effect"]) == (409, "none")
    assert amounts(postgres) == [100, 100]


def test_it_is_taken_back_where_the_handler_says_so(server: Server, postgres: Postgres) -> None:
    assert begin(server, *pay(30), {"rollback": True}).answer().status == 200
    assert amounts(postgres) == [100, 100]
    (_, _, _, late) = begin(server, *pay(1), {"rollback": True}, *pay(1)[:1], way="caught-transaction").answer().json()
    assert late["error"] == "WaitError"


@pytest.mark.promise(3)
def test_a_client_that_leaves_between_two_statements_rolls_back(server: Server, postgres: Postgres) -> None:
    client = begin(server, *pay(30), {"gate": server.new_gate()})
    until("it is open", lambda: in_transaction(postgres))
    client.close()
    until("it is rolled back", lambda: not in_transaction(postgres), BUSY, told=postgres.activity)
    server.until_zero()
    assert amounts(postgres) == [100, 100]


@pytest.mark.promise(3)
def test_a_client_that_leaves_in_a_statement_rolls_back(server: Server, postgres: Postgres) -> None:
    with postgres.locked(41):
        client = begin(server, *pay(30), {"sql": "select pg_advisory_xact_lock(41)"})
        postgres.until_locked(1)
        client.close()
        postgres.until_idle(BUSY)
        until_settled(server, BUSY)
    assert amounts(postgres) == [100, 100]
    assert not postgres.psql("select 1 from pg_locks where relation = 'accounts'::regclass")


def test_two_requests_have_two_transactions(server: Server, postgres: Postgres) -> None:
    gates = [server.new_gate(), server.new_gate()]
    clients = [begin(server, *pay(10, at + 1, at + 1)[:1], {"gate": gate}) for at, gate in enumerate(gates)]
    until("both are open", lambda: len(in_transaction(postgres)) == 2)
    server.until(lambda status: status["databases"]["default"]["slots"].get("held") == 2)
    for gate, client in zip(gates, clients, strict=True):
        server.open_gate(gate)
        assert client.answer().json()[0] == UPDATED
    assert amounts(postgres) == [90, 90]


def test_one_request_has_one_transaction_at_a_time(server: Server, postgres: Postgres) -> None:
    first, refused, last = (
        begin(server, pay(30)[0], {"begin": True}, pay(30)[1], way="caught-transaction").answer().json()
    )
    assert (first, last) == (UPDATED, UPDATED)
    assert refused["error"] == "WaitError"
    assert amounts(postgres) == [70, 130]


def test_a_query_outside_of_it_runs_on_another_connection(server: Server, postgres: Postgres) -> None:
    see = "select amount, pg_backend_pid() as pid from accounts where id = 1"
    inside, outside = begin(server, pay(30)[0], {"sql": see}, {"outside": see}).answer().json()[1:]
    assert (inside[0]["amount"], outside[0]["amount"]) == (70, 100)
    assert inside[0]["pid"] != outside[0]["pid"]


def test_a_statement_behind_one_that_failed_is_refused_and_so_is_the_commit(server: Server, postgres: Postgres) -> None:
    told = (
        begin(server, pay(30)[0], {"sql": "select 1 / 0"}, {"sql": "select 1"}, way="caught-transaction")
        .answer()
        .json()
    )
    assert [step["sqlstate"] for step in told[1:3]] == ["22012", "25P02"]
    assert "ended by" in told[-1], "the handler has not been told that nothing was committed"
    assert amounts(postgres) == [100, 100]


def test_a_deadline_within_it_ends_the_statement_and_the_transaction(server: Server, postgres: Postgres) -> None:
    with postgres.locked(42):
        answer = begin(server, pay(30)[0], {"sql": "select pg_advisory_xact_lock(42)", "deadline": 0.3}).answer()
        assert (answer.status, answer.json()["effect"]) == (504, "cancelled")
        postgres.until_idle(BUSY)
    assert amounts(postgres) == [100, 100]


def test_one_of_two_that_cannot_be_serialized_is_told_to_try_again(server: Server, postgres: Postgres) -> None:
    gate = server.new_gate()
    read = {"sql": "select sum(amount) from accounts"}
    clients = [begin(server, read, {"gate": gate}, pay(10, at, at)[0], isolation="serializable") for at in (1, 2)]
    until("both have read", lambda: ["sum(" in row["query"] for row in in_transaction(postgres)] == [True, True])
    server.open_gate(gate)
    answers = sorted((client.answer() for client in clients), key=lambda answer: answer.status)
    assert [answer.status for answer in answers] == [200, 503]
    assert answers[1]["retry-after"] == "1"
    assert answers[1].json()["effect"] == "none"
    assert sorted(amounts(postgres)) == [90, 100]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_it_is_of_the_kind_that_was_asked_for(server: Server, isolation: str) -> None:
    show = {"sql": "select current_setting('transaction_isolation') as level"}
    assert begin(server, show, isolation=isolation).answer().json() == [[{"level": isolation}]]


def test_one_that_only_reads_does_not_write(server: Server, postgres: Postgres) -> None:
    answer = begin(server, *pay(30), read_only=True).answer()
    assert answer.status == 500
    assert amounts(postgres) == [100, 100]


def test_a_statement_may_not_end_it(server: Server, postgres: Postgres) -> None:
    for word in ("commit", "rollback"):
        assert begin(server, pay(30)[0], {"sql": word}, pay(30)[1]).answer().status == 500
        assert sum(amounts(postgres)) in (200, 170), word
        until_settled(server)
        postgres.psql("update accounts set amount = 100")


def test_begin_as_text_leaks_no_transaction_to_whoever_comes_next(server: Server, postgres: Postgres) -> None:
    for word in ("begin", "start transaction", "begin isolation level serializable"):
        ask(server, "returned", word)
        ask(server, "returned", "insert into accounts values (3, 1) on conflict do nothing")
        until_settled(server)
        assert not in_transaction(postgres)
        assert postgres.psql("delete from accounts where id = 3 returning id") == [["3"]], word


def test_waiting_for_a_connection_to_begin_has_the_deadline_too(
    serve: Serve, postgres: Postgres, server: Server
) -> None:
    small = serve("shop_queries", database=postgres.url, database_slots=1, deadline="500ms")
    with postgres.locked(43):
        client = small.connect().ask(
            "POST", "/returned", body=json.dumps({"sql": "select pg_advisory_xact_lock(43)", "deadline": 0}).encode()
        )
        until_running(small, 1)
        answer = begin(small, *pay(30)).answer()
        assert answer.status == 504
        assert not client.is_readable()
    assert amounts(postgres) == [100, 100]
    assert client.answer().status == 200
    assert value(small, "select 7") == 7


STALE = {
    "a table changes": "alter table accounts add column more text",
    "everything is deallocated": "do $$ begin execute 'deallocate all'; end $$",
}


@pytest.mark.parametrize("reason", STALE)
def test_a_stale_statement_fails_one_transaction_at_most(
    serve: Serve, server: Server, postgres: Postgres, reason: str
) -> None:
    """`server` is for its tables; two connections of a separate server have the statement prepared."""
    own = serve("shop_queries", workers=1, database=postgres.url, database_slots=2)
    gate = own.new_gate()
    select = {"sql": "select * from accounts where id = 1"}
    both = [begin(own, select, {"gate": gate}) for _ in range(2)]
    own.until(lambda status: status["databases"]["default"]["slots"].get("held") == 2)
    own.open_gate(gate)
    assert [client.answer().status for client in both] == [200, 200]
    assert ask(own, "returned", STALE[reason]).status == 200
    answers = [begin(own, select).answer() for _ in range(6)]
    assert [answer.json()["effect"] for answer in answers if answer.status != 200] in ([], ["none"])
    assert begin(own, select).answer().status == 200


@pytest.mark.parametrize("sql", ["discard all", "deallocate all"])
def test_what_is_deallocated_within_or_outside_of_transactions_fails_one_at_most(server: Server, sql: str) -> None:
    select = {"sql": "select id from accounts order by id"}
    assert begin(server, select).answer().status == 200
    outside = ask(server, "returned", sql)
    assert outside.status == 200, outside.text
    assert begin(server, select).answer().status == 200, "whose session was changed, has no connection any more"
    inside = begin(server, select, {"sql": sql}, select, way="caught-transaction").answer()
    assert inside.status == 200, inside.text
    assert [one for one in inside.json() if isinstance(one, dict) and "reason" in one], "it fails, and says so"
    for _ in range(4):
        assert begin(server, select).answer().status == 200
