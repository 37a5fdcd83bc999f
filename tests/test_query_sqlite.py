"""SQLite, embedded and from a file: the same ways and shapes, cancelled as well, with one writer among processes."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.asking import (
    SLOW,
    WAYS,
    ask,
    asking,
    database,
    until_queued,
    until_running,
    until_settled,
    value,
    waiting,
)
from .harness.client import Client
from .harness.server import Server, run, whom
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

TRANSACTIONS = pytest.mark.python_only("transactions")

READERS = 4

SLOW_WRITE = """
    insert into counted with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 0
"""
"""Runs for ever in the writer."""


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    server = serve_for_all("shop_queries", workers=2, result_limit="4MiB")
    ask(server, "returned", "create table counted (n int)")
    ask(server, "returned", "create table shop (id integer primary key, name text unique not null)")
    return server


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    ask(shared, "returned", "delete from shop")
    ask(shared, "returned", "insert into shop values (1, 'one'), (2, 'two')")
    yield shared
    shared.cleared()
    until_settled(shared)


# Where the file is


def test_the_embedded_database_is_made_by_its_first_query(serve: Serve) -> None:
    server = serve("shop_queries")
    state = server.folder / ".parkade"
    assert server.get("/hola/you").status == 200
    assert not state.exists(), "an application without queries leaves nothing behind"
    assert database(server)["state"] == "untried"
    assert server.admin("GET", "/health/ready")[0] == 200
    assert value(server, "select 7") == 7
    assert (state / "default.db").is_file()
    assert database(server)["product"].startswith("SQLite 3")


def test_someone_who_expects_another_database_is_told_which_one_it_was(serve: Serve, tmp_path: Path) -> None:
    hint = "(in the SQLite database of the state folder; --database names another)"
    server = serve("shop_queries")
    ask(server, "returned", "create table t (n int primary key)")
    ask(server, "returned", "insert into t values (7)")
    for statement in ("select * from sales", "select now() from t", "selekt 7"):
        assert ask(server, "returned", statement).status == 500
    until("the log", lambda: server.log().count(hint) == 3)
    assert f"no such table: sales {hint}" in server.log()
    assert ask(server, "returned", "insert into t values (7)").status == 409
    named = serve("shop_queries", database=f"sqlite:///{tmp_path}/shop.db")
    assert ask(named, "returned", "select * from sales").status == 500
    until("the log", lambda: "no such table: sales" in named.log())
    assert hint not in named.log() + server.log().rpartition("selekt")[2]


def test_the_embedded_database_outlives_the_server(serve: Serve, tmp_path: Path) -> None:
    first = serve("shop_queries", state=tmp_path / "kept")
    ask(first, "returned", "create table t (n int)")
    ask(first, "returned", "insert into t values (7)")
    assert first.stop() == 0
    second = serve("shop_queries", state=tmp_path / "kept")
    assert value(second, "select n from t") == 7


def test_what_was_told_to_be_written_outlives_a_core_that_was_killed(serve: Serve, tmp_path: Path) -> None:
    first = serve("shop_queries", state=tmp_path)
    ask(first, "returned", "create table t (n int)")
    assert ask(first, "returned", "insert into t values (7)").json() == {"command": "INSERT", "rows": 1}
    first.kill()
    assert value(serve("shop_queries", state=tmp_path), "select n from t") == 7


@pytest.mark.parametrize("form", ["sqlite:///shop.db", "sqlite:shop.db", "sqlite:///{folder}/shop.db"])
def test_a_file_is_named_by_a_url(serve: Serve, tmp_path: Path, form: str) -> None:
    url = form.format(folder=tmp_path)
    server = serve("shop_queries", database=url, folder=tmp_path)
    assert ask(server, "returned", "create table t (n int)").status == 200
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("t",)]


def test_several_files_have_names(serve: Serve, tmp_path: Path) -> None:
    server = serve("shop_queries", database=[f"{name}=sqlite:///{tmp_path}/{name}.db" for name in ("one", "two")])
    for name in ("one", "two"):
        ask(server, "returned", "create table t as select ? as name", name, database=name)
    assert [value(server, "select name from t", database=name) for name in ("one", "two")] == ["one", "two"]
    assert ask(server, "returned", "select name from t").status == 500, "the embedded one is still the default"


@pytest.mark.parametrize("what", ["a folder", "no database", "a folder that cannot be made"])
def test_a_file_that_cannot_be_opened_is_named_in_full_to_the_operator(serve: Serve, tmp_path: Path, what: str) -> None:
    file = tmp_path / "file.db"
    if what == "a folder":
        file.mkdir()
    elif what == "no database":
        file.write_bytes(b"this is no database, but it is long enough to have a header" * 20)
    else:
        file.write_bytes(b"a file")
        file = file / "below.db"
    server = serve("shop_queries", database=f"sqlite:///{file}")
    answer = ask(server, "returned", "select 1 from sqlite_master")
    assert answer.status in (500, 503)
    assert str(tmp_path) not in answer.text
    server.until_logged(re.escape(str(file)))
    assert server.get("/hola/you").status == 200


# The same as with PostgreSQL


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("shape", "sql", "found"),
    [
        ("rows", "select id, name from shop order by id", [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]),
        ("rows", "select 1 as n where false", []),
        ("rows", "select null as n, 1.5 as f, x'00ff' as b, 'ü' as t", [{"n": None, "f": 1.5, "b": "AP8=", "t": "ü"}]),
        ("one", "select 1 as n", {"n": 1}),
        ("value", "select 9007199254740993", 9007199254740993),
    ],
)
def test_each_way_gives_each_shape(server: Server, way: str, shape: str, sql: str, found: object) -> None:
    answer = ask(server, way, sql, shape=shape)
    assert (answer.status, answer["content-type"], answer.json()) == (200, "application/json", found)


@pytest.mark.parametrize("way", WAYS)
def test_a_statement_without_rows_tells_what_it_did(server: Server, way: str) -> None:
    assert ask(server, way, "update shop set name = name || '!'").json() == {"command": "UPDATE", "rows": 2}
    assert ask(server, way, "delete from shop where id = 2 returning name").json() == [{"name": "two!"}]


def test_parameters_arrive_by_both_kinds_of_placeholders(server: Server) -> None:
    told = ask(server, "returned", "select $1 as a, $2 as b, $3 as c, $1 as d", 1, "x", None, shape="one").json()
    assert told == {"a": 1, "b": "x", "c": None, "d": 1}
    assert ask(server, "returned", "select ? as a, ? as b", 1.5, True, shape="one").json() == {"a": 1.5, "b": 1}
    assert value(server, "select json_extract($1, '$.a[1]')", {"a": [1, 2]}) == 2


def test_a_large_result_is_streamed_whole(server: Server) -> None:
    sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) select i from n"
    client = waiting(server, "returned", 1, sql)[0]
    opened = client.opening()
    assert opened["transfer-encoding"] == "chunked"
    assert json.loads(b"".join(client.pieces(opened))) == [{"i": i} for i in range(1, 50_001)]
    assert ask(server, "then", sql).json() == [{"i": i} for i in range(1, 50_001)]


def test_many_requests_share_one_execution(server: Server) -> None:
    before = server.status()["counts"]["queries"]
    clients = waiting(server, "returned", 50, SLOW, shared="slow")
    server.until_parked(50)
    assert [query["waiting"] for query in until_running(server, 1)] == [50]
    assert server.status()["counts"]["queries"] == before + 1
    for client in clients[:49]:
        client.close()
    server.until_parked(1)
    assert not until_running(server, 1)[0]["cancelled"]


@pytest.mark.parametrize(
    ("sql", "parameters", "status", "fault"),
    [
        ("selec 'secret'", [], 500, "application"),
        ("select 'secret' from nowhere", [], 500, "application"),
        ("select $1, $2", ["secret"], 500, "application"),
        ("select $1", ["secret", "secret"], 500, "application"),
        ("select 1 as n, 2 as n", [], 500, "application"),
        ("select 1; select 2", [], 500, "application"),
        ("insert into shop values (1, 'secret')", [], 409, "client"),
        ("insert into shop values (3, null)", [], 400, "client"),
        ("select $1", [[1, 2]], 500, "application"),
        ("attach database '/tmp/secret' as x", [], 500, "application"),
    ],
)
def test_a_bad_statement_is_a_clear_error_that_does_not_quote_it(
    server: Server, sql: str, parameters: list[object], status: int, fault: str
) -> None:
    for way in WAYS:
        answer = ask(server, way, sql, *parameters)
        assert (answer.status, answer.json()["effect"]) == (status, "none"), answer.text
        assert way != "returned" or answer.json()["fault"] == fault
        assert "secret" not in answer.text
    assert value(server, "select 7") == 7


# Clients that leave


@pytest.mark.promise(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_query_of_a_client_that_leaves_ends_in_the_database(server: Server, way: str) -> None:
    clients = waiting(server, way, READERS, SLOW)
    until_running(server, READERS)
    for client in clients:
        client.close()
    until_settled(server, BUSY)
    server.until_zero()
    assert value(server, "select 7") == 7


@pytest.mark.promise(3)
def test_a_write_whose_client_leaves_changes_nothing_and_frees_the_writer(server: Server) -> None:
    client = waiting(server, "returned", 1, SLOW_WRITE)[0]
    until_running(server, 1)
    client.close()
    until_settled(server, BUSY)
    assert ask(server, "returned", "insert into counted values (1)").status == 200
    assert ask(server, "returned", "delete from counted").json()["rows"] == 1


@pytest.mark.promise(3)
def test_what_still_queues_leaves_the_queue(server: Server) -> None:
    running = waiting(server, "returned", READERS, SLOW)
    until_running(server, READERS)
    queued = waiting(server, "awaited", 20, SLOW)
    until_queued(server, 20)
    for client in queued:
        client.close()
    until_queued(server, 0)
    assert len(until_running(server, READERS)) == READERS
    for client in running:
        client.close()


@pytest.mark.promise(3)
def test_who_leaves_in_the_middle_of_its_rows_ends_the_statement(server: Server) -> None:
    client = waiting(server, "returned", 1, f"{SLOW.rpartition(' select ')[0]} select i, hex(zeroblob(500)) from n")[0]
    opened = client.opening()
    assert next(client.pieces(opened)).startswith(b'[{"i":1,')
    client.close()
    until_settled(server, BUSY)


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_ends_the_statement(server: Server, way: str) -> None:
    answer = ask(server, way, SLOW, deadline=0.3)
    assert (answer.status, answer.json()["effect"]) == (504, "cancelled")
    until_settled(server, BUSY)


def test_an_operator_cancels_a_query(server: Server) -> None:
    client = waiting(server, "returned", 1, SLOW)[0]
    (query,) = until_running(server, 1)
    assert query["statement"] == SLOW
    assert run("cancel", str(query["id"]), *whom(server), XDG_RUNTIME_DIR=str(server.folder)).returncode == 0
    answer = client.answer()
    assert (answer.status, answer.json()["effect"]) == (503, "cancelled")


@pytest.mark.promise(3)
def test_no_interrupt_hits_the_query_of_another(server: Server) -> None:
    for n in range(60):
        victims = waiting(server, WAYS[n % 3], 2, SLOW)
        others = [server.connect().ask("POST", "/returned", body=asking("select $1 as n", n)) for _ in range(4)]
        for client in victims:
            client.close()
        assert [client.answer().json() for client in others] == [[{"n": n}]] * 4
        for client in others:
            client.close()


@pytest.mark.promise(3)
def test_sigterm_ends_what_runs(serve: Serve) -> None:
    server = serve("shop_queries", query_grace="200ms", grace="20s")
    clients = [waiting(server, way, 1, SLOW)[0] for way in WAYS]
    until_running(server, 3)
    watch = Stopwatch()
    server.process.terminate()
    assert [client.answer().status for client in clients] == [503] * 3
    assert server.ended() == 0
    assert watch.seconds < BUSY


# Transactions


def begin(server: Server, *steps: dict[str, Any], **options: object) -> Client:
    client: Client = server.connect()
    return client.ask("POST", "/transaction", body=json.dumps({"steps": steps, **options}).encode())


def names(server: Server) -> str:
    told: str = value(server, "select group_concat(name, ' ') from (select name from shop order by id)")
    return told


RENAME = {"sql": "update shop set name = 'new' where id = 1"}


@TRANSACTIONS
def test_a_transaction_commits_at_the_end_of_its_block_or_not_at_all(server: Server) -> None:
    gate = server.new_gate()
    client = begin(server, RENAME, {"gate": gate})
    server.until_logged(f"holds at {gate}")
    assert names(server) == "one two"
    server.open_gate(gate)
    assert client.answer().json()[0] == {"command": "UPDATE", "rows": 1}
    assert names(server) == "new two"
    assert begin(server, {"sql": "delete from shop"}, {"status": 418}).answer().status == 418
    assert names(server) == "new two"


@TRANSACTIONS
@pytest.mark.promise(3)
def test_a_client_that_leaves_rolls_its_transaction_back(server: Server) -> None:
    gate = server.new_gate()
    client = begin(server, RENAME, {"gate": gate})
    server.until_logged(f"holds at {gate}")
    waits = begin(server, {"sql": "update shop set name = 'second' where id = 2"})
    until_queued(server, 1)
    client.close()
    assert waits.answer().status == 200, "the writer is free again"
    assert names(server) == "one second"


@TRANSACTIONS
@pytest.mark.promise(3)
def test_a_client_that_leaves_in_a_statement_of_its_transaction_rolls_back(server: Server) -> None:
    client = begin(server, RENAME, {"sql": SLOW_WRITE})
    server.until(
        lambda status: [query for query in status["databases"]["default"]["running"] if "counted" in query["statement"]]
    )
    client.close()
    until_settled(server, BUSY)
    assert names(server) == "one two"


# Two servers, one file


def test_two_servers_on_one_file_wait_for_each_other(serve: Serve, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/both.db"
    servers = [serve("shop_queries", database=url) for _ in range(2)]
    ask(servers[0], "returned", "create table t (server int, n int)")
    clients = [
        server.connect().ask("POST", "/returned", body=asking("insert into t values ($1, $2)", at, n))
        for n in range(50)
        for at, server in enumerate(servers)
    ]
    assert {client.answer().status for client in clients} == {200}
    assert value(servers[0], "select count(*) from t") == value(servers[1], "select count(*) from t") == 100


def test_who_waits_for_the_lock_of_another_process_is_cancelled_all_the_same(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    server = serve("shop_queries", database=f"sqlite:///{file}")
    ask(server, "returned", "create table t (n int)")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin immediate")
        client = waiting(server, "returned", 1, "insert into t values (1)")[0]
        until_running(server, 1)
        client.close()
        until_settled(server, BUSY)
        answer = ask(server, "returned", "insert into t values (2)", deadline=0.3)
        assert (answer.status, answer.json()["effect"]) == (504, "cancelled")
        patient = waiting(server, "returned", 1, "insert into t values (3)")[0]
        until_running(server, 1)
        assert value(server, "select count(*) from t") == 0, "who only reads waits for nobody"
        other.execute("rollback")
        assert patient.answer().status == 200
    assert value(server, "select group_concat(n) from t") == "3"


def test_a_lock_that_is_held_for_too_long_is_told_to_try_again(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "locked.db"
    server = serve("shop_queries", database=f"sqlite:///{file}")
    ask(server, "returned", "create table t (n int)")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin immediate")
        watch = Stopwatch()
        client = waiting(server, "returned", 1, "insert into t values (1)")[0]
        answer = client.answer(seconds=15)
        assert 4 < watch.seconds < 10
        assert (answer.status, "retry-after" in answer) == (503, True)
        other.execute("rollback")
    assert ask(server, "returned", "insert into t values (1)").status == 200


@pytest.mark.promise(8)
def test_who_stops_reading_holds_a_reader_no_longer_than_a_stall_and_no_memory(serve: Serve) -> None:
    server = serve("shop_queries", stall_timeout="1s")
    value(server, "select 1")
    before = server.resident_bytes
    client = server.connect(receive_buffer=4096, segment=1460)
    client.ask(
        "POST", "/returned", body=asking(f"{SLOW.rpartition(' select ')[0]} select i, hex(zeroblob(500)) from n")
    )
    until_running(server, 1)
    until("its reader is free", lambda: not database(server)["running"])
    assert server.resident_bytes - before < 8 << 20
