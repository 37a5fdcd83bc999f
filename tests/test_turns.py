"""Work for a thousand clients is done in turns: each gets everything once and in order, and others are served."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import certificate
from .harness.crowd import Crowd
from .harness.jobs import asking
from .harness.listeners import Listeners
from .harness.postgres import Postgres
from .harness.prober import Prober
from .harness.server import Server
from .harness.streams import Streams
from .harness.until import Stopwatch, until

CROWD = 1_000

DELAY_MAX = 0.05
"""Seconds that no client may wait because of work for others. Here it is CPU time of the core: on a busy machine
clients wait longer.
"""


def busiest(server: Server) -> float:
    """The CPU time of the longest turn, in seconds."""
    seconds: float = server.status()["turns"]["busiest"]
    return seconds


@pytest.mark.promise(5)
def test_each_stream_of_a_crowd_is_told_everything_once_and_in_order(serve: Serve) -> None:
    server = serve("basic")
    clients = [server.connect().ask("GET", "/events/all") for _ in range(CROWD)]
    server.until_parked(CROWD)
    for number in range(5):
        server.publish("all", b"message-%d-" % number)
    for client in clients:
        said = b""
        while b"message-4-" not in said:
            more = client.socket.recv(65_536)
            assert more, "the stream ends"
            said += more
        places = [said.find(b"message-%d-" % number) for number in range(5)]
        assert -1 not in places, said
        assert places == sorted(places), said
        assert Counter(said[place : place + 10] for place in places).total() == said.count(b"message-"), said
    server.cleared()


@pytest.mark.promise(5)
def test_a_publish_to_a_crowd_is_told_once_while_others_are_served(serve: Serve) -> None:
    server = serve("basic")
    with Crowd(server.address, CROWD) as crowd, Prober(server.address) as prober:
        for _ in range(5):
            crowd.ask("/next/all")
            server.until_parked(CROWD)
            server.publish("all", b"one")
            server.publish("all", b"two")
            assert crowd.statuses(20) == {200: CROWD}
            server.until_zero()
    # On a quiet machine it is a few milliseconds; the promise is 50.
    assert prober.slowest < 1
    turns = server.status()["turns"]
    assert turns["longest"] > 0
    # On a busy machine there may be more of them by now.
    for metric, name in (("turns_long_total", "long"), ("turns_busy_total", "busy")):
        told = re.search(rf"^parkade_{metric} (\d+)$", server.metrics(), re.MULTILINE)
        assert told is not None, metric
        assert int(told[1]) >= turns[name]


@pytest.mark.promise(5)
@pytest.mark.promise(8)
def test_a_flood_of_messages_slows_down_those_who_publish_and_nobody_else(serve: Serve, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(FLOOD)
    server = serve(app, workers=2)
    with Listeners(server.address, FOLLOWERS, "/events") as listeners, Prober(server.address, "/soon") as prober:
        server.until_parked(FOLLOWERS)
        before = server.resident_bytes
        flood = Stopwatch()
        assert server.connect(seconds=120).post(f"/flood/{MESSAGES}").text == "published"
        most_put_off = FOLLOWERS * MESSAGES - sum(map(len, listeners.told()))
        until("all are told", lambda: listeners.have_all(MESSAGES - 1), 120)
        told = listeners.told()
    seconds = flood.seconds
    assert all(numbers == list(range(MESSAGES)) for numbers in told), "each once and in order"
    assert most_put_off < FOLLOWERS * MESSAGES / 2, "whoever publishes was held back meanwhile"
    assert prober.slowest < max(2, seconds / 5), "without a bound it is as long as the flood"
    assert server.resident_bytes - before < 20 << 20
    server.until_zero()


FOLLOWERS, MESSAGES = 500, 1_000

FLOOD = """
from parkade import App, after, channel

app = App()

@app.get("/events")
def events():
    return channel("flood").stream()

@app.get("/soon")
def soon():
    return after(0.01, "soon")

@app.post("/flood/{count:int}")
def flood(count: int) -> str:
    for number in range(count):
        channel("flood").publish(str(number))
    return "published"
"""


@pytest.mark.promise(7)
def test_at_a_stop_each_of_a_crowd_gets_its_answer(serve: Serve) -> None:
    server = serve("basic")
    with Crowd(server.address, CROWD) as crowd:
        crowd.ask("/next/all")
        server.until_parked(CROWD)
        server.signal(signal.SIGTERM)
        statuses = crowd.statuses(20)
        assert statuses.total() == CROWD
        assert 0 not in statuses, statuses
        until("it ends", lambda: server.process.poll() is not None)


@pytest.mark.promise(5)
def test_thousands_of_streams_leave_the_others_their_turns(serve: Serve) -> None:
    """HTTP/2 connections are tasks next to the event loop. On a busy machine one round of some of them is quick."""
    slowest = min(slowest_beside_streams(serve("basic")) for _ in range(4))
    assert slowest < DELAY_MAX


def slowest_beside_streams(server: Server) -> float:
    """How long others wait while thousands of streams begin to wait and are answered."""
    with Streams(server.address, connections=60, streams=250) as streams, Prober(server.address) as prober:
        streams.ask("/next/all")
        server.until_parked(60 * 250, 180)
        server.publish("all", b"one")
        server.until_zero()
    return prober.slowest


def test_channels_on_which_nothing_happens_cost_no_turn_anything(serve: Serve, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(MANY_CHANNELS)
    server = serve(app, channel_limit=300_000)
    for first in range(0, 200_000, 1_000):
        assert server.post(f"/fill/{first}/1000").status == 200
    before = server.until(lambda status: status["channels"]["count"] == 200_000)["turns"]["busy"]
    watch = Stopwatch()
    until("it has counted several times", lambda: watch.seconds > 4)
    turns = server.status()["turns"]
    # The server counts and measures itself once a second; answering the status takes one turn.
    assert turns["busy"] <= before + 2, turns


MANY_CHANNELS = """
from parkade import App, channel

