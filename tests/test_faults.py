"""Time stands still or jumps, clients vanish, memory runs out, the server is replaced: waiting requests get what is
due.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import network, processes, wall_clock
from .harness.client import Client, request
from .harness.load import Load
from .harness.network import Network
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until
from .test_listen import ACTIVATE

SWEEP = 0.5
"""How often connections are checked."""


needs_clock = pytest.mark.skipif(wall_clock.missing() is not None, reason=str(wall_clock.missing()))


# The wall clock jumps


def date(server: Server) -> float:
    """The server's wall clock."""
    return parsedate_to_datetime(server.get("/hola/x")["date"]).timestamp()


@pytest.fixture
def clock() -> wall_clock.WallClock:
    return wall_clock.WallClock()


def jumps(server: Server, clock: wall_clock.WallClock, offset: float) -> None:
    """Makes the clock jump, and waits until the server has noticed."""
    before = date(server)
    clock.jump(offset)
    until("the date has jumped", lambda: abs(date(server) - before) > 3_000)


@needs_clock
def test_a_jump_of_the_wall_clock_moves_no_timer_and_ages_no_history(serve: Serve, clock: wall_clock.WallClock) -> None:
    server = serve("basic", header_timeout="1s", environment=clock.environment)
    kept = server.publish("kept", b"first")
    server.publish("kept", b"second")
    for offset in (3_600, 0):
        watch = Stopwatch()
        waiting = {
            200: server.connect().ask("GET", "/after/1"),
            204: server.connect().ask("GET", "/next/nothing?timeout=1"),
            408: server.connect().send(b"GET /hola/x HTTP/1.1\r\n"),
        }
        server.until_parked(2)
        jumps(server, clock, offset)
        assert server.get(f"/next/kept?since={kept}").body == b"second", "it has not aged by an hour"
        for status, client in waiting.items():
            assert client.answer().status == status
            assert 0.95 <= watch.seconds < 1 + SWEEP + BUSY, f"{status} after {watch.seconds} s"
        server.still_serves()


@needs_clock
def test_a_jump_of_the_wall_clock_wakes_no_coroutine_moves_no_deadline_and_blames_no_worker(
    serve: Serve, clock: wall_clock.WallClock
) -> None:
    server = serve("coroutines", deadline="900ms", environment=clock.environment)
    pids = server.worker_pids()
    for offset in (-3_600, 0):
        watch = Stopwatch()
        waiting = [
            server.connect().ask("GET", target) for target in ("/after/0.7", "/sleep/0.7", "/next/nothing?timeout=0.7")
        ]
        late = server.connect().ask("GET", "/hold/never")
        server.until(lambda status: (status["lives"]["parked"], status["lives"]["running"]) == (2, 2))
        jumps(server, clock, offset)
        for client in waiting:
            assert client.answer().status == 200
            assert 0.65 <= watch.seconds < 0.7 + BUSY
        assert late.answer().status == 504
        assert 0.85 <= watch.seconds < 0.9 + BUSY
    assert server.worker_pids() == pids
    server.still_serves()


# A process stands still


def test_when_a_core_that_stood_still_goes_on_overdue_timers_fire_once_each_and_no_worker_is_blamed(
    serve: Serve,
) -> None:
    server = serve("coroutines", workers=2)
    pids = server.worker_pids()
    timers = server.waiting("/after/2.5", 100) + server.waiting("/next/nothing?timeout=2.5", 100)
    server.until_parked(200)
    # Pings are sent once a second: one is on its way when the core stops.
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    watch = Stopwatch()
    until("a worker was asked", lambda: watch.seconds > 1.2)
    os.kill(server.pid, signal.SIGSTOP)
    watch = Stopwatch()
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    until("much more than a worker may be silent", lambda: watch.seconds > 7.5)
    assert not any(client.is_readable() for client in timers)
    os.kill(server.pid, signal.SIGCONT)
    assert {client.answer().status for client in timers} == {200}
    server.still_serves()
    assert not any(client.is_readable() for client in timers), "each is answered once"
    assert server.worker_pids() == pids
    assert "event loop is blocked" not in server.log()


@pytest.mark.also_in_perl
@pytest.mark.parametrize("app", ["basic", pytest.param("coroutines", marks=pytest.mark.python_only("coroutines"))])
def test_a_worker_that_stood_still_within_its_deadline_goes_on_as_if_nothing_had_been(serve: Serve, app: str) -> None:
    server = serve(app, deadline="20s")
    (pid,) = server.worker_pids()
    parked = server.waiting("/next/meanwhile", 10)
    server.until_parked(10)
    os.kill(pid, signal.SIGSTOP)
    waiting = server.waiting("/hola/patient", 20)
    left = server.waiting("/hola/impatient", 5)
    server.until(lambda status: status["lives"]["queued"] + status["lives"]["running"] == 25)
    server.publish("meanwhile", b"said")
    for client in left:
        client.close()
    server.until(lambda status: status["lives"]["queued"] + status["lives"]["running"] <= 30)
    assert not any(client.is_readable() for client in waiting)
    os.kill(pid, signal.SIGCONT)
    assert {client.answer().text for client in waiting} == {"Hola patient"}
    assert {client.answer().status for client in parked} == {200}
    server.still_serves()
    assert server.worker_pids() == [pid]
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.also_in_perl
def test_a_worker_that_stands_still_holds_up_no_stop(serve: Serve) -> None:
    server = serve("basic", workers=2, grace="300ms")
    running = server.connect().ask("GET", "/hold/never")
    server.until_running(1)
    for pid in server.worker_pids():
        os.kill(pid, signal.SIGSTOP)
    watch = Stopwatch()
    assert server.stop() == 0
    assert watch.seconds < 0.3 + 2 + 1 + BUSY, "the grace, the time for hooks, a moment for connections"
    assert running.answer().status == 503


