"""How long others wait while an event concerns thousands of clients, or is large: the core works in turns."""

import json
import os
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

import catalogue
import load
import postgres
from alternate import Sample, alternate
from postgres import Cluster
from probe import probing
from report import Outcome, Row, met, number
from scenarios.rows import TABLE
from servers import Recipe, Server, Unavailable, fetch
from settings import Settings

DELAY_MS_MAX = 50.0

CROWD = 19_000
CHANNELS = 100_000
BODY_BYTES = 8 * 1024 * 1024
SLOTS = 48


Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A disturbance: called before the probe begins, it prepares the scene and returns a function that starts it."""

    what: str
    scene: Callable[[Server], AbstractContextManager[Act]]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Delays: a client asks every 2 ms for a constant; whatever else keeps the cores busy delays it, too. "
            "The longest turn is CPU time of the core's deciding thread; 0 where none took 10 ms."
        ]
    )
    with (
        tempfile.TemporaryDirectory(prefix="parkade-tls-") as folder,
        tempfile.TemporaryDirectory(prefix="parkade-delays-") as state,
        postgres.running_with_tls(folder) as cluster,
    ):
        cluster.ask(TABLE)
        ours = parkade(cluster, state)
        for case in CASES:

            def measure(server: Server, case: Case = case) -> Sample:
                return delayed(server, case)

            found = alternate(settings, [ours], measure)
            outcome.comparisons[case.what] = found
            p99, most = found.median(ours.name, "p99_ms"), found.median(ours.name, "max_ms")
            row = Row(
                work=f"others while {case.what}",
                target=f"≤ {DELAY_MS_MAX:g} ms at most",
                parkade=f"p99 {number(p99, ' ms', 1)}, at most {number(most, ' ms', 1)}; "
                f"longest turn {number(found.worst(ours.name, 'turn_ms'), ' ms')}",
                peer="–",
                met=met(most, at_most=DELAY_MS_MAX),
            )
            outcome.rows.append(row)
    return outcome


def parkade(cluster: Cluster, state: str) -> Recipe:
    flags = ["--database", f"{cluster.url}?sslmode=require", "--database-slots", str(SLOTS)]
    flags += ["--state", state, "--channel-limit", str(2 * CHANNELS)]
    return catalogue.parkade("delays", workers=2, label="delays", flags=flags)


def delayed(server: Server, case: Case) -> Sample:
    with case.scene(server) as act, probing(server) as latency:
        act()
    turns = json.loads(fetch(f"http://127.0.0.1:{server.ports.admin}/status"))["turns"]
    return {
        "requests": latency.requests,
        "p99_ms": latency.p99,
        "max_ms": latency.max,
        "turn_ms": turns["busiest"] * 1e3,
        "long_turns": turns["long"],
    }


def simply(act: Callable[[Server], object]) -> Callable[[Server], AbstractContextManager[Act]]:
    """Needs no preparation."""

    @contextmanager
    def scene(server: Server) -> Iterator[Act]:
        yield lambda: act(server)

    return scene


@contextmanager
def published(server: Server) -> Iterator[Act]:
    with load.waiting(server, "/next", CROWD) as publish:
        yield publish


@contextmanager
def left(server: Server) -> Iterator[Act]:
    """All of them leave at the same time."""
    with ExitStack() as crowd:
        crowd.enter_context(load.held(server, "/next", CROWD, "parked"))

        def leave() -> None:
            crowd.close()
            time.sleep(1)

        yield leave


@contextmanager
def restarted(server: Server) -> Iterator[Act]:
    """With thousands of requests parked."""
    with load.held(server, "/next", CROWD, "parked"):
        yield lambda: restart(server)


@contextmanager
def swept(server: Server) -> Iterator[Act]:
    """Their messages reach their maximum age, and are dropped."""
    fill(server)
    yield lambda: time.sleep(6)


def restart(server: Server) -> None:
    """New code: all workers are replaced."""
    done = reloads(server)
    os.kill(server.process.pid, signal.SIGHUP)
    end = time.monotonic() + 30
    while reloads(server) == done:
        if time.monotonic() > end:
            raise Unavailable("did not reload")
        time.sleep(0.05)


def reloads(server: Server) -> int:
    done: int = json.loads(fetch(f"http://127.0.0.1:{server.ports.admin}/status"))["counts"]["reloads_done"]
    return done


def fill(server: Server) -> None:
    for first in range(0, CHANNELS, 1_000):
        post(server, f"/fill?first={first}&count=1000")


def results(server: Server) -> None:
    """Fifty clients ask for the same result."""
    job = post(server, "/large?kib=400")
    end = time.monotonic() + 30
    while True:
        with urllib.request.urlopen(server.url(f"/jobs/{job}"), timeout=10) as answer:
            if answer.status == 200:
                break
        if time.monotonic() > end:
            raise Unavailable("the job does not end")
        time.sleep(0.05)
    load.fire(server, f"/jobs/{job}", 50)


def upload(server: Server) -> None:
    """Eight clients send large bodies as fast as the server reads them."""
    threads = [threading.Thread(target=post, args=(server, "/body", bytes(BODY_BYTES))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def download(server: Server) -> None:
    load.fire(server, "/rows", 4, timeout=60)


def post(server: Server, path: str, body: bytes = b"") -> str:
    with urllib.request.urlopen(server.url(path), data=body, timeout=60) as answer:
        told: str = answer.read().decode()
        return told


CASES = [
    Case("nothing happens", simply(lambda server: time.sleep(2))),
    Case(f"{CROWD:,} are told one message", published),
    Case(f"{CROWD:,} that wait leave", left),
    Case("workers are started (reload)", simply(restart)),
    Case(f"workers are started, {CROWD:,} wait", restarted),
    Case(f"{CHANNELS:,} channels are made", simply(fill)),
    Case(f"{CHANNELS:,} channels are swept", swept),
    Case("50 take a job's result of 0.4 MB", simply(results)),
    Case("8 send bodies of 8 MiB", simply(upload)),
    Case(f"{SLOTS} connections to PostgreSQL over TLS", simply(lambda server: load.fire(server, "/connect", SLOTS))),
    Case("4 take 100,000 rows over TLS", simply(download)),
]
