"""Coroutines that wait for several things at a time: in `asyncio.gather`, in tasks, in races."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.asking import left_at_rest, until_running, until_settled
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    return serve_for_all("several", workers=1, database=postgres.url, database_slots=5)


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


@pytest.fixture(scope="module")
def shared_sqlite(serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    folder: Path = tmp_path_factory.mktemp("several")
    return serve_for_all("several", workers=1, database=f"sqlite:///{folder}/shop.db")


@pytest.fixture
def sqlite(shared_sqlite: Server) -> Iterator[Server]:
    yield shared_sqlite
    shared_sqlite.cleared()
    until_settled(shared_sqlite)


def until_unlocked(postgres: Postgres) -> None:
    """Waits until no statement waits for a lock: well before anything else would end it."""

    def waiting() -> list[object]:
        return [row for row in postgres.activity() if row["wait_event"] == "advisory"]

    until("no statement waits for a lock", lambda: not waiting(), BUSY, told=waiting)


@pytest.mark.parametrize("connect", ["connect", "connect2"], ids=["HTTP/1", "HTTP/2"])
def test_queries_of_one_request_run_side_by_side(server: Server, postgres: Postgres, connect: str) -> None:
    with postgres.locked(61):
        waiting = server.connect().ask("GET", "/dashboard/61")
        postgres.until_locked(1)
        # One request, of which two waits are over.
        server.until(lambda status: (status["waits"]["query"]["count"], status["lives"]["parked"]) == (1, 1))
    assert waiting.answer().json() == [1, "got it", 3]
    assert getattr(server, connect)().get("/dashboard/62").json() == [1, "got it", 3]


@pytest.mark.parametrize("connect", ["connect", "connect2"], ids=["HTTP/1", "HTTP/2"])
def test_all_of_gives_each_its_place(server: Server, postgres: Postgres, connect: str) -> None:
    with postgres.locked(71):
        waiting = server.connect().ask("GET", "/all-of/71")
        postgres.until_locked(1)
        server.until(lambda status: status["waits"]["query"]["count"] == 1)
    assert waiting.answer().json() == [1, "got it", 3]
    assert getattr(server, connect)().get("/all-of/72").json() == [1, "got it", 3]


@pytest.mark.parametrize("connect", ["connect", "connect2"], ids=["HTTP/1", "HTTP/2"])
def test_first_of_ends_the_others_in_the_database(server: Server, postgres: Postgres, connect: str) -> None:
    with postgres.locked(73):
        assert getattr(server, connect)().get("/first-of/73/0.05").json() == {"index": 1, "value": "the timer"}
        until_unlocked(postgres)
    assert getattr(server, connect)().get("/first-of/73/20.0").json() == {"index": 0, "value": "got it"}


def test_all_of_ends_the_others_when_one_fails(server: Server, postgres: Postgres) -> None:
    with postgres.locked(74):
        assert server.get("/all-of-failing/74").json() == {"sqlstate": "42P01", "then": 7}
        until_unlocked(postgres)


@pytest.mark.promise(3)
@pytest.mark.parametrize("path", ["/all-of/75", "/first-of/75/20.0"])
def test_a_client_that_leaves_ends_all_of_them(server: Server, postgres: Postgres, path: str) -> None:
    with postgres.locked(75):
        client = server.connect().ask("GET", path)
        postgres.until_locked(1)
        client.close()
        until_unlocked(postgres)
    server.until_parked(0)


def test_each_gets_its_own_result_however_many_there_are(server: Server) -> None:
    assert server.get("/numbers/0").json() == []
    assert server.get("/numbers/101").json() == list(range(101))


def test_results_that_do_not_fit_into_a_frame_come_side_by_side(server: Server) -> None:
    assert server.get("/large/6").json() == [[str(number), 100_000] for number in range(6)]


def test_they_do_in_sqlite(sqlite: Server) -> None:
    assert sqlite.get("/numbers/50").json() == list(range(50))


@pytest.mark.promise(3)
def test_a_client_that_leaves_ends_every_statement(server: Server, postgres: Postgres) -> None:
    with postgres.locked(63):
        client = server.connect().ask("GET", "/dashboard/63")
        postgres.until_locked(1)
        client.close()
        until_unlocked(postgres)
    server.until_parked(0)


@pytest.mark.promise(3)
def test_a_client_that_leaves_ends_every_statement_in_sqlite(sqlite: Server) -> None:
    client = sqlite.connect().ask("GET", "/dashboard/0")
    until_running(sqlite, 1)
    client.close()
    until_running(sqlite, 0)
    sqlite.until_parked(0)


def test_the_loser_of_a_race_ends_in_the_database(server: Server, postgres: Postgres) -> None:
    with postgres.locked(64):
        answer = server.get("/impatient/64")
        assert answer.json() == {"done": 1, "cancelled": 1, "then": 7}
        until_unlocked(postgres)


def test_the_loser_of_a_race_ends_in_sqlite(sqlite: Server) -> None:
    assert sqlite.get("/impatient/0").json() == {"done": 1, "cancelled": 1, "then": 7}
    until_running(sqlite, 0)


def test_when_one_fails_the_others_end_in_the_database(server: Server, postgres: Postgres) -> None:
    with postgres.locked(65):
        assert server.get("/fails/65").json() == {"sqlstate": "42P01", "effect": "none"}
        until_unlocked(postgres)


def test_a_message_and_a_timer_are_awaited_at_once(server: Server) -> None:
    watch = Stopwatch()
    client = server.connect().ask("GET", "/message-and-timer/news")
    server.until(lambda status: (status["waits"]["next"]["count"], status["lives"]["parked"]) == (1, 1))
    server.publish("news", b"hola")
    assert client.answer().text == "hola"
    assert 0.1 <= watch.seconds < 0.1 + BUSY


def test_two_messages_come_in_any_order(server: Server) -> None:
    client = server.connect().ask("GET", "/two-messages/order")
    server.until(lambda status: status["waits"]["next"]["count"] == 2)
    server.publish("order/b", b"second")
    server.until(lambda status: (status["waits"]["next"]["count"], status["lives"]["parked"]) == (1, 1))
    server.publish("order/a", b"first")
    assert client.answer().json() == ["first", "second"]


def test_one_message_ends_both_waits(server: Server) -> None:
    client = server.connect().ask("GET", "/twice/both")
    server.until(lambda status: status["waits"]["next"]["count"] == 2)
    server.publish("both", b"hola")
    assert client.answer().json() == ["hola", "hola"]


def test_what_is_left_behind_ends_with_the_answer(server: Server, postgres: Postgres) -> None:
    with postgres.locked(66):
        assert server.get("/left-behind/66").json() == {"left": 2}
        until_unlocked(postgres)


def test_a_transaction_executes_one_statement_at_a_time(server: Server, sqlite: Server) -> None:
    for each in (server, sqlite):
        told = each.get("/parallel-statements").json()
        assert "one connection" in told["error"]
        assert told["then"] == 7


def test_queries_run_beside_a_transaction(server: Server, sqlite: Server) -> None:
    for each in (server, sqlite):
        assert each.get("/beside-a-transaction").json() == [[1, 2], 3, 4]


def test_there_is_a_bound(server: Server) -> None:
    told = server.get("/too-many").json()
    assert told["refused"] == 1
    assert told["why"].startswith("a request waits for at most 101 things at a time")


def test_a_full_server_lets_a_request_wait_for_what_is_left(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url, parked_limit=2)
    waits = server.connect().ask("GET", "/timer-and-message/one")
    server.until(lambda status: status["waits"]["next"]["count"] == 1)
    # Its timer ends while its worker hears nothing, and another request takes the place.
    blocks = server.connect().ask("GET", "/block/0.6")
    server.until(lambda status: status["waits"]["timer"]["count"] == 0)
    server.waiting("/news", 1)
    assert server.get("/news").status == 503
    assert blocks.answer().text == "blocked"
    server.until(lambda status: status["waits"]["several"]["count"] == 1)
    server.publish("one", b"hola")
    assert waits.answer().text == "hola"
    server.publish("news", b"hola")


@pytest.mark.parametrize("path", ["/fails/68", "/plain/failing/68"])
def test_the_log_names_the_request_of_a_query_that_failed(serve: Serve, postgres: Postgres, path: str) -> None:
    server = serve("several", workers=1, database=postgres.url)
    with postgres.locked(68):
        server.get(path)
    server.until_logged(rf'a query failed: .* request="GET {path[:-2]}')


def test_a_full_server_refuses_several_waits_at_once(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url, parked_limit=1)
    server.waiting("/news", 1)
    server.until(lambda status: status["waits"]["next"]["count"] == 1)
    assert server.get("/plain/large/9").status == 503
    # None of them has begun, so none was refused.
    assert server.status()["counts"]["refused_events"] == {}
    server.publish("news", b"hola")


def test_jobs_wait_for_several_things_too(server: Server) -> None:
    assert server.get("/job").json() == [2, 5, 4, None]


def test_a_server_that_stops_ends_them(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url)
    client = server.connect().ask("GET", "/two-messages/stops")
    server.until(lambda status: status["waits"]["next"]["count"] == 2)
    server.stop()
    assert client.answer().json() == [None, None]


def test_a_worker_that_dies_takes_them_with_it(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url)
    with postgres.locked(67):
        client = server.connect().ask("GET", "/dashboard/67")
        server.waiting("/dashboard/67", 2)
        postgres.until_locked(3)
        for pid in server.worker_pids():
            os.kill(pid, signal.SIGKILL)
        assert client.answer().status == 502
        until_unlocked(postgres)


# Returned by plain functions


BOTH = pytest.mark.parametrize("connect", ["connect", "connect2"], ids=["HTTP/1", "HTTP/2"])


@BOTH
def test_a_function_is_called_when_all_are_over_and_no_worker_is_busy_meanwhile(
    server: Server, postgres: Postgres, connect: str
) -> None:
    with postgres.locked(81):
        client = getattr(server, connect)()
        waiting = client.ask("GET", "/plain/all-of/81")
        postgres.until_locked(1)
        server.until(lambda status: (status["lives"]["running"], status["lives"]["parked"]) == (0, 1))
        server.until(lambda status: (status["waits"]["several"]["count"], status["waits"]["query"]["count"]) == (1, 1))
    answer = waiting.answer() if connect == "connect" else client.answer(waiting)
    assert answer.json() == {"found": [1, "got it", {"n": 3}]}


@BOTH
def test_a_coroutine_is_called_with_the_first_and_the_others_end(
    server: Server, postgres: Postgres, connect: str
) -> None:
    with postgres.locked(82):
        client = getattr(server, connect)()
        assert client.get("/plain/first-of/82/0.05").json() == {"index": 1, "value": None}
        until_unlocked(postgres)
        waiting = server.connect().ask("GET", "/plain/first-of/82/20.0")
        postgres.until_locked(1)
        server.publish("plain", b"hola")
        assert waiting.answer().json() == {"index": 2, "value": "hola"}
        until_unlocked(postgres)
    assert client.get("/plain/first-of/82/20.0").json() == {"index": 0, "value": "got it"}


@BOTH
def test_without_a_function_the_answer_is_json(server: Server, connect: str) -> None:
    assert getattr(server, connect)().get("/plain/returned/83").json() == ["got it", None, [{"n": 1}]]
    waiting = server.connect().ask("GET", "/plain/route")
    server.until(lambda status: status["waits"]["next"]["count"] == 1)
    server.publish("plain", b"hola")
    assert waiting.answer().json() == {"index": 0, "value": "hola"}


@BOTH
def test_the_first_failure_is_the_answer(server: Server, postgres: Postgres, connect: str) -> None:
    with postgres.locked(84):
        answer = getattr(server, connect)().get("/plain/failing/84")
        assert (answer.status, answer.json()["fault"]) == (500, "application")
        until_unlocked(postgres)


def test_what_does_not_fit_into_a_frame_follows(server: Server) -> None:
    assert server.get("/plain/large/9").json() == [[str(number), 100_000] for number in range(9)]


@pytest.mark.promise(3)
@pytest.mark.parametrize("path", ["/plain/all-of/85", "/plain/first-of/85/20.0", "/plain/returned/85"])
@BOTH
def test_a_client_that_leaves_ends_them_all(server: Server, postgres: Postgres, path: str, connect: str) -> None:
    with postgres.locked(85):
        client = getattr(server, connect)()
        client.ask("GET", path)
        postgres.until_locked(1)
        client.close()
        until_unlocked(postgres)
    server.until_parked(0)


def test_they_are_awaited_in_sqlite_too(sqlite: Server) -> None:
    assert sqlite.get("/plain/first-of/0/0.05").json() == {"index": 1, "value": None}
    until_running(sqlite, 0)


def test_jobs_are_waited_for_and_wait(server: Server) -> None:
    assert server.get("/plain/jobs").json() == {"found": [1, 2, 3]}


def test_a_server_that_stops_ends_those_of_plain_functions(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url)
    client = server.connect().ask("GET", "/plain/route")
    server.until(lambda status: status["waits"]["next"]["count"] == 1)
    server.stop()
    assert client.answer().json() == {"index": 0, "value": None}


def test_a_reload_leaves_them_waiting(serve: Serve, postgres: Postgres) -> None:
    server = serve("several", workers=1, database=postgres.url)
    with postgres.locked(86):
        client = server.connect().ask("GET", "/plain/all-of/86")
        postgres.until_locked(1)
        server.reload()
    assert client.answer().json() == {"found": [1, "got it", {"n": 3}]}


@pytest.mark.parametrize("threads", [1, 3])
def test_they_may_be_waited_for_by_any_number_of_threads(serve: Serve, postgres: Postgres, threads: int) -> None:
    server = serve("several", workers=1, threads=threads, database=postgres.url)
    clients = [server.connect().ask("GET", "/plain/returned/87") for _ in range(20)]
    assert [client.answer().json() for client in clients] == [["got it", None, [{"n": 1}]]] * 20


@BOTH
def test_a_worker_without_a_loop_is_called_too(serve: Serve, postgres: Postgres, connect: str) -> None:
    server = serve("several_plain", workers=1, database=postgres.url)
    client = getattr(server, connect)()
    assert client.get("/all-of/3").json() == [["0", 100_000], ["1", 100_000], ["2", 100_000], None]
    waiting = server.connect().ask("GET", "/first-of/news")
    server.until(lambda status: status["waits"]["next"]["count"] == 1)
    assert client.get("/route").json() == [{"n": 1}, None]
    server.publish("news", b"hola")
    assert waiting.answer().text == "news 1 hola"
