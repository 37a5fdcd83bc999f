"""Bad statements, databases that are away, cut off, slow or closed to us: a clear error, and everything comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from .conftest import Serve
from .harness.asking import (
    LOCK,
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
from .harness.gate import Gate
from .harness.postgres import GUARDED, Postgres, quiet_port
from .harness.server import Server, run
from .harness.until import Stopwatch, until

SLOTS = 2
AT_ONCE = 1.0
"""Seconds. It takes milliseconds."""

MiB = 1 << 20


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    server = serve_for_all("shop_queries", database=postgres.url, database_slots=SLOTS)
    postgres.psql("create table if not exists shop (id int primary key, name text not null check (name <> ''))")
    postgres.psql("insert into shop values (1, 'one') on conflict do nothing")
    return server


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield shared
    shared.cleared()
    until_settled(shared)
    postgres.until_idle()


@pytest.fixture(scope="module")
def shared_fragile() -> Iterator[Postgres]:
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        yield postgres


@pytest.fixture
def fragile(shared_fragile: Postgres) -> Iterator[Postgres]:
    """A PostgreSQL of this file's own, to be restarted and halted; up before each test."""
    yield shared_fragile
    try:
        assert shared_fragile.pid
    except FileNotFoundError:
        shared_fragile.start()


def without(serve: Serve, *databases: str) -> Server:
    """A server that is not ready, for one of its databases cannot be reached."""
    server: Server = serve("shop_queries", database=databases, is_ready=False)
    until("its private socket", server.private.exists)
    server.until(lambda status: [worker for worker in status["workers"] if worker["state"] in ("ready", "busy")])
    return server


# Statements

SECRET = "s3cret_value"

