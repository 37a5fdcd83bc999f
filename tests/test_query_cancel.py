"""A query that no client needs any more ends in the database at once, and no other query is ever hit."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator

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
from .harness.client import Client
from .harness.gate import Gate
from .harness.load import Load
from .harness.postgres import Postgres
from .harness.server import Server, run, whom
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

SLOTS = 3


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    return serve_for_all("shop_queries", workers=2, database=postgres.url, database_slots=SLOTS)


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


OWN = "ending"


def own(serve: Serve, postgres: Postgres, **settings: object) -> Server:
    """A server that a test may end; its connections have their own application name."""
    url = f"{postgres.url}&application_name={OWN}"
    server: Server = serve("shop_queries", **{"database": url, "database_slots": SLOTS} | settings)
    return server


def until_gone(postgres: Postgres, seconds: float) -> None:
    """Waits until it has no connection any more."""
    until(
        "its connections are gone",
        lambda: not [row for row in postgres.activity() if row["application_name"] == OWN],
        seconds,
        told=postgres.activity,
    )


# Clients that leave

LEAVING = {"closes": Client.close, "resets": Client.reset, "closes its sending side": Client.half_close}


@pytest.mark.promise(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING.keys())
def test_the_query_of_a_client_that_leaves_ends_in_the_database(
    server: Server, postgres: Postgres, way: str, leave: Callable[[Client], object]
) -> None:
    with postgres.locked(21):
        clients = waiting(server, way, SLOTS, LOCK, 21)
        postgres.until_locked(SLOTS)
        for client in clients:
            leave(client)
        postgres.until_idle(BUSY)
        server.until_zero()
        until_settled(server)
    assert value(server, "select 7") == 7


@pytest.mark.promise(3)
def test_a_stream_of_http_2_that_is_reset_ends_its_query_alone(server: Server, postgres: Postgres) -> None:
    with postgres.locked(22):
        client = server.connect2()
        left, stays = (client.ask("POST", "/returned", body=asking(LOCK, 22)) for _ in range(2))
        postgres.until_locked(2)
        client.reset(left)
        postgres.until_locked(1, BUSY)
    assert client.answer(stays).status == 200


@pytest.mark.promise(3)
def test_a_route_that_is_a_query_is_cancelled_too(serve: Serve, postgres: Postgres, server: Server) -> None:
    with postgres.connected() as writer:
        writer.execute("create table if not exists standing (n int)")
        writer.execute("begin; lock table standing")
        client = waiting(server, "returned", 1, "select * from standing")[0]
        until_running(server, 1)
        client.close()
        until(
            "nobody waits for the table",
            lambda: not [row for row in postgres.active() if row["wait_event_type"] == "Lock"],
            BUSY,
        )
        writer.execute("rollback")


@pytest.mark.promise(3)
@pytest.mark.parametrize("way", WAYS)
def test_what_still_queues_leaves_without_a_byte_to_the_database(serve: Serve, postgres: Postgres, way: str) -> None:
    with Gate(postgres) as gate, postgres.locked(23):
        server = serve("shop_queries", database=gate.url(), database_slots=1)
        first = waiting(server, "returned", 1, LOCK, 23)[0]
        postgres.until_locked(1)
        before = gate.sessions.to_server.passed
        queued = waiting(server, way, 50, "select 'never'")
        until_queued(server, 50)
        for client in queued:
            client.close()
        until_queued(server, 0)
        server.until(lambda status: status["lives"]["parked"] == 1)
        assert gate.sessions.to_server.passed == before
        assert database(server)["counts"]["cancels_sent"] == 0
        first.close()
        until_settled(server)
    assert gate.cancels.count == 0


@pytest.mark.promise(3)
def test_a_coroutine_whose_client_leaves_is_told(server: Server, postgres: Postgres) -> None:
    with postgres.locked(24):
        client = waiting(server, "awaited-noisily", 1, LOCK, 24)[0]
        postgres.until_locked(1)
        client.close()
        postgres.until_idle(BUSY)
        server.until_logged("cancelled while awaiting a query")


ENDLESS = "select generate_series(1, 1000000000) as n, repeat('x', 1000) as text"
"""In the select list, because the rows of a function after FROM are computed before the first is sent."""


@pytest.mark.promise(3)
def test_who_leaves_in_the_middle_of_its_rows_ends_the_statement(server: Server, postgres: Postgres) -> None:
    client = waiting(server, "returned", 1, ENDLESS)[0]
    opened = client.opening()
    assert opened.status == 200
    assert next(client.pieces(opened)).startswith(b'[{"n":1,')
    client.close()
    postgres.until_idle(BUSY)
    until_settled(server)


@pytest.mark.promise(3)
def test_a_stream_of_http_2_ends_in_the_middle_of_its_rows(server: Server, postgres: Postgres) -> None:
    client = server.connect2()
    stream = client.ask("POST", "/returned", body=asking(ENDLESS))
    assert client.piece(stream).startswith(b'[{"n":1,')
    client.reset(stream)
    postgres.until_idle(BUSY)
    assert client.get("/number/7").json() == [{"n": 7}]


@pytest.mark.promise(8)
def test_who_stops_reading_holds_a_slot_no_longer_than_a_stall_and_no_memory(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres, stall_timeout="1s", database_slots=1)
    value(server, "select 1")
    before = server.resident_bytes
    client = server.connect(receive_buffer=4096, segment=1460)
    client.ask("POST", "/returned", body=asking(ENDLESS))
    until_running(server, 1)
    until(
        "the database waits for the client",
        lambda: [row for row in postgres.active() if row["wait_event"] == "ClientWrite"],
    )
    watch = Stopwatch()
    assert server.resident_bytes - before < 8 << 20
    until_settled(server)
    assert watch.seconds < 1 + BUSY
    postgres.until_idle(BUSY)
    assert server.resident_bytes - before < 8 << 20
    assert value(server, "select 7") == 7


def test_who_reads_slowly_gets_all_of_it(server: Server) -> None:
    client = server.connect(receive_buffer=4096, segment=1460)
    client.ask("GET", "/many/5000/1000")
    opened = client.opening()
    until("its query waits for it", lambda: database(server)["running"])
    rows = json.loads(b"".join(client.pieces(opened)))
    assert [row["n"] for row in rows] == list(range(1, 5001))


@pytest.mark.promise(3)
def test_a_thousand_clients_that_leave_at_once_cost_few_cancels(serve: Serve, postgres: Postgres) -> None:
    slots = 20
    with Gate(postgres) as gate, postgres.locked(25):
        server = serve("shop_queries", database=gate.url(), database_slots=slots)
        waiting(server, "returned", 1_000, LOCK, 25)
        postgres.until_locked(slots)
        until_queued(server, 1_000 - slots)
        # While the server is stopped, so that it notices all of them at the same time.
        server.signal(signal.SIGSTOP)
        server.leave()
        server.signal(signal.SIGCONT)
        postgres.until_idle(BUSY)
        server.until_zero()
        until_settled(server)
        counts = database(server)["counts"]
        # The server handles them in shares of turns: freed connections go to a few that it does not know to have left
        # yet.
        assert slots <= counts["cancels_sent"] - counts["cancels_repeated"] <= 5 * slots
        assert counts["connects"] <= slots + 1
        assert gate.sessions.count <= slots + 1
        assert gate.cancels.count == 0
        assert server.status()["counts"]["cancelled"]["client left"] == 1_000
        assert value(server, "select 7") == 7


# No other query

CANCEL = b"\0cancel\0"
"""The name of the prepared statement with which the reserved connection requests a cancel. Its answer ends with `SELECT
1`.
"""


@pytest.mark.promise(3)
@pytest.mark.parametrize("seed", range(3))
def test_no_cancel_hits_the_query_of_another(server: Server, postgres: Postgres, seed: int) -> None:
    """Clients leave at any moment while others use the same few connections: each of those gets its own rows."""
    chance = random.Random(seed)
    short = "select count(*) from generate_series(1, $1)"
    targets = [f"/number/{n}" for n in range(7)]
    with Load(server.address, *targets, connections=3) as load:
        for _ in range(150):
            clients = waiting(server, chance.choice(WAYS), chance.randrange(1, 4), short, chance.randrange(1, 40_000))
            if chance.random() < 0.5:
                server.status()
            for client in clients:
                client.close()
        load.goes_on()
    assert not load.failures
    assert set(load.statuses) == {200}
    assert set(load.bodies) == {b'[{"n":%d}]' % n for n in range(7)}
    until_settled(server)


def until_next_may_run(server: Server, postgres: Postgres) -> None:
    """The statement has ended, and the connection waits for the acknowledgement of the cancel; or the next one runs."""
    until(
        "its connection settles",
        lambda: (
            database(server)["slots"].get("settling")
            or [row for row in postgres.active() if row["wait_event"] == "advisory"]
        ),
        told=lambda: database(server),
    )


@pytest.mark.promise(3)
@pytest.mark.parametrize("fault", ["late", "lost", "answered late"])
def test_a_cancel_that_comes_behind_its_statement_hits_nobody_else(
    serve: Serve, postgres: Postgres, fault: str
) -> None:
    with Gate(postgres) as gate:
        server = serve("shop_queries", database=gate.url(), database_slots=1)
        sessions = gate.sessions
        way = sessions.to_client if fault == "answered late" else sessions.to_server
        with postgres.locked(27):
            with postgres.locked(26):
                first = waiting(server, "returned", 1, LOCK, 26)[0]
                postgres.until_locked(1)
                way.hold_at(b"SELECT 1\0" if fault == "answered late" else CANCEL)
                if fault == "lost":
                    gate.cancels.vanish()
                first.close()
                way.until_held()
            other = waiting(server, "returned", 1, LOCK, 27)[0]
            until_next_may_run(server, postgres)
            if fault == "lost":
                postgres.until_locked(1)
            sessions.release()
            postgres.until_locked(1)
            gate.cancels.release()
            queued = [server.connect().ask("GET", f"/number/{n}") for n in range(20)]
            until_queued(server, 20)
        assert other.answer().json() == [{"lock": "got it"}]
        assert [client.answer().json() for client in queued] == [[{"n": n}] for n in range(20)]


@pytest.mark.promise(3)
def test_cancels_that_travel_slowly_hit_nobody_else(serve: Serve, postgres: Postgres) -> None:
    with Gate(postgres) as gate:
        server = serve("shop_queries", database=gate.url(), database_slots=1)
        value(server, "select 1")
        gate.sessions.to_server.delay(0.01)
        gate.cancels.delay(0.05)
        for n in range(20):
            # One is observed running; the other may have ended when its cancel arrives.
            statement = "select pg_sleep(1)::text" if n % 2 else "select count(*) from generate_series(1, 100000)"
            victim = waiting(server, "returned", 1, statement)[0]
            if n % 2:
                until_running(server, 1)
            victim.close()
            assert server.get(f"/number/{n}").json() == [{"n": n}]
        until_settled(server)


# COMMIT


SLOW_COMMIT = """
    drop table if exists slowly;
    create table slowly (id int primary key);
    create or replace function wait_for_lock() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(28); return null; end $$;
    create constraint trigger waits after insert on slowly deferrable initially deferred
        for each row execute function wait_for_lock();
