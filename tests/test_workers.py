"""Workers die, hang, leak and misbehave; only the requests that they were running notice."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from .conftest import Application, Kind, Serve
from .harness import processes
from .harness.client import Broken, Client, Closed
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

MEBIBYTE = 1 << 20


def new_worker(server: Server, before: list[int], workers: int = 1) -> list[int]:
    """Waits until new workers serve."""
    server.until(
        lambda status: (
            len([worker for worker in status["workers"] if worker["state"] in ("ready", "busy")]) == workers
            and not {worker["pid"] for worker in status["workers"]} & set(before)
        )
    )
    return server.worker_pids()


# Deaths


@pytest.mark.python_only("about the core")
def test_a_worker_outlives_the_threads_of_its_server(serve: Serve) -> None:
    """Idle threads end after ten seconds, and the kernel kills the children that a thread has started."""
    server = serve("basic", workers=1)
    before = server.worker_pids()
    (client,) = server.waiting("/after/12", 1)
    server.until_parked(1)
    server.until_parked(0, seconds=60)
    assert client.answer().status == 200
    assert (server.worker_pids(), server.status()["counts"]["workers_died"]) == (before, 0)


@pytest.mark.promise(6)
def test_a_killed_worker_takes_only_the_request_that_it_was_running(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=1)
    (pid,) = server.worker_pids()
    parked = server.waiting("/next/untouched", 20) + server.waiting("/next-then/untouched", 5)
    server.until_parked(25)
    running = server.connect().ask("GET", "/hold/never")
    server.until_begun("never")
    server.until_running(1)
    queued = server.waiting("/hola/queued", 5)
    server.until(lambda status: status["lives"]["queued"] == 5)
    os.kill(pid, signal.SIGKILL)
    answer = running.answer()
    assert (answer.status, answer.json()["fault"]) == (502, "worker")
    assert {client.answer().text for client in queued} == {"Hola queued"}, "what it had not begun goes to the next"
    assert new_worker(server, [pid])
    server.publish("untouched", b"still there")
    assert {client.answer().body for client in parked[:20]} == {b"still there"}
    assert {client.answer().status for client in parked[20:]} == {200}
    assert server.status()["counts"]["workers_died"] == 1
    server.until_logged(rf"a worker died: signal 9 \(SIGKILL\).*pid={pid} requests=\"GET /hold/never ")
    server.still_serves()


@pytest.mark.promise(6)
def test_a_killed_worker_is_noticed_at_once_and_replaced_within_a_second(serve: Serve, kind: Kind) -> None:
    """The best of three counts, and the start of Python does not: the machine may be busy."""
    noticed, replaced = [], []
    for _ in range(3):
        watch = Stopwatch()
        server = serve("basic", environment=kind, workers=1)
        start = watch.seconds
        (pid,) = server.worker_pids()
        running = server.connect().ask("GET", "/hold/never")
        server.until_begun("never")
        server.until_running(1)
        queued = server.connect().ask("GET", "/hola/queued")
        server.until(lambda status: status["lives"]["queued"] == 1)
        watch = Stopwatch()
        os.kill(pid, signal.SIGKILL)
        assert running.answer().status == 502
        noticed.append(watch.seconds)
        assert queued.answer().text == "Hola queued"
        replaced.append(watch.seconds - start)
        server.stop()
    assert min(noticed) < 0.5, "promised are 100 ms"
    assert min(replaced) < 1, "promised is 1 s"


@pytest.mark.promise(6)
@pytest.mark.needs
def test_workers_that_die_together_are_all_back_at_once(serve: Serve, kind: Kind) -> None:
    watch = Stopwatch()
    server = serve("basic", environment=kind, workers=6)
    start = watch.seconds
    running = server.waiting("/hold/never", 6)
    server.until_begun("never", 6)
    watch = Stopwatch()
    for pid in server.worker_pids():
        os.kill(pid, signal.SIGKILL)
    assert [client.answer().status for client in running] == [502] * 6
    assert server.get("/hola/x").status == 200
    server.ready(6)
    assert watch.seconds < 1.5 * start + 1.5, "six interpreters start; that is all the time it takes"
    server.still_serves()


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(6)
def test_a_killed_worker_of_coroutines_takes_all_that_it_was_running_and_awaiting_and_no_more(serve: Serve) -> None:
    server = serve("coroutines", workers=2)
    running = server.waiting("/hold/never", 10)
    awaiting = server.waiting("/next/never", 10)
    streaming = server.waiting("/events/stays", 3)
    server.until(lambda status: status["lives"] == {"accepted": 0, "queued": 0, "running": 10, "parked": 13})
    victim = server.workers("ready", "busy")[0]
    lost = victim["held"] + victim["awaiting"]
    assert 0 < lost < 20
    os.kill(victim["pid"], signal.SIGKILL)
    server.until(lambda status: status["lives"]["running"] + status["lives"]["parked"] == 23 - lost)
    server.open_gate("never")
    server.publish("never", b"go")
    statuses = [client.answer().status for client in running + awaiting]
    assert (statuses.count(502), statuses.count(200)) == (lost, 20 - lost)
    server.publish("stays", b"still")
    for client in streaming:
        pieces = client.pieces(client.opening())
        assert b"still" in b"".join(piece for _, piece in zip(range(2), pieces, strict=False))
    server.ready(2)


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    ("target", "logged"), [("/kill", "SIGKILL"), ("/segfault", "SIGSEGV"), ("/exit", "exit status 3")]
)
def test_a_handler_that_ends_its_worker_gets_502_and_the_log_says_how(
    serve: Serve, kind: Kind, target: str, logged: str
) -> None:
    server = serve("faulty", environment=kind)
    (pid,) = server.worker_pids()
    assert server.get(target).status == 502
    server.until_logged(logged)
    assert new_worker(server, [pid])
    server.still_serves()


@pytest.mark.promise(6)
def test_under_load_a_killed_worker_costs_one_request(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=2)
    statuses: list[int] = []
    over = threading.Event()

    def load() -> None:
        with Client(server.address) as client:
            while not over.is_set():
                statuses.append(client.get("/hola/load").status)

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for kill in range(3):
        pid = server.worker_pids()[0]
        os.kill(pid, signal.SIGKILL)
        until("it is gone", lambda pid=pid: not processes.is_alive(pid))
        server.until(lambda status, kill=kill: status["counts"]["workers_died"] == kill + 1)
        server.ready(2)
    before = len(statuses)
    until("more answers", lambda: len(statuses) > before + 100)
    over.set()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 502}
    assert statuses.count(502) <= 3
    server.still_serves()


# Hangs


@pytest.mark.promise(6)
def test_an_endless_loop_is_504_with_its_stack_in_the_log_while_others_are_served(serve: Serve, kind: Kind) -> None:
    server = serve("faulty", environment=kind, workers=2, deadline="300ms", kill_grace="300ms")
    before = server.worker_pids()
    watch = Stopwatch()
    looping = server.connect().ask("GET", "/loop")
    server.until_running(1)
    for _ in range(20):
        assert server.get("/hola/other").status == 200
    answer = looping.answer()
    assert (answer.status, answer.json()["fault"]) == (504, "application")
    assert 0.3 <= watch.seconds < 0.3 + BUSY
    server.until_logged(r"in (main::)?loop\b")
    server.until(lambda status: status["counts"]["workers_killed"] == {"deadline": 1})
    server.ready(2)
    assert len(set(server.worker_pids()) & set(before)) == 1
    server.still_serves()


def test_a_route_may_have_a_deadline_of_its_own(serve: Serve, kind: Kind) -> None:
    server = serve("faulty", environment=kind, deadline="20s", kill_grace="200ms")
    watch = Stopwatch()
    assert server.get("/loop-soon").status == 504
    assert watch.seconds < BUSY
    server.until(lambda status: status["counts"]["workers_killed"] == {"deadline": 1})
    server.still_serves()


def test_a_route_may_have_no_deadline(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, deadline="200ms", kill_grace="200ms")
    held = server.connect().ask("GET", "/hold-for-ever/later")
    short = server.connect().ask("GET", "/hola/queued")
    assert short.answer().status == 503, "nobody was free before its deadline"
    server.until_running(1)
    server.open_gate("later")
    assert held.answer().text == "held"
    assert server.status()["counts"]["workers_died"] == 0


def test_a_worker_that_comes_back_within_the_kill_grace_lives_on(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, deadline="200ms", kill_grace="5s")
    before = server.worker_pids()
    assert server.get("/hold/late").status == 504
    server.open_gate("late")
    server.still_serves()
    assert server.worker_pids() == before
    assert server.status()["counts"]["late_frames"] >= 1


def test_requests_that_queue_past_their_deadline_are_503(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, deadline="300ms", kill_grace="5s")
    first = server.connect().ask("GET", "/hold/queue")
    server.until_running(1)
    queued = server.waiting("/hola/x", 5)
    answers = [client.answer() for client in queued]
    assert {(answer.status, answer["retry-after"]) for answer in answers} == {(503, "1")}
    assert first.answer().status == 504
    server.open_gate("queue")
    server.still_serves()


@pytest.mark.python_only("coroutines")
def test_a_coroutine_past_its_deadline_is_cancelled_and_504(serve: Serve) -> None:
    server = serve("coroutines", deadline="300ms", kill_grace="5s")
    before = server.worker_pids()
    assert server.get("/hold/never").status == 504
    server.until_logged("cancelled while holding at never")
    server.until_zero()
    assert server.worker_pids() == before


@pytest.mark.python_only("coroutines")
def test_a_blocked_event_loop_is_504_with_its_stack_and_the_worker_is_replaced(serve: Serve) -> None:
    server = serve("coroutines", workers=2, deadline="300ms", kill_grace="300ms")
    before = server.worker_pids()
    blocked = server.connect().ask("GET", "/block/30.0")
    server.until_running(1)
    for _ in range(10):
        assert server.get("/hola/other").status == 200
    assert blocked.answer().status == 504
    server.until_logged(r"in block\b")
    server.until(lambda status: status["counts"]["workers_killed"] == {"deadline": 1})
    server.ready(2)
    assert len(set(server.worker_pids()) & set(before)) == 1
    server.still_serves()


@pytest.mark.python_only("coroutines")
def test_a_coroutine_that_ignores_its_cancelling_does_not_take_its_neighbours_along(serve: Serve) -> None:
    server = serve("coroutines", deadline="300ms", kill_grace="100ms")
    (pid,) = server.worker_pids()
    assert server.get("/deaf/never").status == 504
    server.until_logged("cancelled, and goes on")
    neighbour = server.connect().ask("GET", "/next/neighbour")
    server.until_parked(1)
    new_worker_or_same = server.get("/hola/x")
    assert new_worker_or_same.status == 200
    server.publish("neighbour", b"served")
    assert neighbour.answer().json()["value"] == "served"
    server.open_gate("never")
    server.until_zero()
    assert pid


@pytest.mark.python_only("coroutines")
def test_the_stack_of_a_coroutine_that_ignores_its_cancelling_names_its_line(serve: Serve) -> None:
    # It has half of its grace to hear of the cancelling, before it has to show its stack.
    server = serve("coroutines", deadline="300ms", kill_grace="10s")
    assert server.get("/deaf/never").status == 504
    server.until_logged("A coroutine that was cancelled but is still running")
    server.until_logged(r"coroutines\.py.*, line \d+ in deaf\b")
    server.open_gate("never")
    server.until_zero()


@pytest.mark.python_only("coroutines")
def test_a_coroutine_that_ends_when_it_is_cancelled_is_not_said_to_be_still_running(serve: Serve) -> None:
    server = serve("coroutines", deadline="300ms")
    assert server.get("/sleep/60.0").status == 504
    server.until_zero()
    server.still_serves()
    assert "still running" not in server.log()


@pytest.mark.python_only("coroutines")
def test_an_event_loop_that_is_blocked_for_long_is_shown_before_any_deadline(serve: Serve) -> None:
    server = serve("coroutines", deadline="60s")
    (pid,) = server.worker_pids()
    blocked = server.connect().ask("GET", "/block/7.0")
    server.until_logged(r"in block\b", seconds=12)
    assert blocked.answer(seconds=12).text == "blocked 7.0", "it came back, so it lives on"
    server.still_serves()
    assert server.worker_pids() == [pid]


@pytest.mark.parametrize("app", ["basic", pytest.param("coroutines", marks=pytest.mark.python_only("coroutines"))])
def test_a_worker_that_stands_still_is_replaced_at_the_deadline(serve: Serve, app: str) -> None:
    server = serve(app, workers=1, deadline="300ms", kill_grace="300ms")
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGSTOP)
    client = server.connect().ask("GET", "/hola/x")
    assert client.answer().status == 504
    assert new_worker(server, [pid])
    server.still_serves()


# Recycling


def test_workers_are_replaced_by_requests_without_a_failed_one(serve: Serve) -> None:
    server = serve("basic", workers=2, max_requests=50)
    parked = server.waiting("/next/over", 5)
    server.until_parked(5)
    pids = set()
    with Client(server.address) as client:
        while server.status()["counts"]["workers_recycled"] < 4:
            for _ in range(20):
                answer = client.get("/pid")
                assert answer.status == 200
                pids.add(answer.text)
    assert len(pids) > 3
    server.publish("over", b"there")
    assert {client.answer().body for client in parked} == {b"there"}
    assert server.status()["counts"]["workers_died"] == 0
    server.still_serves()


def test_workers_are_replaced_by_memory_without_a_failed_request(serve: Serve) -> None:
    server = serve("faulty", workers=2, max_memory="80MiB")
    with Client(server.address) as client:
        watch = Stopwatch()
        while server.status()["counts"]["workers_recycled"] < 3:
            assert watch.seconds < 30, server.log_tail()
            assert client.get("/leak/2").status == 200
    assert server.status()["counts"]["workers_died"] == 0
    server.still_serves()


def test_workers_are_replaced_by_age(serve: Serve) -> None:
    server = serve("basic", workers=1, max_age="500ms")
    (pid,) = server.worker_pids()
    new_worker(server, [pid])
    server.until(lambda status: status["counts"]["workers_recycled"] >= 1)
    server.still_serves()
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.python_only("coroutines")
def test_a_replaced_worker_finishes_what_it_holds(serve: Serve) -> None:
    server = serve("coroutines", workers=1, max_requests=10, recycle_jitter=0)
    held = server.connect().ask("GET", "/hold/finish")
    awaiting = server.connect().ask("GET", "/next/finish")
    server.until(lambda status: status["lives"]["running"] == 1 and status["lives"]["parked"] == 1)
    (pid,) = server.worker_pids()
    for _ in range(12):
        assert server.get("/hola/x").status == 200
    server.until(lambda status: pid in [worker["pid"] for worker in status["workers"] if worker["state"] == "draining"])
    server.open_gate("finish")
    server.publish("finish", b"yes")
    assert held.answer().text == "finish"
    assert awaiting.answer().json()["value"] == "yes"
    server.until(lambda status: pid not in [worker["pid"] for worker in status["workers"]])
    assert server.status()["counts"]["workers_died"] == 0


# Starts that fail


DOES_NOT_LOAD = [
    ("python", "import nothing_of_this_name", "nothing_of_this_name"),
    ("python", "raise RuntimeError('of my own')", "RuntimeError: of my own"),
    ("python", "def broken(:", "SyntaxError"),
    ("python", "import sys; sys.exit(3)", "SystemExit"),
    ("python", "x = 1", "has no 'app'"),
    ("python", "app = 5", "neither a parkade.App nor an application of ASGI or WSGI"),
    (
        "python",
        "from parkade import App\napp = App()\n@app.on_start\ndef start(): raise OSError('no database')",
        "no database",
    ),
    ("python", "from parkade import App\napp = App()\n@app.get('/{a}')\ndef a(b): pass", "has no parameter for a"),
    ("python", "import os; os._exit(7)", "exit status 7"),
    ("python", "import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    ("perl", "use Nothing::Of::This::Name;", "Nothing/Of/This/Name.pm"),
    ("perl", "die 'of my own';", "of my own at"),
    ("perl", "sub broken {", "Missing right curly"),
    ("perl", "exit 3;", "exit status 3"),
    ("perl", "my $x = 1;", "which is not a PSGI application"),
    ("perl", "use Parkade; get 'nowhere' => sub { }; 1;", "a path must begin with a slash, not nowhere at"),
    ("perl", "use Parkade; get '/{a' => sub { }; 1;", "/{a"),
    ("perl", "use POSIX; POSIX::_exit(7);", "exit status 7"),
    ("perl", "kill KILL => $$;", "SIGKILL"),
]


@pytest.mark.parametrize(("language", "code", "says"), DOES_NOT_LOAD, indirect=["language"])
def test_an_application_that_does_not_load_ends_the_server_with_the_reason(
    serve: Serve, application: Application, language: str, code: str, says: str
) -> None:
    server = serve(application(**{language: code}), is_ready=False)
    assert server.fails() == 1
    assert says in server.log()
    assert server.log().count("ERROR the application does not load") <= 1, "not by every worker again"
    # In the record's first line, and in the traceback's code and last line.
    assert server.log().count(says) <= 3, "the error is told once"


@pytest.mark.python_only("code of its own")
def test_a_target_that_does_not_exist_ends_the_server(serve: Serve) -> None:
    for target, says in [("nowhere:app", "no module 'nowhere'"), ("/nowhere/x.py", "there is no file")]:
        server = serve(target, is_ready=False)
        assert server.fails() == 1
        assert says in server.log()


def test_an_application_that_loads_for_ever_is_given_up(serve: Serve, application: Application) -> None:
    file = application(python="while True: pass", perl="1 while 1;")
    server = serve(file, is_ready=False, start_timeout="500ms")
    assert server.fails() == 1
    server.until_logged("start-timeout")


def test_workers_that_keep_dying_are_started_ever_more_rarely(
    serve: Serve, application: Application, tmp_path: Path
) -> None:
    marker = tmp_path / "die"
    file = application(
        python="import os, threading, time\n"
        "from parkade import App\n"
        "app = App()\n"
        f"marker = {str(marker)!r}\n"
        "app.get('/constant', 'constant')\n"
        "@app.get('/hola/{name}')\n"
        "def hola(name: str): return f'Hola {name}'\n"
        "@app.on_start\n"
        "def start():\n"
        "    if os.path.exists(marker): os._exit(9)\n",
        perl="use Parkade; use POSIX ();\n"
        "get '/constant' => 'constant';\n"
        "get '/hola/{name}' => sub { my ($name) = @_; return \"Hola $name\" };\n"
        f"POSIX::_exit(9) if -e '{marker}';\n"
        "1;\n",
    )
    server = serve(file)
    before = server.status()["counts"]["workers_started"]
    marker.touch()
    os.kill(server.worker_pids()[0], signal.SIGKILL)
    server.until(lambda status: status["state"] == "not ready")
    cpu, watch = processes.cpu_seconds(server.pid), Stopwatch()
    until("five seconds", lambda: watch.seconds > 5, seconds=6)
    starts = server.status()["counts"]["workers_started"] - before
    assert 2 <= starts <= 6, f"{starts} starts in five seconds"
    assert processes.cpu_seconds(server.pid) - cpu < 0.25
    code, told = server.admin("GET", "/health/ready")
    assert (code, b"no worker" in told) == (503, True)
    assert server.admin("GET", "/health/live")[0] == 200
    assert server.get("/constant").status == 200, "what needs no worker is served"
    marker.unlink()
    server.until(lambda status: status["state"] == "ready", seconds=12)
    server.still_serves()


# Which worker gets what


@pytest.mark.promise(4)
def test_nothing_queues_behind_a_slow_handler_while_another_worker_is_idle(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=3)
    for _ in range(300):  # so that every worker is known to be quick
        server.get("/hola/quick")
    slow = server.waiting("/hold/slow", 2)
    server.until_running(2)
    clients, took = [server.connect() for _ in range(10)], []
    for _ in range(30):
        watch = Stopwatch()
        for client in clients:
            client.ask("GET", "/hola/x")
        assert {client.answer().status for client in clients} == {200}
        took.append(watch.seconds)
    assert sorted(took)[27] < 0.5, "a busy machine may stand still now and then"
    assert server.status()["lives"]["running"] == 2
    server.open_gate("slow")
    assert {client.answer().status for client in slow} == {200}


@pytest.mark.promise(4)
def test_a_slow_and_a_quick_request_that_come_together_go_to_two_idle_workers(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=2)
    for _ in range(300):  # so that both are known to be quick, and might get requests ahead
        server.get("/hola/quick")
    slow, quick = server.connect(), server.connect()
    for round_ in range(20):
        slow.ask("GET", f"/hold/together-{round_}")
        quick.ask("GET", "/hola/x")
        assert quick.answer(seconds=3).text == "Hola x"
        server.open_gate(f"together-{round_}")
        assert slow.answer().status == 200


@pytest.mark.python_only("coroutines")
def test_one_worker_runs_a_thousand_coroutines_at_once(serve: Serve) -> None:
    server = serve("coroutines", workers=1)
    holding = server.waiting("/hold/many", 1_000)
    server.until_running(1_000)
    assert server.get("/hola/x").text == "Hola x"
    server.open_gate("many")
    assert {client.answer().text for client in holding} == {"many"}
    server.still_serves()


def test_plain_functions_of_one_worker_run_one_at_a_time(serve: Serve, kind: Kind) -> None:
    server = serve("basic", environment=kind, workers=1)
    server.waiting("/hold/one", 3)
    status = server.until(lambda status: status["lives"]["running"] >= 1 and sum(status["lives"].values()) == 3)
    assert (status["lives"]["running"], status["lives"]["queued"]) == (1, 2)
    server.open_gate("one")
    server.until_zero()


# Invalid responses


BAD = [
    ("/raise", "the handler of /raise raises"),
    ("/object", "which is not an answer"),
    ("/tuple", "returned a tuple|cannot encode reference to scalar"),
    ("/split-value", "line break|CR, LF or NUL|control character"),
    ("/nul-value", "line break|CR, LF or NUL|control character"),
    ("/split-name", "not the name of a header|token"),
    ("/empty-name", "not the name of a header|token"),
    ("/split-in-a-wait", "line break|CR, LF or NUL|control character"),
    ("/length/9", "Content-Length"),
    ("/length/3", "Content-Length"),
    ("/length-nonsense", "Content-Length"),
]


@pytest.fixture(scope="module")
def faulty(serve_for_all: Serve) -> Server:
    return serve_for_all("faulty")


@pytest.mark.parametrize(("target", "logged"), BAD)
def test_an_answer_that_cannot_be_sent_is_500_and_the_log_says_why(faulty: Server, target: str, logged: str) -> None:
    before = faulty.worker_pids()
    with Client(faulty.address) as client:
        answer = client.get(target)
        assert answer.status == 500
        assert "Traceback" not in answer.text
        assert "x-b" not in answer
        assert client.get("/hola/x").status == 200, "the connection goes on"
    faulty.until_logged(logged)
    faulty.still_serves()
    assert faulty.worker_pids() == before, "the worker too"


@pytest.mark.parametrize("target", ["/split-value", "/split-name", "/length/9"])
def test_the_same_over_http_2(faulty: Server, target: str) -> None:
    client = faulty.connect2()
    assert client.get(target).status == 500
    assert client.get("/hola/x").status == 200


def test_fields_that_are_the_servers_own_are_left_out(faulty: Server) -> None:
    answer = faulty.get("/framing")
    assert (answer.status, answer.text, answer["content-length"]) == (200, "12345", "5")
    assert "transfer-encoding" not in answer
    assert "upgrade" not in answer


@pytest.mark.parametrize("target", ["/breaks-off", "/streams-nonsense", "/length-streamed/9", "/length-streamed/3"])
def test_an_answer_that_breaks_off_never_looks_whole(faulty: Server, target: str) -> None:
    for version in ("1.1", "1.0"):
        with Client(faulty.address) as client:
            client.send(f"GET {target} HTTP/{version}\r\nHost: test\r\n\r\n".encode())
            assert client.opening().status == 200
        with Client(faulty.address) as client, pytest.raises((Closed, ConnectionError)):
            client.send(f"GET {target} HTTP/{version}\r\nHost: test\r\n\r\n".encode()).answer()
    with faulty.connect2() as client, pytest.raises(Broken):
        client.get(target)
    faulty.still_serves()


def test_an_announced_length_that_fits_is_kept(faulty: Server) -> None:
    assert faulty.get("/length/5").text == "12345"
    answer = faulty.get("/length-streamed/5")
    assert (answer["content-length"], answer.text) == ("5", "12345")


def test_a_wait_for_a_channel_that_cannot_be_is_an_error_of_the_request_alone(faulty: Server) -> None:
    assert faulty.get("/waits-for-nonsense").status in (400, 500)
    faulty.still_serves()


def test_what_the_application_prints_is_in_the_log_and_forges_no_line(faulty: Server) -> None:
    assert faulty.get("/prints").status == 200
    faulty.until_logged("a line .* of the application")
    assert "\x1b[31m" not in faulty.log()
    assert not [line for line in faulty.log().splitlines() if line.startswith("forged")]
