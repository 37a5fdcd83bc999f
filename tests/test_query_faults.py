"""Databases that are down, restarted, cut off, slow or full: a clear error at once, and everything recovers."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .conftest import Serve
from .harness.asking import (
    LOCK,
    WAYS,
    ask,
    asking,
    database,
    left_at_rest,
    until_queued,
    until_running,
    until_settled,
    value,
    waiting,
)
from .harness.gate import Gate
from .harness.postgres import Postgres, quiet_port
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

TRANSACTIONS = pytest.mark.python_only("transactions")

SLOTS = 2


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    server = serve_for_all("shop_queries", database=postgres.url, database_slots=SLOTS)
    postgres.psql("create table if not exists shop (id int primary key, name text not null check (name <> ''))")
    postgres.psql("insert into shop values (1, 'one') on conflict do nothing")
    return server


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


@pytest.fixture(scope="module")
def shared_fragile() -> Iterator[Postgres]:
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        yield postgres


@pytest.fixture
def fragile(shared_fragile: Postgres) -> Iterator[Postgres]:
    """A PostgreSQL for this file only, which may be restarted and halted; it runs at the start of each test."""
    yield shared_fragile
    try:
        assert shared_fragile.pid
    except FileNotFoundError:
        shared_fragile.start()


def without(serve: Serve, *databases: str) -> Server:
    """A server that is not ready, because one of its databases cannot be reached."""
    server: Server = serve("shop_queries", database=databases, is_ready=False)
    until("its private socket", server.private.exists)
    server.until(lambda status: [worker for worker in status["workers"] if worker["state"] in ("ready", "busy")])
    return server


# A database that is down


@pytest.mark.promise(10)
def test_a_server_starts_without_its_database_and_says_so_until_it_comes(serve: Serve, fragile: Postgres) -> None:
    fragile.halt()
    server = without(serve, fragile.url)
    server.until(lambda status: status["databases"]["default"]["state"] == "down", 15)
    server.until_logged(
        "cannot connect to the database .*, retrying: .*; statements wait for a connection for 5 s, then they fail"
    )
    code, told = server.admin("GET", "/health/ready")
    assert (code, "default" in json.loads(told)["reason"]) == (503, True)
    assert server.admin("GET", "/health/live")[0] == 200
    assert server.get("/hola/you").text == "Hola you", "what needs no database works"
    # At first it might only be restarting; then it counts as down.
    assert ask(server, "returned", "select 1").status == 503
    for way in WAYS:
        watch = Stopwatch()
        answer = ask(server, way, "select 1")
        assert (answer.status, answer.json()["effect"]) == (503, "none")
        assert "retry-after" in answer
        assert watch.seconds < BUSY, way
    assert database(server)["why"]
    server.until_logged("the database .* cannot be reached: ")
    log = server.log()
    assert log.index(", retrying: ") < log.index("cannot be reached: ")
    assert log.count(", retrying: ") == 1
    assert 'sqlstate="-"' not in log
    fragile.start()
    server.until(lambda status: status["databases"]["default"]["state"] == "up", 15)
    server.until_logged("connected to the database .* again")
    assert server.admin("GET", "/health/ready")[0] == 200
    assert value(server, "select 7") == 7


@pytest.mark.promise(10)
def test_a_database_that_stands_still_is_told_as_down_until_it_goes_on(serve: Serve, fragile: Postgres) -> None:
    server = serve("shop_queries", database=fragile.url, database_slots=SLOTS)
    assert value(server, "select 1") == 1
    with fragile.standing_still():
        assert server.admin("GET", "/health/ready")[0] == 200, "nobody has asked it anything"
        client = waiting(server, "returned", 1, "select 7 as n")[0]
        until("it is not ready", lambda: server.admin("GET", "/health/ready")[0] == 503, 20)
        told = database(server)
        assert (told["state"], "does not respond" in told["why"]) == ("down", True)
    assert client.answer(seconds=20).json() == [{"n": 7}]
    until("it is ready", lambda: server.admin("GET", "/health/ready")[0] == 200, 20)
    assert database(server)["state"] == "up"
    server.until_logged("the database .* responds again")


def test_a_statement_that_takes_long_is_no_outage(serve: Serve, fragile: Postgres) -> None:
    server = serve("shop_queries", database=fragile.url, database_slots=1)
    client = waiting(server, "returned", 1, "select 7 as n from pg_sleep(6)")[0]
    until_busy(fragile, 1)
    states = set()
    while not client.is_readable(0.2):
        states.add((server.admin("GET", "/health/ready")[0], database(server)["state"]))
    assert states == {(200, "up")}


def test_a_server_that_stood_still_while_it_was_connecting_answers(serve: Serve, postgres: Postgres) -> None:
    with Gate(postgres) as gate:
        gate.sessions.to_client.hold()
        server = serve("shop_queries", database=gate.url(), database_slots=1)
        client = waiting(server, "returned", 1, "select 7 as n")[0]
        gate.sessions.to_client.until_held()
        os.kill(server.pid, signal.SIGSTOP)
        gate.sessions.release()
        watch = Stopwatch()
        until("it would have given up", lambda: watch.seconds > 7)
        os.kill(server.pid, signal.SIGCONT)
        assert client.answer(seconds=20).json() == [{"n": 7}]
        assert database(server)["counts"]["connects_failed"] == 0


SLEEP = "select pg_sleep(60)"
"""A lock would not work here: the restart would release it by ending its holder."""


def until_busy(postgres: Postgres, count: int) -> None:
    """Waits until this many of these run."""
    until("they sleep", lambda: sum(row["wait_event"] == "PgSleep" for row in postgres.active()) == count)


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_restart_fails_what_runs_and_nothing_that_queues(serve: Serve, fragile: Postgres, mode: str) -> None:
    with Gate(fragile) as gate:
        server = serve("shop_queries", database=gate.url(), database_slots=SLOTS)
        running = [waiting(server, way, 1, SLEEP)[0] for way in ("returned", "awaited")]
        until_busy(fragile, SLOTS)
        queued = [waiting(server, WAYS[at % 3], 1, "select 7 as n")[0] for at in range(100)]
        until_queued(server, 100)
        before = gate.sessions.count
        fragile.restart(mode)
        answers = [client.answer() for client in running]
        assert [answer.status for answer in answers] == [503, 503]
        assert "retry-after" in answers[0]
        assert [client.answer(seconds=20).json() for client in queued] == [[{"n": 7}]] * 100
        until_settled(server)
        told = database(server)
        assert told["counts"]["connects"] <= 2 * (SLOTS + 1)
        assert gate.sessions.count - before < 50, "no stampede while it is away"
        assert told["state"] == "up"


def test_what_was_running_says_what_is_known_of_it(serve: Serve, fragile: Postgres) -> None:
    server = serve("shop_queries", database=fragile.url, database_slots=SLOTS)
    client = waiting(server, "caught", 1, SLEEP)[0]
    until_busy(fragile, 1)
    fragile.restart("immediate")
    told = client.answer().json()
    assert told["effect"] in ("unknown", "none")
    assert told["status"] == 503
    server.until(lambda status: status["databases"]["default"]["state"] == "up")
    assert value(server, "select 7") == 7


def test_a_connection_that_is_ended_while_it_is_idle_fails_nobody(server: Server, postgres: Postgres) -> None:
    assert value(server, "select 1") == 1
    for _ in range(3):
        pids = {row["pid"] for row in postgres.activity()}
        postgres.psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'parkade'")
        until("they are gone", lambda pids=pids: not pids & {row["pid"] for row in postgres.activity()})
        assert value(server, "select 7") == 7


@TRANSACTIONS
def test_a_transaction_whose_connection_is_ended_is_an_error_and_nothing_else(
    server: Server, postgres: Postgres
) -> None:
    gate = server.new_gate()
    steps = [{"sql": "insert into shop values (9, 'nine')"}, {"gate": gate}, {"sql": "select 1"}]
    client = server.connect().ask("POST", "/transaction", body=json.dumps({"steps": steps}).encode())
    (row,) = until("it is open", lambda: [row for row in postgres.activity() if row["state"] == "idle in transaction"])
    postgres.psql(f"select pg_terminate_backend({row['pid']})")
    server.until(lambda status: "held" not in status["databases"]["default"]["slots"])
    server.open_gate(gate)
    assert client.answer().status == 503
    server.until_logged("a query failed: .*; nothing has changed .*POST /transaction")
    assert value(server, "select count(*) from shop where id = 9") == 0


# Cut off


def test_a_network_that_is_cut_ends_at_the_deadline_of_the_query(serve: Serve, postgres: Postgres) -> None:
    with Gate(postgres) as gate:
        server = serve("shop_queries", database=gate.url(), database_slots=len(WAYS))
        with postgres.locked(57):
            clients = waiting(server, "returned", len(WAYS), LOCK, 57)
            postgres.until_locked(len(WAYS))  # so that there are connections
        assert [client.answer().status for client in clients] == [200] * len(WAYS)
        gate.sessions.vanish()
        gate.cancels.vanish()
        watch = Stopwatch()
        clients = [waiting(server, way, 1, "select 2", deadline=0.5)[0] for way in WAYS]
        answers = [client.answer() for client in clients]
        assert [(answer.status, answer.json()["effect"]) for answer in answers] == [(504, "unknown")] * len(WAYS)
        assert watch.seconds < 0.5 + BUSY
        gate.sessions.release()
        gate.cancels.release()
        until("the next query works", lambda: ask(server, "returned", "select 7", deadline=3).status == 200, 20)
        until_settled(server, 20)


def test_connections_that_are_cut_are_made_again(serve: Serve, postgres: Postgres) -> None:
    with Gate(postgres) as gate, postgres.locked(53):
        server = serve("shop_queries", database=gate.url(), database_slots=SLOTS)
        clients = waiting(server, "returned", SLOTS, LOCK, 53)
        queued = waiting(server, "returned", 5, "select 7 as n")
        postgres.until_locked(SLOTS)
        gate.cut()
        answers = [client.answer() for client in clients]
        assert [(answer.status, answer.json()["effect"]) for answer in answers] == [(503, "unknown")] * SLOTS
        server.until_logged("a query failed: .* was lost .*; whether it was carried out is not known ", times=SLOTS)
        assert [client.answer().json() for client in queued] == [[{"n": 7}]] * 5
        postgres.until_idle(2.0)


def test_a_network_that_is_slow_only_takes_longer(serve: Serve, postgres: Postgres) -> None:
    with Gate(postgres) as gate:
        gate.sessions.delay(0.02)
        server = serve("shop_queries", database=gate.url(), database_slots=SLOTS)
        clients = [server.connect().ask("GET", f"/number/{n}") for n in range(30)]
        assert [client.answer().json() for client in clients] == [[{"n": n}] for n in range(30)]


@pytest.mark.promise(8)
def test_over_the_limit_of_the_queue_is_refused_at_once(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=postgres.url, database_slots=1, database_queue=5)
    with postgres.locked(54):
        first = waiting(server, "returned", 1, LOCK, 54)[0]
        postgres.until_locked(1)
        queued = waiting(server, "returned", 5, "select 7 as n")
        until_queued(server, 5)
        for way in WAYS:
            watch = Stopwatch()
            answer = ask(server, way, "select 8")
            assert (answer.status, answer["retry-after"], watch.seconds < BUSY) == (503, "1", True)
            assert "too many queries" in answer.json()["detail"]
        until_running(server, 1)
    assert first.answer().status == 200
    assert [client.answer().json() for client in queued] == [[{"n": 7}]] * 5


def test_a_pool_full_of_stuck_queries_lets_each_go_at_its_deadline(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=postgres.url, database_slots=SLOTS, deadline="1s")
    with postgres.locked(55):
        clients = waiting(server, "returned", 20, LOCK, 55)
        assert {client.answer().status for client in clients} == {504}
        until_settled(server)
        assert value(server, "select 7") == 7


def test_a_server_that_refuses_cancels_is_told_with_its_name(serve: Serve, fragile: Postgres) -> None:
    cancels = "execute on function pg_cancel_backend(int)"
    fragile.psql(f"drop role if exists plain; create role plain login; revoke {cancels} from public")
    try:
        server = serve("shop_queries", database=fragile.url_of(user="plain"), database_slots=1)
        assert ask(server, "returned", SLEEP, deadline=0.3).status == 504
        name = f"postgres at 127.0.0.1:{fragile.port}"
        line = server.until_logged(f"WARN the database {name} failed to carry out a batch of cancels; .*").group()
        assert f"permission denied for function pg_cancel_backend database={name} " in line
    finally:
        fragile.psql(f"grant {cancels} to public")
    until_settled(server, 20)


# Limits of the database


def test_a_time_limit_of_the_database_is_not_taken_for_a_cancel(serve: Serve, postgres: Postgres) -> None:
    url = f"{postgres.url}&options=-c%20statement_timeout%3D200"
    server = serve("shop_queries", database=url)
    with postgres.locked(56):
        answer = ask(server, "returned", LOCK, 56)
        assert (answer.status, answer.json()["fault"], answer.json()["effect"]) == (504, "operator", "none")
    assert database(server)["counts"]["strays"] == 0
    assert database(server)["counts"]["cancels_sent"] == 0


def test_what_is_locked_by_another_is_told_to_try_again(server: Server, postgres: Postgres) -> None:
    with postgres.connected() as other:
        other.execute("begin")
        other.execute("select * from shop for update")
        answer = ask(server, "returned", "select * from shop for update nowait")
        assert (answer.status, answer["retry-after"]) == (503, "1")
        other.execute("rollback")


@TRANSACTIONS
def test_a_deadlock_ends_one_of_two(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=f"{postgres.url}&options=-c%20deadlock_timeout%3D100", database_slots=SLOTS)
    postgres.psql("drop table if exists dead; create table dead (id int primary key, n int)")
    postgres.psql("insert into dead values (1, 0), (2, 0)")
    gates = [server.new_gate() for _ in range(2)]
    clients = []
    for gate, order in zip(gates, ((1, 2), (2, 1)), strict=True):
        updates = [{"sql": f"update dead set n = n + 1 where id = {row}"} for row in order]
        steps = [updates[0], {"gate": gate}, updates[1]]
        clients.append(server.connect().ask("POST", "/transaction", body=json.dumps({"steps": steps}).encode()))

    def have_a_row() -> bool:
        waiting = [row for row in postgres.activity() if row["state"] == "idle in transaction"]
        return sum("update dead" in row["query"] for row in waiting) == 2

    until("both have updated a row", have_a_row, told=postgres.activity)
    for gate in gates:
        server.open_gate(gate)
    answers = sorted((client.answer() for client in clients), key=lambda answer: answer.status)
    assert [answer.status for answer in answers] == [200, 503]
    assert postgres.psql("select n from dead") == [["1"], ["1"]]


def test_a_database_that_has_no_connection_left_is_told_as_overloaded(serve: Serve, fragile: Postgres) -> None:
    fragile.psql("drop role if exists crowded; create role crowded login connection limit 0")
    server = serve("shop_queries", database=fragile.url_of(user="crowded"))
    answer = ask(server, "returned", "select 1")
    assert answer.status == 503
    assert "retry-after" in answer
    fragile.psql("alter role crowded connection limit 5")
    server.until(lambda status: status["databases"]["default"]["state"] == "up", 15)
    assert value(server, "select 7") == 7


def test_a_port_where_nobody_speaks_postgresql_is_a_database_that_is_down(serve: Serve) -> None:
    port = quiet_port()
    server = without(serve, f"postgres://nobody@127.0.0.1:{port}/x?sslmode=disable")
    server.until(lambda status: status["databases"]["default"]["state"] == "down", 15)
    assert re.search(r"refused", database(server)["why"])


def test_one_database_that_is_away_leaves_the_others_alone(serve: Serve, postgres: Postgres) -> None:
    away = f"away=postgres://nobody@127.0.0.1:{quiet_port()}/x?sslmode=disable"
    server = without(serve, postgres.url, away)
    server.until(lambda status: status["databases"]["away"]["state"] == "down", 15)
    assert server.post("/returned", asking("select 1", database="away")).status == 503
    assert value(server, "select 7") == 7
