"""A worker that hangs is killed in time because of what runs in it, whatever is queued for it or arrives meanwhile."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import processes
from .harness.server import Server
from .harness.until import BUSY, until

EARLY = 0.2
"""How many seconds earlier the core may have assigned a unit, or heard that it begins, than the unit reports it."""


def check_killed_in_time(server: Server, seconds: float) -> None:
    """The worker whose unit reports that it blocks it ends after this many seconds."""
    told = server.until_logged(r"(?:loops|sleeps) in (\d+) since ([\d.]+)")
    until("it is killed", lambda: not processes.is_alive(int(told[1])), seconds=60, told=server.log_tail)
    after = time.monotonic() - float(told[2])
    assert seconds - EARLY <= after < seconds + BUSY, server.log_tail()
    server.until(lambda status: status["counts"]["workers_killed"] == {"deadline": 1})


@pytest.mark.promise(6)
@pytest.mark.parametrize("function", ["plain", "coroutine"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_coroutine_that_keeps_its_loop_is_killed_in_time_however_many_come_back(
    serve: Serve, function: str, workers: int
) -> None:
    """Units come back in waves, for longer than the worker may live; with two workers none of them notices.

    The first wave comes when a ping may be unanswered: units that the loop got before are counted with it.
    """
    server = serve("coroutines", workers=workers, deadline="4s", kill_grace="1s")
    waves = [f"/back/{function}/{3 + wave * 0.25:.2f}" for wave in range(36) for _ in range(10)]
    back = [server.connect().ask("GET", wave) for wave in waves]
    server.until_parked(len(back))
    looping = server.connect().ask("GET", "/loop")
    check_killed_in_time(server, 5)
    assert looping.answer().status == 504
    statuses = [client.answer().status for client in back]
    assert set(statuses[-40:]) == {200}, "another worker is there"
    if workers > 1:
        assert Counter(statuses) == {200: len(back)}
    server.still_serves()


@pytest.mark.promise(6)
def test_a_thread_of_wsgi_that_hangs_is_killed_in_time_whatever_the_others_do(serve: Serve) -> None:
    server = serve("raw_wsgi", workers=1, threads=3, deadline="3s", kill_grace="1s")
    hanging = server.connect().ask("GET", "/sleep")
    told = server.until_logged(r"sleeps in (\d+)")
    while processes.is_alive(int(told[1])):
        assert server.get("/hola/you").status in (200, 502, 503, 504)
    check_killed_in_time(server, 4)
    answer = hanging.answer()
    assert answer.status == 504
    server.until_logged(rf"is still running; its worker's stack follows.*GET /sleep \({answer['x-request-id']}\)")
    server.until(lambda _: server.workers("ready"))
    server.still_serves()


@pytest.mark.promise(6)
@pytest.mark.parametrize("hanging", ["/loop", "/sleep"])
def test_what_queues_behind_a_plain_function_that_hangs_is_answered_when_that_is_killed(
    serve: Serve, hanging: str
) -> None:
    server = serve("plain_functions", workers=1, kill_grace="1s")
    for _ in range(300):  # so that the worker is known to be quick
        server.get("/where")
    late = server.connect().ask("GET", hanging)
    queued = server.waiting("/where", 10)
    check_killed_in_time(server, 1.5)
    answer = late.answer()
    assert answer.status == 504
    named = rf'request="GET {hanging} \({answer["x-request-id"]}\)"'
    server.until_logged(rf"a request passed its deadline and is still running; its worker's stack follows.* {named}")
    assert {client.answer().status for client in queued} == {200}
    server.still_serves()


BLOCKING = """
import time
from parkade import App

app = App()


@app.get("/native")
async def native():
    time.sleep(20)


@app.job(deadline=1)
async def stuck():
    time.sleep(20)


@app.post("/stuck")
def enqueue():
    return stuck.enqueue().id
"""
HOSTED = """
import time


async def app(scope, receive, send):
    assert scope["type"] == "http"
    time.sleep(20)
"""


@pytest.mark.python_only("coroutines")
@pytest.mark.parametrize("code", [BLOCKING, HOSTED], ids=["native", "asgi"])
def test_a_coroutine_that_blocks_its_loop_is_named(serve: Serve, tmp_path: Path, code: str) -> None:
    """Its request has been answered by then."""
    (tmp_path / "app.py").write_text(code)
    server = serve(tmp_path / "app.py", workers=1, kill_grace="1s", deadline="1s")
    answer = server.get("/native")
    assert answer.status == 504
    named = rf'request="GET /native \({answer["x-request-id"]}\)"'
    server.until_logged(rf"a request passed its deadline and is still running; its worker's stack follows.* {named}")


@pytest.mark.python_only("coroutines")
def test_a_job_that_blocks_its_loop_is_named(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(BLOCKING)
    server = serve(tmp_path / "app.py", workers=1, kill_grace="1s")
    id = server.post("/stuck").text
    server.until_logged(rf'a job passed its deadline and is still running; .* job="stuck \({id}\)"')