app = App()

@app.post("/fill/{first:int}/{count:int}")
def fill(first: int, count: int) -> str:
    for number in range(first, first + count):
        channel(f"quiet/{number}").publish("x")
    return "filled"
"""


@pytest.mark.promise(9)
def test_a_disk_that_does_not_answer_holds_up_jobs_alone(serve: Serve, tmp_path: Path) -> None:
    """The store could not be opened at the start; opening it again would block for ever."""
    server = serve("jobs", state=tmp_path, prefix=["sh", "-c", LITTLE_ROOM, "sh"])
    server.until_logged("the job store cannot be opened")
    for path in tmp_path.glob("jobs.db*"):
        path.unlink()
    # Opening it blocks until there is a reader.
    os.mkfifo(tmp_path / "jobs.db")
    until("it is tried", lambda: is_opening(server))
    watch = Stopwatch()
    while watch.seconds < 3:
        assert server.get("/hola/you").status == 200
        assert server.post("/enqueue", asking("write", "one")).status in (503, 507)
    assert is_opening(server), "it stands still"
    with (tmp_path / "jobs.db").open("rb", buffering=0):
        until("it is given up", lambda: not is_opening(server))
    assert server.get("/hola/you").status == 200


@pytest.mark.promise(7)
def test_a_reload_that_brings_the_first_jobs_waits_for_their_disk_alone(serve: Serve, tmp_path: Path) -> None:
    app, state = tmp_path / "app.py", tmp_path / "state"
    app.write_text("from parkade import App\napp = App()\napp.get('/constant', 'old')\n")
    server = serve(app, state=state)
    state.mkdir(exist_ok=True)
    os.mkfifo(state / "jobs.db")
    app.write_text("from parkade import App\napp = App()\napp.get('/constant', 'new')\n@app.job\ndef work(): ...\n")
    server.signal(signal.SIGHUP)
    until("the file is being opened", lambda: is_opening(server))
    watch = Stopwatch()
    while watch.seconds < 2:
        assert server.get("/constant").text == "old"
    (state / "jobs.db").rename(state / "another")
    with (state / "another").open("rb", buffering=0):
        until("it has been tried", lambda: server.get("/constant").text == "new")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)


@pytest.mark.promise(9)
def test_a_script_that_enqueues_the_first_job_waits_for_its_disk_alone(serve: Serve, tmp_path: Path) -> None:
    """No other request waits. Jobs enqueued meanwhile are stored or refused. The next one opens the file."""
    app, state = tmp_path / "app.py", tmp_path / "state"
    app.write_text("from parkade import App\napp = App()\napp.get('/constant', 'here')\n")
    server = serve(app, state=state)
    state.mkdir(exist_ok=True)
    os.mkfifo(state / "jobs.db")
    told: list[int] = []

    def enqueue() -> None:
        told.append(server.admin("POST", "/jobs", b'{"name": "work"}')[0])

    scripts = [threading.Thread(target=enqueue) for _ in range(3)]
    for script in scripts:
        script.start()
    until("the file is being opened", lambda: is_opening(server))
    watch = Stopwatch()
    while watch.seconds < 1:
        assert server.get("/constant").text == "here"
    assert not told, "nobody knows yet"
    (state / "jobs.db").rename(state / "another")
    with (state / "another").open("rb", buffering=0):
        for script in scripts:
            script.join()
    assert set(told) <= {201, 503}
    assert len(told) == 3
    until("jobs are taken", lambda: server.admin("POST", "/jobs", b'{"name": "work"}')[0] == 201)
    assert len(json.loads(server.admin("GET", "/jobs")[1])["jobs"]) == 1 + told.count(201)


LITTLE_ROOM = 'trap "" XFSZ; ulimit -f 48; exec "$@"'
"""No file may exceed 24 or 48 KiB, which is little for a database and enough for a log."""


def is_opening(server: Server) -> bool:
    """Whether the thread exists that opens the store, and then writes it."""
    return any(path.read_text() == "jobs\n" for path in Path(f"/proc/{server.pid}/task").glob("*/comm"))


@pytest.mark.skipif(certificate.missing() is not None, reason=str(certificate.missing()))
def test_a_database_over_tls_delays_nobody(serve: Serve, tmp_path: Path) -> None:
    """Handshakes of a whole pool at once, then large results for several clients at once."""
    app = tmp_path / "app.py"
    app.write_text(OVER_TLS)
    with certificate.certified() as settings:
        postgres = Postgres(**settings)
        try:
            server = serve(app, database=postgres.url.replace("disable", "require"), database_slots=48)
            at_once(server, "/secure", 48)
            at_once(server, "/rows", 6)
            assert busiest(server) < DELAY_MAX
        finally:
            postgres.stop()


def at_once(server: Server, target: str, count: int) -> None:
    """This many clients, whose responses are all the same, and right."""
    clients = server.waiting(target, count)
    threads = [threading.Thread(target=lambda client=client: answers.append(client.answer())) for client in clients]
    answers: list[object] = []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200}  # type: ignore[attr-defined]
    assert len({answer.body for answer in answers}) == 1  # type: ignore[attr-defined]


OVER_TLS = """
from parkade import App, query

app = App()
app.get("/secure", query("select ssl from pg_stat_ssl, pg_sleep(0.3) where pid = pg_backend_pid()").value())
app.get("/rows", query("select n, md5(n::text) as a, repeat('x', 100) as b from generate_series(1, 30000) n"))
"""
