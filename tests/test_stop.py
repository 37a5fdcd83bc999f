"""Shutdown: gracefully at SIGTERM, at once when requested twice, and without orphans however the core dies."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from .conftest import Application, Kind, Serve
from .harness import processes
from .harness.client import Client
from .harness.load import Load
from .harness.ports import free_port
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

UNREAD = 250_000
"""More than a socket accepts if its client does not read, less than the core takes from a worker in addition (256 KiB).
"""


def stopping(server: Server) -> None:
    """Sends SIGTERM, and waits until the server reports that it drains."""
    server.signal(signal.SIGTERM)
    server.until_logged("shutting down")
    with contextlib.suppress(OSError):  # nothing may have delayed it
        server.until(lambda status: status["state"] == "draining")


# Gracefully


@pytest.mark.promise(3)
@pytest.mark.needs
def test_what_runs_and_what_queues_is_finished_and_its_connection_closes(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, grace="20s")
    running = server.connect().ask("GET", "/hold/finish")
    server.until_running(1)
    queued = server.waiting("/hola/queued", 3)
    server.until(lambda status: status["lives"]["queued"] == 3)
    stopping(server)
    server.open_gate("finish")
    answers = [client.answer() for client in [running, *queued]]
    assert {(answer.status, answer["connection"]) for answer in answers} == {(200, "close")}
    assert running.ends()
    assert server.ended() == 0


@pytest.mark.python_only("about the core")
@pytest.mark.promise(3)
def test_who_stands_in_the_backlog_is_served(serve: Serve) -> None:
    """A client there is connected and has sent its request: closing the listener would reset it."""
    server = serve("basic")
    server.signal(signal.SIGSTOP)
    clients = [server.connect().ask("GET", f"/hola/{number}") for number in range(300)]
    server.signal(signal.SIGTERM)
    server.signal(signal.SIGCONT)
    assert [client.answer().text for client in clients] == [f"Hola {number}" for number in range(300)]
    assert server.ended() == 0


def lets_in(server: Server) -> bool:
    """The listener is closed a moment after the server reports that it stops."""
    try:
        Client(server.address).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.python_only("about the core")
@pytest.mark.promise(3)
def test_who_has_just_connected_is_served(serve: Serve) -> None:
    server = serve("basic")
    client = server.connect()
    server.until(lambda status: status["connections"]["http1"] == 1)
    server.signal(signal.SIGTERM)
    until("nobody new is let in", lambda: not lets_in(server))
    answer = client.ask("GET", "/hola/late").answer()
    assert (answer.text, answer["connection"]) == ("Hola late", "close")
    assert server.ended() == 0


@pytest.mark.promise(3)
@pytest.mark.parametrize("target", ["/next/poll", "/standing-next"])
def test_long_polls_get_their_empty_answer_at_once(serve: Serve, target: str) -> None:
    server = serve("basic", grace="20s")
    polls = server.waiting(target, 50)
    server.until_parked(50)
    watch = Stopwatch()
    server.signal(signal.SIGTERM)
    answers = [client.answer() for client in polls]
    assert {(answer.status, answer["connection"], bool(answer["etag"])) for answer in answers} == {(204, "close", True)}
    assert server.ended() == 0
    assert watch.seconds < BUSY


@pytest.mark.promise(3)
def test_streams_of_events_end_whole_and_say_when_to_come_back(serve: Serve) -> None:
    server = serve("basic", grace="20s")
    streams = [server.events("/events/last") for _ in range(10)]
    server.until_parked(10)
    server.publish("last", b"message")
    server.signal(signal.SIGTERM)
    retries = set()
    for stream in streams:
        events = stream.rest()
        assert [event.data for event in events if event.data is not None] == ["message"]
        assert events[-1].retry is not None
        retries.add(events[-1].retry)
        assert stream.client.ends()
    assert len(retries) > 3, "not all at once"
    assert server.ended() == 0


@pytest.mark.python_only("coroutines")
def test_functions_and_coroutines_that_wait_for_a_channel_go_on_with_nothing(serve: Serve) -> None:
    server = serve("basic", grace="20s")
    thens = server.waiting("/next-then/late", 5)
    server.until_parked(5)
    server.signal(signal.SIGTERM)
    assert [client.answer().json()["value"] for client in thens] == [None] * 5
    assert server.ended() == 0
    server = serve("coroutines", grace="20s")
    awaiting = server.waiting("/next/late", 5)
    server.until_parked(5)
    server.signal(signal.SIGTERM)
    assert [client.answer().json()["value"] for client in awaiting] == [None] * 5
    assert server.ended() == 0


def test_timers_run_on_within_the_grace(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, grace="20s")
    timers = server.waiting("/after/0.6", 3) + server.waiting("/after-then/0.6", 3)
    server.until_parked(6)
    server.signal(signal.SIGTERM)
    assert [client.answer().status for client in timers] == [200] * 6
    assert server.ended() == 0


def test_nobody_new_is_let_in(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, grace="20s")
    kept, idle = server.connect(), server.connect()
    kept.get("/hola/x")
    running = server.connect().ask("GET", "/hold/door")
    server.until_running(1)
    stopping(server)
    assert idle.ends(), "who asks for nothing is let go"
    assert kept.ends()
    with pytest.raises(ConnectionRefusedError):
        Client(server.address)
    assert server.admin("GET", "/health/live")[0] == 200
    assert server.admin("GET", "/health/ready")[0] == 503
    server.open_gate("door")
    assert running.answer().status == 200
    assert server.ended() == 0


@pytest.mark.python_only("about the core")
def test_http_2_is_told_to_go_away_and_its_streams_are_finished(serve: Serve) -> None:
    server = serve("basic", grace="20s")
    client = server.connect2()
    poll = client.ask("GET", "/next/goaway")
    server.until_parked(1)
    stream = client.ask("GET", "/hold/goaway")
    server.until_running(1)
    server.signal(signal.SIGTERM)
    assert client.answer(poll).status == 204
    client.until_goaway()
    server.open_gate("goaway")
    assert client.answer(stream).status == 200
    assert server.ended() == 0


def test_under_load_no_request_that_was_begun_is_reset(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=2, grace="20s")
    load = Load(server.address, "/hola/x", "/after/0.01", "/bytes/100000", connections=8)
    with load:
        load.goes_on(200)
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
    assert set(load.statuses) == {200}
    # A connection may close between two requests; a response that has begun is never aborted.
    begun = [failure for failure in load.failures if "Broken(" in failure or "closed behind b" in failure]
    assert not [failure for failure in begun if "b''" not in failure], load.failures


def test_shut_down_hooks_run_in_every_worker(serve: Serve, application: Application) -> None:
    file = application(
        python="from parkade import App\n"
        "app = App()\n"
        "@app.on_start\n"
        "def start(): print('hook: start')\n"
        "@app.on_stop\n"
        "def stop(): print('hook: stop')\n",
        perl="print qq(hook: start\\n);\nEND { print qq(hook: stop\\n) }\nsub { [200, [], []] };\n",
    )
    server = serve(file, workers=3)
    assert server.stop() == 0
    assert server.log().count("hook: start") == 3
    assert server.log().count("hook: stop") == 3


def test_answers_that_are_not_read_yet_are_delivered_whole_within_the_grace(serve: Serve) -> None:
    """One response of the core itself, one of a worker: a part of both is in the core when everything else is done."""
    server = serve("basic", grace="20s")
    cursor = server.publish("unread", b"before")
    server.publish("unread", b"x" * UNREAD)
    targets = [f"/next/unread?since={cursor}", f"/bytes/{UNREAD}"]
    clients = [server.connect(receive_buffer=4096, segment=1460).ask("GET", target) for target in targets]
    until("both answers begin", lambda: all(client.is_readable() for client in clients))
    server.until_zero()
    server.signal(signal.SIGTERM)
    watch = Stopwatch()
    until("three seconds", lambda: watch.seconds > 3)
    assert server.process.poll() is None, "it is still there for them"
    assert {(client.answer().body == b"x" * UNREAD) for client in clients} == {True}
    assert server.ended() == 0
    assert watch.seconds < 3 + BUSY


@pytest.mark.python_only("about the core")
def test_answers_over_http_2_too(serve: Serve) -> None:
    server = serve("basic", grace="20s")
    client = server.connect2(window=16_384)
    streams = [client.ask("GET", f"/bytes/{size}") for size in (60_000, UNREAD)]
    until("both answers begin", lambda: all(client.opening(stream) for stream in streams))
    server.until_zero()
    server.signal(signal.SIGTERM)
    watch = Stopwatch()
    until("three seconds", lambda: watch.seconds > 3)
    for number in (*streams, None):
        client.connection.increment_flow_control_window(1 << 20, number)
    client.flush()
    assert [len(client.answer(stream).body) for stream in streams] == [60_000, UNREAD]
    assert server.ended() == 0


@pytest.mark.python_only("about the core")
def test_answers_that_are_never_read_hold_the_stop_up_for_the_grace_alone(serve: Serve) -> None:
    server = serve("basic", grace="700ms")
    client = server.connect(receive_buffer=4096, segment=1460).ask("GET", f"/bytes/{UNREAD}")
    until("the answer begins", client.is_readable)
    server.until_zero()
    watch = Stopwatch()
    assert server.stop() == 0
    assert 0.7 <= watch.seconds < 0.7 + BUSY


@pytest.mark.python_only("about the core")
def test_an_idle_server_ends_within_a_second(serve: Serve) -> None:
    server = serve("basic", workers=2, grace="30s")
    server.connect().get("/hola/x")
    watch = Stopwatch()
    assert server.stop() == 0
    assert watch.seconds < 1 + BUSY


@pytest.mark.python_only("about the core")
def test_a_client_that_sends_its_request_slowly_does_not_hold_it_up(serve: Serve) -> None:
    server = serve("basic", grace="1s")
    half = server.connect().send(b"GET /hola/x HTT")
    server.until(lambda status: status["connections"]["http1"] == 1)
    watch = Stopwatch()
    assert server.stop() == 0
    assert watch.seconds < BUSY
    half.close()


HOOKS = """
import asyncio, os, time
from parkade import App, after

