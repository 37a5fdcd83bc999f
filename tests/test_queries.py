"""Queries in the three ways to use them: shapes, parameters, large results, deadlines, sharing, several databases."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

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
from .harness.load import Load
from .harness.postgres import Postgres
from .harness.server import Server, run, whom
from .harness.until import BUSY, Stopwatch

pytestmark = pytest.mark.also_in_perl

SLOTS = 4


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    postgres.psql("drop database if exists other with (force)")
    postgres.psql("create database other")
    databases = [postgres.url, f"other={postgres.url_of('other')}", "lite=sqlite:///lite.db"]
    return serve_for_all("shop_queries", workers=2, database=databases, database_slots=SLOTS, result_limit="4MiB")


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


@pytest.fixture
def table(postgres: Postgres, request: pytest.FixtureRequest) -> str:
    """A table of the test's own, with three rows."""
    name = "t_" + re.sub(r"\W+", "_", request.node.name)[-40:]
    postgres.psql(f"""
        drop table if exists "{name}";
        create table "{name}" (id int primary key, name text unique, amount int not null check (amount >= 0));
        insert into "{name}" values (1, 'one', 10), (2, 'two', 20), (3, 'three', 30);
    """)
    return f'"{name}"'


# Three ways, three shapes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("shape", "sql", "found"),
    [
        ("rows", "select n, 'x' || n as x from generate_series(1, 2) n", [{"n": 1, "x": "x1"}, {"n": 2, "x": "x2"}]),
        ("rows", "select 1 as n where false", []),
        ("rows", "select null as n, true as b, 1.5::float8 as f", [{"n": None, "b": True, "f": 1.5}]),
        ("one", "select 1 as n, 'ü' as word", {"n": 1, "word": "ü"}),
        ("value", "select 42", 42),
        ("value", "select array[1, 2]", [1, 2]),
    ],
)
def test_each_way_gives_each_shape(server: Server, way: str, shape: str, sql: str, found: object) -> None:
    answer = ask(server, way, sql, shape=shape)
    assert (answer.status, answer["content-type"], answer.json()) == (200, "application/json", found)


@pytest.mark.parametrize("shape", ["one", "value"])
def test_no_row_where_one_was_wanted_is_not_found(server: Server, shape: str) -> None:
    answer = ask(server, "returned", "select 1 where false", shape=shape)
    assert (answer.status, answer.json()["fault"]) == (404, "client")
    for way in ("then", "awaited"):
        assert ask(server, way, "select 1 where false", shape=shape).json() is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", ["one", "value"])
def test_a_second_row_where_one_was_wanted_is_an_error(server: Server, way: str, shape: str) -> None:
    answer = ask(server, way, "select generate_series(1, 2)", shape=shape)
    assert answer.status == 500
    assert "several rows" in answer.json()["detail"]


@pytest.mark.parametrize("way", WAYS)
def test_a_statement_without_rows_tells_what_it_did(server: Server, way: str, table: str) -> None:
    told = ask(server, way, f"update {table} set amount = amount + 1").json()
    assert told == {"command": "UPDATE", "rows": 3}
    assert ask(server, way, f"create index on {table} (amount)").json()["command"] == "CREATE INDEX"
    assert ask(server, way, f"delete from {table} where id = 3 returning name").json() == [{"name": "three"}]


def test_a_route_that_is_a_query_needs_no_worker(server: Server) -> None:
    before = sum(worker["requests"] for worker in server.workers())
    assert server.get("/standing").json() == [{"n": 1, "word": "hola"}]
    assert server.get("/standing-value").json() == 1
    assert server.get("/standing-nobody").status == 404
    assert sum(worker["requests"] for worker in server.workers()) == before


def test_head_has_the_fields_of_get_and_no_body(server: Server) -> None:
    for target in ("/standing", "/number/7"):
        got = server.get(target)
        client = server.connect().ask("HEAD", target)
        answer = client.answer(head=True)
        assert (answer.status, answer["content-length"]) == (200, got["content-length"])
        assert client.get(target).body == got.body, "nothing of a body is in the way"