"""


@pytest.mark.python_only("transactions")
@pytest.mark.promise(3)
def test_a_commit_is_never_cancelled(server: Server, postgres: Postgres) -> None:
    postgres.psql(SLOW_COMMIT)
    before = database(server)["counts"]["cancels_sent"]
    steps = json.dumps({"steps": [{"sql": "insert into slowly values (1)"}]}).encode()
    with postgres.locked(28):
        client = server.connect().ask("POST", "/transaction", body=steps)
        (row,) = postgres.until_locked(1)
        assert row["query"].lower().startswith("commit")
        client.close()
        server.until(lambda status: status["lives"]["parked"] == 0)
        postgres.until_locked(1)
    postgres.until_idle()
    assert postgres.psql("select id from slowly") == [["1"]]
    assert database(server)["counts"]["cancels_sent"] == before


# The operator


@pytest.mark.parametrize("way", WAYS)
def test_an_operator_cancels_a_query_and_its_client_is_told(server: Server, postgres: Postgres, way: str) -> None:
    with postgres.locked(29):
        client = waiting(server, way, 1, LOCK, 29)[0]
        (query,) = until_running(server, 1)
        postgres.until_locked(1)
        ended = run("cancel", str(query["id"]), *whom(server), XDG_RUNTIME_DIR=str(server.folder))
        assert ended.returncode == 0, ended.stderr
        answer = client.answer()
        assert (answer.status, answer.json()["effect"]) == (503, "cancelled")
        assert "operator" in answer.json()["detail"]
        postgres.until_idle(BUSY)


def test_the_private_socket_cancels_only_what_there_is_and_for_no_browser(server: Server, postgres: Postgres) -> None:
    with postgres.locked(30):
        client = waiting(server, "returned", 1, LOCK, 30)[0]
        (query,) = until_running(server, 1)
        path = f"/queries/{query['id']}/cancel"
        assert server.admin("POST", path, Origin="http://127.0.0.1")[0] == 403
        assert server.admin("GET", path)[0] == 405
        assert server.admin("POST", "/queries/987654321/cancel")[0] == 404
        assert server.admin("POST", "/queries/x/cancel")[0] == 400
        assert not client.is_readable()
        assert server.admin("POST", path)[0] == 202
        assert client.answer().status == 503
    ended = run("cancel", "987654321", *whom(server), XDG_RUNTIME_DIR=str(server.folder))
    assert ended.returncode == 1
    assert "no such query" in ended.stderr


def test_an_operator_cancels_what_queues(server: Server, postgres: Postgres) -> None:
    with postgres.locked(31):
        waiting(server, "returned", SLOTS, LOCK, 31)
        postgres.until_locked(SLOTS)
        client = waiting(server, "returned", 1, "select 'never'")[0]
        until_queued(server, 1)
        (queued,) = (query for query in database(server)["running"] if query["state"] == "queued")
        assert server.admin("POST", f"/queries/{queued['id']}/cancel")[0] == 202
        assert client.answer().status == 503
        postgres.until_locked(SLOTS)
        server.leave()


# The coroutine


@pytest.mark.python_only("asyncio.timeout")
def test_a_timeout_around_a_query_cancels_it_and_the_coroutine_goes_on(server: Server, postgres: Postgres) -> None:
    with postgres.locked(32):
        assert ask(server, "impatient/0.2", LOCK, 32).json() == {"given up": True}
        postgres.until_idle(BUSY)
    assert ask(server, "impatient/5", "select 7 as n").json() == [{"n": 7}]


@pytest.mark.promise(3)
def test_a_worker_that_dies_takes_the_queries_of_its_coroutines_along(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres)
    with postgres.locked(33):
        parked = waiting(server, "returned", 1, LOCK, 33)[0]
        client = waiting(server, "awaited", 1, LOCK, 33)[0]
        postgres.until_locked(2)
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        assert client.answer().status == 502
        postgres.until_locked(1, BUSY)
    assert parked.answer().status == 200, "whose query belongs to no worker"


# The end


@pytest.mark.promise(3)
def test_sigterm_gives_queries_their_time_and_then_cancels_them(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres, query_grace="500ms", grace="20s")
    with postgres.locked(34):
        clients = [waiting(server, way, 1, LOCK, 34)[0] for way in WAYS]
        postgres.until_locked(SLOTS)
        watch = Stopwatch()
        server.signal(signal.SIGTERM)
        answers = [client.answer() for client in clients]
        assert 0.5 <= watch.seconds < 0.5 + BUSY
        assert [(answer.status, answer.json()["effect"]) for answer in answers] == [(503, "cancelled")] * 3
        assert {answer["retry-after"] for answer in answers} == {"1"}
        postgres.until_idle(BUSY)
        assert server.ended() == 0
    until_gone(postgres, BUSY)


@pytest.mark.promise(3)
def test_sigterm_lets_queries_end_that_do_so_in_time(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres, query_grace="20s", grace="20s", database_slots=1)
    with postgres.locked(35):
        running = waiting(server, "returned", 1, LOCK, 35)[0]
        postgres.until_locked(1)
        queued = waiting(server, "awaited", 2, "select 7 as n")
        until_queued(server, 2)
        server.signal(signal.SIGTERM)
        server.until(lambda status: status["state"] == "draining")
    assert running.answer().json() == [{"lock": "got it"}]
    assert [client.answer().json() for client in queued] == [[{"n": 7}]] * 2
    assert server.ended() == 0


@pytest.mark.promise(3)
def test_a_second_sigterm_waits_for_no_query(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres, query_grace="20s", grace="20s")
    with postgres.locked(36):
        waiting(server, "returned", 2, LOCK, 36)
        postgres.until_locked(2)
        server.signal(signal.SIGTERM)
        server.until(lambda status: status["state"] == "draining")
        server.signal(signal.SIGTERM)
        server.ended(3.0)
        postgres.until_idle(BUSY)


@pytest.mark.promise(3)
def test_the_statements_of_a_core_that_was_killed_end_in_a_moment(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres)
    with postgres.locked(37):
        waiting(server, "returned", SLOTS, LOCK, 37)
        postgres.until_locked(SLOTS)
        server.kill()
        until_gone(postgres, 1.5)


@pytest.mark.promise(7)
def test_a_reload_leaves_queries_alone(serve: Serve, postgres: Postgres) -> None:
    server = own(serve, postgres, grace="500ms")
    with postgres.locked(38):
        returned, then = (waiting(server, way, 1, LOCK, 38)[0] for way in ("returned", "then"))
        postgres.until_locked(2)
        server.reload()
        postgres.until_locked(2)
    assert returned.answer().json() == then.answer().json() == [{"lock": "got it"}]