# Clients vanish


@pytest.fixture
def apart(serve: Serve) -> Server:
    """A server in a network of its own."""
    if reason := network.missing():
        pytest.skip(reason)
    return serve("basic", prefix=network.APART)


@pytest.mark.promise(3)
def test_parked_clients_that_vanish_without_a_word_are_found(apart: Server) -> None:
    net = Network(apart)
    targets = ["/next/vanished", "/next-then/vanished", "/after/600", "/events/vanished"]
    clients = net.inside(lambda: [Client(apart.address).ask("GET", target) for target in targets * 5])
    apart.until_parked(20)
    with net.far_ends(clients) as ends:
        net.vanish(clients)
        for end in ends:
            assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) <= 10
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) <= 3
        assert apart.status()["lives"]["parked"] == 20, "nobody has said anything"
        for end in ends:  # a minute and a half is too long for a test
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1_000)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        apart.until_zero(4)
    apart.until(lambda status: status["connections"]["http1"] == 0)


@pytest.mark.promise(3)
def test_a_stream_ends_when_its_client_acknowledges_nothing_any_more(apart: Server) -> None:
    net = Network(apart)
    clients = net.inside(lambda: [Client(apart.address).ask("GET", "/events/vanished") for _ in range(5)])
    apart.until_parked(5)
    with net.far_ends(clients) as ends:
        net.vanish(clients)
        for end in ends:
            assert 0 < end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 90_000
            end.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 500
            )  # a minute and a half is too long for a test
        apart.publish("vanished", b"who hears it?")
        apart.until_zero()
    apart.until(lambda status: status["connections"]["http1"] == 0)


# Memory ends


def test_a_handler_without_memory_is_500_and_its_worker_serves_on(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "greedy.py"
    file.write_text(
        "import resource\n"
        "from parkade import App\n"
        "app = App()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "@app.get('/hola/{name}')\n"
        "def hola(name: str): return f'Hola {name}'\n"
        "@app.get('/greedy')\n"
        "def greedy():\n"
        "    kept = []\n"
        "    while True: kept.append(bytearray(1 << 20))\n"
    )
    server = serve(file, workers=1)
    (pid,) = server.worker_pids()
    for _ in range(3):
        assert server.get("/greedy").status == 500
    server.until_logged("MemoryError", times=3)
    server.still_serves()
    assert server.worker_pids() == [pid]
    assert processes.resident_bytes(pid) < 200 << 20, "what it had is given back"


# The server is replaced


@pytest.mark.also_in_perl
def test_a_new_server_takes_over_the_socket_of_an_old_one_and_nobody_is_refused(serve: Serve) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1_024)
        address = listener.getsockname()

        def start() -> Server:
            activate = [sys.executable, "-c", ACTIVATE, str(listener.fileno())]
            return serve("basic", workers=2, prefix=activate, pass_fds=[listener.fileno()])

        old = start()
        with Load(address, "/hola/newcomer", fields=["Connection: close"]) as newcomers:
            parked = old.connect().ask("GET", "/next/handed-over")
            running = old.connect().ask("GET", "/hold/end")
            old.until_parked(1)
            start()
            newcomers.goes_on(500)
            old.signal(signal.SIGTERM)
            newcomers.goes_on(500)
            old.open_gate("end")
            assert (parked.answer().status, running.answer().status) == (204, 200)
            assert old.ended() == 0
            newcomers.goes_on(500)
        assert (newcomers.failures, set(newcomers.statuses)) == ([], {200})


# Other users of this machine


def may_connect(user: int, path: Path) -> bool:
    """Whether a process of this user is allowed to connect."""
    if (child := os.fork()) == 0:
        try:
            os.setuid(user)
            socket.socket(socket.AF_UNIX).connect(str(path))
        except PermissionError:
            os._exit(1)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")
def test_another_user_may_not_enter_the_private_socket(serve: Serve) -> None:
    server = serve("basic")
    server.folder.chmod(0o755)
    assert may_connect(0, server.private)
    assert not may_connect(65_534, server.private)
    server.still_serves()


# What the core saw and what the worker saw


@pytest.mark.also_in_perl
@pytest.mark.parametrize(
    "target",
    [
        "/echo",
        "/echo?a=1&b=%20",
        "/echo?x='1'",
        "/echo?%0d%0aforged: 1",
        "http://test/echo?absolute",
        "/%65cho?encoded",
    ],
)
def test_the_access_log_tells_the_target_that_the_handler_saw(shared: Server, target: str) -> None:
    target = target.replace(" ", "%20")
    with Client(shared.address) as client:
        told = client.send(request("GET", target, f"User-Agent: {target}")).answer().json()
    line = until("its line", lambda: [one for one in lines(shared) if one.get("user_agent") == target])[0]
    seen = told["path"] + ("?" + told["query"] if "?" in target else "")
    assert (line["method"], line["path"].removeprefix("http://test"), line["status"]) == ("GET", seen, 200)


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", access_log="json")


def lines(server: Server) -> list[dict[str, object]]:
    return [json.loads(line) for line in server.printed().splitlines()]