def test_head_of_a_large_result_ends_with_its_fields(server: Server) -> None:
    client = server.connect().ask("HEAD", "/many/20000/100")
    assert client.answer(head=True).status == 200
    assert client.get("/number/7").json() == [{"n": 7}]


def test_queries_go_over_http_2_too(server: Server) -> None:
    client = server.connect2()
    assert client.get("/number/7").json() == [{"n": 7}]
    streams = [client.ask("POST", f"/{way}", body=asking("select n from generate_series(1, 3) n")) for way in WAYS]
    assert [client.answer(stream).json() for stream in streams] == [[{"n": 1}, {"n": 2}, {"n": 3}]] * 3
    assert len(client.get("/many/20000/100").json()) == 20_000


# Large results


def test_a_large_result_is_streamed_whole(server: Server) -> None:
    client = server.connect().ask("GET", "/many/50000/100")
    opened = client.opening()
    assert opened["transfer-encoding"] == "chunked"
    rows = json.loads(b"".join(client.pieces(opened)))
    assert [row["n"] for row in rows] == list(range(1, 50_001))
    assert {row["text"] for row in rows} == {"x" * 100}
    assert server.status()["memory"]["result_bytes"] == 0


@pytest.mark.promise(8)
def test_a_stream_takes_the_same_memory_however_long_it_is(server: Server) -> None:
    server.get("/many/20000/100")
    before = server.resident_bytes
    client = server.connect().ask("GET", "/many/300000/100")
    count = most = 0
    for piece in client.pieces(client.opening()):
        count += piece.count(b'"n":')
        most = max(most, server.resident_bytes)
    assert count > 299_000, "all but those that were cut in two"
    assert most - before < 8 << 20


@pytest.mark.parametrize("way", ["then", "awaited"])
@pytest.mark.parametrize("rows", [600, 1200, 20_000])
def test_a_result_that_does_not_fit_into_its_outcome_comes_whole(server: Server, way: str, rows: int) -> None:
    answer = ask(server, way, "select n, repeat('y', 100) as text from generate_series(1, $1::int) n", rows)
    assert answer.json() == [{"n": n, "text": "y" * 100} for n in range(1, rows + 1)]


@pytest.mark.parametrize("way", ["then", "awaited"])
def test_a_result_over_the_limit_is_an_error_and_its_slot_comes_back(server: Server, way: str) -> None:
    answer = ask(server, way, "select repeat('z', 1000) from generate_series(1, 1000000)")
    assert (answer.status, answer.json()["detail"]) == (500, "the result is larger than the server allows")
    until_settled(server)
    assert len(ask(server, "returned", "select repeat('z', 1000) as z from generate_series(1, 6000)").json()) == 6000


# Parameters


def test_every_kind_of_parameter_arrives(server: Server, language: str) -> None:
    """Perl has fewer kinds."""
    expected = {
        "none": None,
        "bool": True,
        "int": -(2**63),
        "huge": str(2**70),
        "float": 0.1,
        "infinite": "Infinity",
        "str": "grüße 'quoted' \\ \"double\" \n $1",
        "bytes": "AP9c",
        "bytearray": "YWI=",
        "datetime": "2026-11-22T02:04:05Z",
        "naive": "2026-11-22 03:04:05",
        "date": "2026-11-22",
        "time": "03:04:05",
        "timedelta": "1 day 00:00:02",
        "decimal": "1.50",
        "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "enum": "large",
        "array": [1, None, 3],
        "texts": ["a,b", 'c"d', "NULL", None, "{}", "\\"],
        "matrix": [[1, 2], [3, 4]],
        "dict": {"a": [1, None]},
        "json": [1, "two"],
    }
    in_perl = ("none", "bool", "int", "float", "str", "bytes", "array", "texts", "matrix", "dict")
    names = expected if language == "python" else in_perl
    assert server.get("/values").json() == {name: expected[name] for name in names}