app = App()

@app.on_stop
def stop():
    print(f"stops {os.getpid()}", flush=True)

if os.environ.get("CONCURRENT"):
    async def doze():
        await asyncio.sleep(600)
else:
    def doze():
        time.sleep(600)

@app.get("/request")
def waits():
    return after(600).then(back)

def back(_):
    return "back"

app.get("/doze")(doze)
job = app.job(doze)

@app.post("/job")
def enqueue():
    job.enqueue()
"""


HOOKS_IN_PERL = r"""
use Parkade;

END { print "stops $$\n" }

sub doze { sleep 600 }

get '/request' => sub { after(600)->then('back') };
sub back { return 'back' }

get '/doze' => \&doze;
job doze => \&doze;
post '/job' => sub { enqueue 'doze'; return };

1;
"""


@pytest.mark.parametrize("busy", ["request", "job"])
def test_the_idle_run_their_hooks_whatever_is_still_at_work(
    serve: Serve, application: Application, kind: Kind, busy: str
) -> None:
    """And before the grace is over, because no request can need them."""
    app = application(kind.get("LANGUAGE", "python"), python=HOOKS, perl=HOOKS_IN_PERL)
    server = serve(app, environment=kind, workers=2, job_workers=1, grace="10m")
    idle = {worker["pid"] for worker in server.ready(2, 1).status()["workers"]}
    client = None
    if busy == "job":
        assert server.post("/job").status == 204
        working = server.until(lambda status: status["jobs"]["running"] == 1)["workers"]
    else:
        client = server.connect().ask("GET", "/doze")
        working = server.until_running(1)["workers"]
    idle -= {worker["pid"] for worker in working if worker["held"]}
    assert len(idle) == 2
    server.signal(signal.SIGTERM)
    for pid in idle:
        server.until_logged(f"stops {pid}")
        until("it has ended", lambda pid=pid: not processes.is_alive(pid))
    assert server.process.poll() is None, "the other one goes on"
    server.signal(signal.SIGTERM)
    assert client is None or client.answer().status == 503
    server.ended()


def test_those_that_are_idle_when_the_grace_is_over_run_their_hooks(
    serve: Serve, application: Application, kind: Kind
) -> None:
    """They were kept for a parked request."""
    app = application(kind.get("LANGUAGE", "python"), python=HOOKS, perl=HOOKS_IN_PERL)
    server = serve(app, environment=kind, workers=1, grace="500ms")
    client = server.connect().ask("GET", "/request")
    server.until_parked(1)
    assert server.stop() == 0
    assert client.answer().status == 503
    server.until_logged("grace period expired")
    assert "stops" in server.log()
    assert "killing a worker" not in server.log()


# Less gracefully


@pytest.mark.promise(3)
@pytest.mark.python_only("coroutines")
def test_coroutines_are_cancelled_a_moment_before_the_grace_is_over(serve: Serve) -> None:
    """So they clean up. One that ignores it has the worker killed, and both clients are told the same."""
    server = serve("coroutines", workers=1, grace="2s")
    clients = [server.connect().ask("GET", f"/{way}/never") for way in ("hold", "deaf", "beside")]
    server.until_logged("holds at never", times=2)
    stopping(server)
    answers = [client.answer() for client in clients]
    assert [(answer.status, answer.json()["detail"]) for answer in answers] == [(503, "the server is stopping")] * 3
    assert server.ended() == 0
    server.until_logged("the worker stops: 3 requests that were still running were cancelled")
    server.until_logged("cancelled while holding at never", times=2)
    server.until_logged("cancelled, and goes on")


@pytest.mark.promise(3)
def test_what_is_left_when_the_grace_is_over_is_503_and_the_worker_is_killed(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, grace="500ms")
    timer = server.connect().ask("GET", "/after/30")
    server.until_parked(1)
    running = server.connect().ask("GET", "/hold/never")
    server.until_running(1)
    watch = Stopwatch()
    server.signal(signal.SIGTERM)
    for client in (running, timer):
        answer = client.answer()
        assert (answer.status, answer["connection"], int(answer["retry-after"]) >= 0) == (503, "close", True)
    assert server.ended() == 0
    assert 0.5 <= watch.seconds < 0.5 + BUSY
    server.until_logged("grace period expired")


@pytest.mark.parametrize(
    "signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGTERM), (signal.SIGQUIT,)]
)
def test_asked_twice_it_ends_at_once(serve: Serve, kind: Kind, signals: tuple[signal.Signals, ...]) -> None:
    server = serve("basic", environment=kind, grace="60s")
    running = server.connect().ask("GET", "/hold/never")
    server.until_running(1)
    watch = Stopwatch()
    for number, one in enumerate(signals):
        server.signal(one)
        if number + 1 < len(signals):
            server.until(lambda status: status["state"] == "draining")
    assert running.answer().status == 503
    server.ended()
    assert watch.seconds < BUSY


def test_sigint_once_is_polite(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, grace="20s")
    running = server.connect().ask("GET", "/hold/finish")
    server.until_running(1)
    server.signal(signal.SIGINT)
    server.until(lambda status: status["state"] == "draining")
    server.open_gate("finish")
    assert running.answer().status == 200
    assert server.ended() == 0


def test_a_stop_while_workers_start_is_a_stop(serve: Serve, application: Application) -> None:
    file = application(python="import time\ntime.sleep(60)\n", perl="sleep 60;")
    server = serve(file, is_ready=False)
    server.until_logged("starting workers")
    until("a worker is there", lambda: len(server.belongings()) == 2)
    watch = Stopwatch()
    assert server.stop() == 0
    assert watch.seconds < BUSY


# Without notice


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    "app", ["basic", pytest.param("coroutines", marks=pytest.mark.python_only("coroutines")), "faulty"]
)
def test_no_worker_outlives_a_core_that_is_killed(serve: Serve, kind: Kind, app: str) -> None:
    server = serve(app, environment=kind, workers=3)
    server.waiting("/hold/never", 2)
    if app == "faulty":
        server.waiting("/loop", 1)
    server.until(lambda status: status["lives"]["running"] >= 2)
    assert len(server.belongings()) == 4
    server.kill()
    until("no worker is left", lambda: server.belongings() == [], seconds=1.0)


@pytest.mark.python_only("about the core")
@pytest.mark.promise(6)
def test_after_a_kill_the_next_server_takes_the_port_within_a_second(serve: Serve) -> None:
    port = free_port()
    first = serve("basic", bind=f"127.0.0.1:{port}")
    clients = first.waiting("/next/lost", 50)
    first.until_parked(50)
    first.kill()
    watch = Stopwatch()
    second = serve("basic", bind=f"127.0.0.1:{port}")
    assert watch.seconds < 1 + BUSY, "promised is a second"
    second.still_serves()
    for client in clients:
        assert client.ends()


@pytest.mark.python_only("coroutines")
def test_a_worker_whose_core_is_stopped_and_goes_on_lives_on(serve: Serve) -> None:
    """No ping is judged by a time in which the core itself was stopped."""
    server = serve("coroutines", workers=2)
    parked = server.connect().ask("GET", "/after/0.3")
    server.until_parked(1)
    pids = server.worker_pids()
    os.kill(server.pid, signal.SIGSTOP)
    watch = Stopwatch()
    until("two seconds", lambda: watch.seconds > 2)
    os.kill(server.pid, signal.SIGCONT)
    assert parked.answer().status == 200
    server.still_serves()
    assert server.worker_pids() == pids


@pytest.mark.python_only("coroutines")
def test_workers_are_told_before_anything_is_closed(serve: Serve) -> None:
    """A coroutine that handles it can finish within the grace, because it is running when DRAIN comes."""
    server = serve("coroutines", grace="5s")
    client = server.connect().ask("GET", "/hold/told")
    server.until_running(1)
    timer = threading.Timer(0.2, server.open_gate, ["told"])
    timer.start()
    server.signal(signal.SIGTERM)
    assert client.answer().text == "told"
    assert server.ended() == 0