BAD: dict[str, tuple[str, list[object], int, str]] = {
    "syntax": (f"selec '{SECRET}'", [], 500, "application"),
    "a table that is not there": (f"select '{SECRET}' from nowhere", [], 500, "application"),
    "a column that is not there": (f"select {SECRET} from shop", [], 500, "application"),
    "too few parameters": ("select $1::text, $2::text", [SECRET], 500, "application"),
    "too many parameters": ("select $1::text", [SECRET, SECRET], 500, "application"),
    "types nobody can know": ("select $1 + $2", [1, 2], 500, "application"),
    "a value of the wrong type": ("select $1::int", [SECRET], 400, "client"),
    "a value that is too large": ("select $1::int2", [100_000], 400, "client"),
    "a division by zero": ("select 1 / $1::int", [0], 400, "client"),
    "two columns of one name": ("select 1 as n, 2 as n", [], 500, "application"),
    "several statements": ("select 1; select 2", [], 500, "application"),
    "copy in": ("copy shop from stdin", [], 500, "application"),
    "copy out": ("copy shop to stdout", [], 500, "application"),
    "not unique": ("insert into shop values (1, $1)", [SECRET], 409, "client"),
    "null where there may be none": ("insert into shop values (2, $1)", [None], 400, "client"),
    "against a rule": ("insert into shop values (2, $1)", [""], 400, "client"),
    "an exception": (f"do $$ begin raise exception '{SECRET}'; end $$", [], 500, "application"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_statement_is_a_clear_error_that_does_not_quote_it(server: Server, what: str) -> None:
    sql, parameters, status, fault = BAD[what]
    answer = ask(server, "returned", sql, *parameters)
    told = answer.json()
    assert (answer.status, told["status"], told["fault"]) == (status, status, fault), told
    assert told["effect"] == ("unknown" if what == "copy out" else "none")
    assert set(told) == {"status", "error", "fault", "detail", "effect"}
    assert SECRET not in answer.text
    for way in WAYS[1:]:
        answer = ask(server, way, sql, *parameters)
        assert (answer.status, SECRET in answer.text) == (status, False)
    until_settled(server)
    assert value(server, "select 7") == 7


def test_a_statement_that_is_not_permitted_is_the_operators_fault(serve: Serve, postgres: Postgres) -> None:
    name, password = GUARDED
    url = postgres.url_of(user=f"{name}:{quote(password, safe='')}")
    postgres.psql("create table if not exists closed (n int)")
    server = serve("shop_queries", database=url)
    answer = ask(server, "returned", "select * from closed")
    assert (answer.status, answer.json()["fault"]) == (500, "operator")
    assert "closed" not in answer.text
    server.until_logged("42501.*closed")


def test_the_log_says_what_the_client_is_not_told(server: Server) -> None:
    ask(server, "returned", "select from_nowhere from nowhere_else where $1::text = ''", "a value of a client")
    line = server.until_logged(r"a query failed: .*nowhere_else.*").group()
    assert "42P01" in line
    assert "a value of a client" not in server.log()


def test_a_statement_that_says_nothing_does_nothing(server: Server) -> None:
    assert ask(server, "returned", "-- nothing").json() == {"command": "", "rows": 0}
    assert ask(server, "returned", "").status == 500
    assert ask(server, "returned", "select 7 as n;").json() == [{"n": 7}]


def test_a_connection_that_listens_disturbs_nobody(server: Server, postgres: Postgres) -> None:
    """`--listen` is the server's; what a statement of the application asks to be told goes nowhere."""
    for _ in range(SLOTS):
        ask(server, "returned", "listen nobody")
    for n in range(20):
        if n % 5 == 0:
            postgres.psql("notify nobody, 'is told'")
        assert value(server, "select $1::int", n) == n
    ask(server, "returned", "unlisten *")


def test_a_developer_sees_the_statement_and_what_the_database_said(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", command="dev", database=postgres.url)
    told = ask(server, "returned", "select nothing_such").json()
    assert (told["query"], told["sqlstate"]) == ("select nothing_such", "42703")
    assert "nothing_such" in told["message"]
    assert "nothing_such" in ask(server, "awaited", "select nothing_such").text


def test_text_with_a_nul_is_refused_before_it_is_sent(server: Server) -> None:
    answer = server.get("/nul")
    assert 400 <= answer.status <= 500
    assert value(server, "select 7") == 7


@pytest.mark.promise(8)
@pytest.mark.parametrize("way", WAYS)
def test_a_value_over_the_limit_of_a_row_is_an_error_and_not_kept(server: Server, way: str) -> None:
    value(server, "select 1")
    before = server.resident_bytes
    answer = ask(server, way, "select repeat('x', 60 * 1024 * 1024)")
    assert (answer.status, answer.json()["detail"]) == (500, "the result is larger than the server allows")
    until_settled(server)
    assert server.resident_bytes - before < 8 * MiB


def test_a_parameter_of_sixty_megabytes_is_a_clear_error(server: Server) -> None:
    assert server.get(f"/large-value/{60 << 10}").status == 500
    server.until_logged("a query has at most 1048576 bytes with its parameters")
    server.until_zero()
    assert server.get("/large-value/1000").json() == {"length": 1000 << 10}
    assert len(server.workers("ready", "busy")) == 1


def test_a_row_that_is_broken_in_the_middle_of_a_stream_breaks_it_off(server: Server) -> None:
    """The first rows are out already, so no status can tell: the client must not take a part for the whole."""
    client = waiting(
        server, "returned", 1, "select 1 / (20000 - n) as n, repeat('x', 100) as x from generate_series(1, 30000) n"
    )[0]
    assert client.opening().status == 200
    assert not client.rest().endswith(b"0\r\n\r\n")
    assert value(server, "select 7") == 7


# Credentials

PASSWORD = "hunter2-pass:word"


def test_no_password_is_ever_told(serve: Serve, postgres: Postgres) -> None:
    url = postgres.url_of(user=f"guarded:{quote(PASSWORD, safe='')}")
    server = serve("shop_queries", database=[f"default={url}"], log_level="debug")
    answer = ask(server, "returned", "select 1")
    server.until(lambda status: status["databases"]["default"]["state"] == "denied")
    told = [
        answer.text,
        json.dumps(server.status()),
        server.metrics(),
        server.admin("GET", "/health/ready")[1].decode(),
    ]
    ask(server, "awaited", "select broken")
    for text in [*told, server.log()]:
        assert "hunter2" not in text


@pytest.mark.parametrize(
    "refused",
    [
        f"mysql://root:{PASSWORD}@127.0.0.1/shop",
        f"postgres://root:{PASSWORD}@127.0.0.1:99999/shop",
        f"postgres://root:{PASSWORD}@127.0.0.1/shop?sslmode=perhaps",
        f"postgres://root:{PASSWORD}@127.0.0.1/shop?pasword={PASSWORD}",
        f"two words=postgres://root:{PASSWORD}@127.0.0.1/shop",
    ],
)
def test_a_database_that_is_refused_is_not_repeated(refused: str) -> None:
    ended = run(
        "serve", str(Path(__file__).parent / "apps" / "basic.py"), "--bind", "127.0.0.1:0", "--database", refused
    )
    assert ended.returncode != 0
    assert ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


def test_help_does_not_show_what_the_environment_holds() -> None:
    ended = run("serve", "--help", PARKADE_DATABASE=f"postgres://root:{PASSWORD}@127.0.0.1/shop")
    assert "--database" in ended.stdout
    assert "hunter2" not in ended.stdout


def test_a_check_of_the_settings_does_not_show_it_either(tmp_path: Path) -> None:
    url = f"postgres://root:{PASSWORD}@127.0.0.1/shop"
    app = str(Path(__file__).parent / "apps" / "shop_queries.py")
    (tmp_path / "parkade.toml").write_text(f'database = ["{url}"]\ndatabase-slots = 0\n')
    told = [
        run("serve", app, "--check", PARKADE_DATABASE=url),
        run("serve", app, "--check", "--database-slots", "0", PARKADE_DATABASE=url),
        run("serve", app, "--check", "--config", tmp_path / "parkade.toml"),
    ]
    assert [ended.returncode == 0 for ended in told] == [True, False, False]
    assert "hunter2" not in "".join(ended.stdout + ended.stderr for ended in told)


def test_a_password_that_is_right_lets_in(serve: Serve, postgres: Postgres) -> None:
    name, password = GUARDED
    server = serve("shop_queries", database=postgres.url_of(user=f"{name}:{quote(password, safe='')}"))
    assert value(server, "select current_user") == name


def test_a_password_that_is_wrong_is_the_operators_fault(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=postgres.url_of(user="guarded:wrong"))
    answer = ask(server, "returned", "select 1")
    assert (answer.status, answer.json()["fault"]) == (503, "operator")
    assert "retry-after" in answer
    assert database(server)["state"] == "denied"
    assert "password" in database(server)["why"]
    code, told = server.admin("GET", "/health/ready")
    assert (code, "default" in json.loads(told)["reason"]) == (503, True)


# A database that is away


@pytest.mark.promise(10)
def test_a_server_starts_without_its_database_and_says_so_until_it_comes(serve: Serve, fragile: Postgres) -> None:
    fragile.halt()
    server = without(serve, fragile.url)
    server.until(lambda status: status["databases"]["default"]["state"] == "down", 15)
    code, told = server.admin("GET", "/health/ready")
    assert (code, "default" in json.loads(told)["reason"]) == (503, True)
    assert server.admin("GET", "/health/live")[0] == 200
    assert server.get("/hola/you").text == "Hola you", "what needs no database works"
    # For a moment it might only be restarting; then it is taken for away.
    assert ask(server, "returned", "select 1").status == 503
    for way in WAYS:
        watch = Stopwatch()
        answer = ask(server, way, "select 1")
        assert (answer.status, answer.json()["effect"]) == (503, "none")
        assert "retry-after" in answer
        assert watch.seconds < AT_ONCE, way
    assert database(server)["why"]
    fragile.start()
    server.until(lambda status: status["databases"]["default"]["state"] == "up", 15)
    assert server.admin("GET", "/health/ready")[0] == 200
    assert value(server, "select 7") == 7


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_restart_fails_what_runs_and_nothing_that_queues(serve: Serve, fragile: Postgres, mode: str) -> None:
    with Gate(fragile) as gate:
        server = serve("shop_queries", database=gate.url(), database_slots=SLOTS)
        with fragile.locked(51):
            running = [waiting(server, way, 1, LOCK, 51)[0] for way in ("returned", "awaited")]
            fragile.until_locked(SLOTS)
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
    with fragile.locked(52):
        client = waiting(server, "caught", 1, LOCK, 52)[0]
        fragile.until_locked(1)
        fragile.restart("immediate")
    told = client.answer().json()
    assert told["effect"] in ("unknown", "none")
    assert told["status"] == 503
    server.until(lambda status: status["databases"]["default"]["state"] == "up")
    assert value(server, "select 7") == 7


def test_a_connection_that_is_ended_while_it_is_idle_fails_nobody(server: Server, postgres: Postgres) -> None:
    assert value(server, "select 1") == 1
    for _ in range(3):
        postgres.psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'parkade'")
        until("they are gone", lambda: not postgres.activity() or value(server, "select 7") == 7)
        assert value(server, "select 7") == 7


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
        assert watch.seconds < 3
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
            assert (answer.status, answer["retry-after"], watch.seconds < AT_ONCE) == (503, "1", True)
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
    server.until(lambda status: status["databases"]["default"]["slots"].get("held") == 2)
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