@pytest.mark.python_only("types of values")
def test_what_comes_back_to_python_has_its_type(server: Server) -> None:
    kinds = server.get("/kinds").json()
    assert {name: kinds[name] for name in ("huge", "bytes", "datetime", "date", "time", "decimal", "uuid", "dict")} == {
        "huge": "Decimal",
        "bytes": "bytes",
        "datetime": "datetime",
        "date": "date",
        "time": "time",
        "decimal": "Decimal",
        "uuid": "UUID",
        "dict": "dict",
    }


@pytest.mark.parametrize("way", WAYS)
def test_int8_is_a_number_or_where_it_is_asked_for_a_string(server: Server, way: str) -> None:
    sql = "select 9007199254740993::int8 as n"
    assert ask(server, way, sql, shape="one").json() == {"n": 9007199254740993}
    assert ask(server, way, sql, shape="one", int8="string").json() == {"n": "9007199254740993"}


def test_a_statement_that_is_used_again_takes_other_parameters(server: Server) -> None:
    with Load(server.address, "/number/1", "/number/2", "/number/3") as load:
        load.goes_on(300)
    assert not load.failures
    assert set(load.bodies) == {b'[{"n":1}]', b'[{"n":2}]', b'[{"n":3}]'}


def test_a_prepared_statement_outlives_a_change_of_its_table(server: Server, postgres: Postgres, table: str) -> None:
    sql = f"select * from {table} where id = $1"
    for _ in range(2 * SLOTS):
        assert ask(server, "returned", sql, 1).json() == [{"id": 1, "name": "one", "amount": 10}]
    postgres.psql(f"alter table {table} alter amount type bigint, add more text")
    for _ in range(2 * SLOTS):
        assert ask(server, "returned", sql, 1).json() == [{"id": 1, "name": "one", "amount": 10, "more": None}]


# Several databases


def test_a_query_goes_to_the_database_that_it_names(server: Server) -> None:
    assert value(server, "select current_database()") == "postgres"
    assert value(server, "select current_database()", database="other") == "other"
    assert value(server, "select sqlite_version() is not null", database="lite") == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_no_database_has_is_told_to_the_operator(server: Server, way: str) -> None:
    answer = ask(server, way, "select 1", database="nowhere")
    assert answer.status == 500
    assert "nowhere" not in answer.text
    server.until_logged("no database is named .*nowhere.*--database nowhere=")


# Deadlines


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_ends_the_statement_in_the_database(server: Server, postgres: Postgres, way: str) -> None:
    with postgres.locked(1):
        client = waiting(server, way, 1, LOCK, 1, deadline=0.3)[0]
        postgres.until_locked(1)
        answer = client.answer()
        assert (answer.status, answer.json()["effect"]) == (504, "cancelled")
        assert "deadline" in answer.json()["detail"]
        postgres.until_idle(1.0)
        until_settled(server, 1.0)
    assert value(server, "select 7") == 7


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_counts_the_time_in_the_queue(server: Server, postgres: Postgres, way: str) -> None:
    with postgres.locked(2):
        waiting(server, "returned", SLOTS, LOCK, 2)
        postgres.until_locked(SLOTS)
        watch = Stopwatch()
        answer = ask(server, way, "select 1", deadline=0.3)
        assert (answer.status, answer.json()["effect"]) == (504, "cancelled")
        assert 0.3 <= watch.seconds < 0.3 + BUSY
        server.leave()


def test_the_deadline_of_a_route_is_that_of_its_query(server: Server, postgres: Postgres) -> None:
    with postgres.locked(3):
        assert ask(server, "deadline", LOCK, 3).status == 504
    assert ask(server, "deadline", "select 1 as n").json() == [{"n": 1}]


