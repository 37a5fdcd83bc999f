"""An application may print, read, fork and close without disturbing its link, which has its own pipes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Kind, Serve
from .harness import processes
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, kind: Kind) -> Server:
    return serve_for_all("offspring", environment=kind)


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """After each test the worker is still the same."""
    pids = shared.worker_pids()
    yield shared
    shared.cleared()
    assert shared.worker_pids() == pids
    assert shared.status()["counts"]["workers_died"] == 0


# Printing


@pytest.mark.parametrize(
    "words", ["written while it loads", "printed while it loads", "told by a program while it loads"]
)
def test_what_is_printed_while_the_application_loads_is_in_the_log(server: Server, words: str) -> None:
    server.until_logged(words)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/print", "printed by the handler"),
        ("/write", "written by the handler"),
        ("/buffer", "buffered by the handler"),
        ("/program", "told by a program worker"),
        ("/inheriting-program", "told by a program that inherits"),
        ("/shell", "told by a shell"),
        ("/fork", "told by a child"),
        *(
            pytest.param(
                f"/multiprocessing/{how}",
                f"told by a process of {how}",
                marks=pytest.mark.python_only("a module of it"),
            )
            for how in ("fork", "spawn", "forkserver")
        ),
    ],
)
def test_whoever_writes_to_standard_output_is_in_the_log_and_not_in_the_link(
    server: Server, target: str, words: str
) -> None:
    parked = server.connect().ask("GET", "/after/0.1")
    for count in (1, 2):
        answer = server.get(target)
        assert (answer.status, answer.text) == (200, "done")
        server.until_logged(words, times=count)
    assert parked.answer().text == "after"


def test_standard_input_is_empty(server: Server) -> None:
    for _ in range(2):
        assert server.get("/read").json() == ["", "", ""]


# Closing


def test_a_worker_that_closes_its_standard_streams_serves_on(serve: Serve) -> None:
    server = serve("offspring")
    (pid,) = server.worker_pids()
    assert server.get("/close-standard-streams").text == "closed"
    server.still_serves()
    assert server.get("/after/0.05").text == "after"
    assert server.worker_pids() == [pid]


@pytest.mark.promise(6)
def test_a_worker_that_closes_its_link_is_replaced(serve: Serve, kind: Kind) -> None:
    server = serve("offspring", environment=kind)
    (pid,) = server.worker_pids()
    parked = server.connect().ask("GET", "/after/0.5")
    server.until_parked(1)
    watch = Stopwatch()
    assert server.get("/close-everything").status == 502
    assert watch.seconds < BUSY
    until("the worker is gone", lambda: not processes.is_alive(pid))
    server.ready()
    assert parked.answer().text == "after"
    server.still_serves()


# Child processes that stay


@pytest.fixture(params=["/forked", "/started"])
def leave_behind(request: pytest.FixtureRequest) -> Iterator[Callable[[Server], int]]:
    """Leaves a daemon of a worker behind, which holds every inherited pipe; ends it after the test."""
    left: list[Server] = []

    def act(server: Server) -> int:
        left.append(server)
        pid = int(server.get(f"{request.param}/end").text)
        assert processes.is_alive(pid)
        return pid

    yield act
    for server in left:
        server.open_gate("end")


@pytest.mark.promise(6)
def test_a_daemon_that_outlives_its_worker_hides_no_death(
    serve: Serve, kind: Kind, leave_behind: Callable[[Server], int]
) -> None:
    server = serve("offspring", environment=kind)
    (pid,) = server.worker_pids()
    daemon = leave_behind(server)
    running = server.connect().ask("GET", "/hold/never")
    server.until_begun("never")
    watch = Stopwatch()
    os.kill(pid, signal.SIGKILL)
    assert running.answer().status == 502
    assert watch.seconds < BUSY, "nobody waits for the daemon"
    assert server.status()["counts"]["workers_died"] == 1
    server.ready()
    server.still_serves()
    assert processes.is_alive(daemon)


def test_a_daemon_that_outlives_its_worker_holds_up_no_stop(
    serve: Serve, kind: Kind, leave_behind: Callable[[Server], int]
) -> None:
    server = serve("offspring", environment=kind, grace="5s")
    daemon = leave_behind(server)
    watch = Stopwatch()
    server.signal(signal.SIGTERM)
    assert server.process.wait(4) == 0
    assert watch.seconds < BUSY
    assert processes.is_alive(daemon)


def test_a_worker_that_is_killed_takes_its_programs_along(serve: Serve, kind: Kind) -> None:
    server = serve("offspring", environment=kind, kill_grace="100ms")
    asked = server.connect().ask("GET", "/helped")
    helper = int(server.until_logged(r"helper (\d+)\.")[1])
    assert processes.is_alive(helper)
    assert asked.answer().status == 504
    until("the program is gone", lambda: not processes.is_alive(helper))
    server.still_serves()


@pytest.mark.python_only("coroutines")
def test_a_worker_that_no_longer_listens_is_replaced(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "deaf.py"
    file.write_text(
        "import fcntl, os\n"
        "from parkade import App\n"
        "app = App()\n"
        "def reads_a_pipe(fd):\n"
        "    try:\n"
        "        pipe = os.readlink(f'/proc/self/fd/{fd}').startswith('pipe:')\n"
        "        return pipe and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY\n"
        "    except OSError:\n"
        "        return False\n"
        "@app.get('/deaf')\n"
        "async def deaf():\n"
        "    for fd in range(3, 64):\n"
        "        if reads_a_pipe(fd): os.close(fd)\n"
        "    return 'deaf'\n"
        "@app.get('/hola/{name}')\n"
        "async def hola(name: str): return f'Hola {name}'\n"
    )
    server = serve(file, workers=1)
    assert server.get("/deaf").text == "deaf"
    watch = Stopwatch()
    assert server.get("/hola/x").status == 502
    server.ready()
    assert server.get("/hola/x").text == "Hola x"
    assert watch.seconds < 2 * BUSY


@pytest.mark.python_only("sitecustomize")
def test_who_prints_before_its_link_is_taken_over_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello from far too early')\n")
    server = serve("basic", is_ready=False, environment={"PYTHONPATH": str(tmp_path)})
    assert server.ended() == 1
    assert "hello from far too early" in server.log()
    assert "standard output" in server.log()