def test_a_deadline_of_zero_is_none(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=postgres.url, deadline="300ms")
    with postgres.locked(4):
        patient = waiting(server, "returned", 1, LOCK, 4, deadline=0)[0]
        postgres.until_locked(1)
        assert ask(server, "returned", LOCK, 4).status == 504
        assert not patient.is_readable()
    assert patient.answer().json() == [{"lock": "got it"}]


def test_what_was_caught_says_what_became_of_it(server: Server, postgres: Postgres, table: str) -> None:
    with postgres.locked(5):
        told = ask(
            server, "caught", f"update {table} set amount = 0 where pg_advisory_xact_lock(5) is not null", deadline=0.3
        )
        assert {name: told.json()[name] for name in ("reason", "effect", "status")} == {
            "reason": "deadline",
            "effect": "cancelled",
            "status": 504,
        }
    assert ask(server, "caught", f"insert into {table} values (1, 'x', 1)").json()["sqlstate"] == "23505"
    assert value(server, f"select sum(amount) from {table}") == 60


# One execution for many


def executions(server: Server) -> int:
    count: int = server.status()["counts"]["queries"]
    return count


def test_two_hundred_requests_cost_one_execution(server: Server, postgres: Postgres) -> None:
    before = executions(server)
    with postgres.locked(6):
        clients = [waiting(server, WAYS[at % 3], 1, LOCK, 6, shared="many")[0] for at in range(200)]
        server.until_parked(200)
        postgres.until_locked(1)
        assert [query["waiting"] for query in database(server)["running"]] == [200]
    assert {client.answer().body for client in clients} == {b'[{"lock":"got it"}]'}
    assert executions(server) == before + 1


def test_a_shared_execution_ends_when_the_last_has_gone(server: Server, postgres: Postgres) -> None:
    with postgres.locked(7):
        clients = waiting(server, "returned", 5, LOCK, 7, shared="leaving")
        server.until_parked(5)
        postgres.until_locked(1)
        for left, client in enumerate(clients[:4], 1):
            client.close()
            server.until_parked(5 - left)
        (row,) = postgres.until_locked(1)
        assert row["state"] == "active"
        assert not database(server)["running"][0]["cancelled"]
        clients[4].close()
        postgres.until_idle(1.0)


def test_who_is_too_late_in_a_shared_execution_leaves_it_to_the_others(server: Server, postgres: Postgres) -> None:
    with postgres.locked(8):
        patient = waiting(server, "returned", 1, LOCK, 8, shared="late")[0]
        postgres.until_locked(1)
        assert ask(server, "returned", LOCK, 8, shared="late", deadline=0.2).status == 504
        postgres.until_locked(1)
    assert patient.answer().status == 200


def test_a_result_is_kept_as_long_as_it_was_asked_for(server: Server) -> None:
    sql = "select clock_timestamp()::text"
    first = value(server, sql, shared="kept", ttl=0.5)
    assert value(server, sql, shared="kept", ttl=0.5) == first
    assert server.status()["memory"]["result_bytes"] > 0
    server.until(lambda status: status["memory"]["result_bytes"] == 0)
    assert value(server, sql, shared="kept", ttl=0.5) != first
    assert value(server, sql, shared="not kept") != value(server, sql, shared="not kept")
    server.until(lambda status: status["memory"]["result_bytes"] == 0)


def test_a_failure_is_not_kept(server: Server, table: str) -> None:
    sql = f"select 1 / (amount - 10) as n from {table} where id = 1"
    assert ask(server, "returned", sql, shared="failing", ttl=60).status == 500
    assert ask(server, "returned", f"update {table} set amount = 11").status == 200
    assert ask(server, "returned", sql, shared="failing").json() == [{"n": 1}]


def test_one_key_for_different_questions_mixes_nothing_up(server: Server, postgres: Postgres) -> None:
    with postgres.locked(9):
        sql = "select $1::int as n from pg_advisory_xact_lock(9)"
        clients = {n: waiting(server, "returned", 2, sql, n, shared="one key") for n in (1, 2)}
        shapes = waiting(server, "returned", 1, sql, 1, shared="one key", shape="value")
        server.until_parked(5)
        postgres.until_locked(3)
    assert [client.answer().json() for client in clients[1]] == [[{"n": 1}]] * 2
    assert [client.answer().json() for client in clients[2]] == [[{"n": 2}]] * 2
    assert shapes[0].answer().json() == 1
    assert ask(server, "returned", sql, 1, shared="one key", database="other").json() == [{"n": 1}]


# Status


def test_the_status_tells_what_runs_what_waits_and_who_for(server: Server, postgres: Postgres) -> None:
    with postgres.locked(10):
        waiting(server, "awaited", SLOTS, LOCK, 10)
        running = until_running(server, SLOTS)
        waiting(server, "returned", 3, "select 'queued'")
        until_queued(server, 3)
        told = database(server)
        assert told["product"].startswith("PostgreSQL 1")
        assert (told["state"], told["why"], told["is_pooled"]) == ("up", None, False)
        assert told["slots"] == {"busy": SLOTS}
        assert [(query["statement"], query["waiting"], query["cancelled"]) for query in running] == [
            (LOCK, 1, False)
        ] * SLOTS
        assert len({query["id"] for query in told["running"]}) == SLOTS + 3
        assert sum(query["state"] == "queued" for query in told["running"]) == 3
        assert server.status()["waits"]["query"]["count"] == SLOTS + 3

        ended = run("status", "--once", *whom(server), XDG_RUNTIME_DIR=str(server.folder))
        assert ended.returncode == 0, ended.stderr
        for word in (f"busy {SLOTS}", "queued 3", "strays 0", LOCK[:30], str(running[0]["id"])):
            assert word in ended.stdout
        server.leave()


def test_the_metrics_tell_where_the_time_of_queries_goes(server: Server) -> None:
    value(server, "select 1")
    page = server.metrics()
    for name in ("query_queue_seconds", "query_database_seconds", "query_cancel_seconds"):
        assert re.search(rf"^parkade_{name}_count \d+$", page, re.MULTILINE), name
    for name in ("cancels_sent", "cancels_repeated", "cancels_late", "strays", "connects"):
        assert re.search(rf'^parkade_database_{name}_total\{{database="default"\}} \d+$', page, re.MULTILINE), name
    assert 'parkade_database_strays_total{database="default"} 0' in page
    assert 'parkade_database_up{database="other"} 1' in page


def test_nothing_of_a_query_is_left_when_it_is_over(server: Server) -> None:
    for way in WAYS:
        ask(server, way, "select 1")
        with contextlib.suppress(AssertionError):
            value(server, "select broken")
    until_settled(server)
    status = server.until(lambda status: status["memory"]["result_bytes"] == 0)
    assert status["waits"]["query"]["count"] == 0


NO_COLUMNS = {
    "rows": ("select from generate_series(1, 2)", [{}, {}]),
    "one": ("select from generate_series(1, 1)", {}),
    "value": ("select from generate_series(1, 1)", None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", NO_COLUMNS)
def test_rows_without_columns_are_rows(server: Server, way: str, shape: str) -> None:
    sql, found = NO_COLUMNS[shape]
    answer = ask(server, way, sql, shape=shape)
    assert (answer.status, answer.json()) == (200, found)


@pytest.mark.parametrize("way", WAYS)
def test_half_a_surrogate_pair_is_the_same_for_a_client_and_for_a_function(server: Server, way: str) -> None:
    sql = r"""select '{"\udc00": ["\ud800", "\ud83d\ude00"]}'::json as a"""
    answer = ask(server, way, sql, shape="value")
    assert (answer.status, answer.json()) == (200, {"\ufffd": ["\ufffd", "😀"]})
