"""One server with its file, or several that share their jobs in a PostgreSQL; and the ways to disturb them."""

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import postgres
from jobs_crowd import Ledger
from jobs_served import Served
from postgres import Cluster

WAYS = {"core killed": 35, "worker killed": 50, "core stopped": 5, "reloaded": 10}
"""The ways to disturb a server, by weight."""

WAYS_OF_DATABASES = {"backend killed": 8, "database killed": 4, "database restarted": 4}
"""Additional ways, for the PostgreSQL where they keep the jobs."""


class Fleet:
    def __init__(self, folder: Path, servers: int, workers: int, cluster: Cluster | None, language: str) -> None:
        self.ran = folder / "ran"
        self.servers = [
            Served(folder, f"server-{number}", workers, cluster.url if cluster else None, language)
            for number in range(servers)
        ]
        self.ways = WAYS | (WAYS_OF_DATABASES if cluster else {})
        self._cluster = cluster

    def start(self, faults: str | None) -> None:
        for served in self.servers:
            served.faults = faults
            served.start()

    def end(self) -> None:
        for served in self.servers:
            served.end()

    def lines(self) -> list[str]:
        """The lines that jobs have written, in the order in which they ran."""
        return self.ran.read_text().splitlines() if self.ran.exists() else []

    def heal(self, ledger: Ledger) -> None:
        """From now on the disk works. A server notices at its next start."""
        for served in self.servers:
            served.faults = None
            ledger.count("core killed")
            served.kill()
            served.start()

    def disturb(self, ledger: Ledger, rng: random.Random) -> None:
        (way,) = rng.choices(list(self.ways), list(self.ways.values()))
        ledger.count(way)
        if self._cluster and way in WAYS_OF_DATABASES:
            _disturb_database(self._cluster, way, rng)
        else:
            _disturb_server(rng.choice(self.servers), ledger, way, rng)


@contextmanager
def running(folder: Path, servers: int, workers: int, language: str) -> Iterator[Fleet]:
    """Several servers need a database that all of them reach; a single one has its file."""
    with postgres.running() if servers > 1 else contextlib.nullcontext() as cluster:
        fleet = Fleet(folder, servers, workers, cluster, language)
        try:
            yield fleet
        finally:
            fleet.end()


def _disturb_server(served: Served, ledger: Ledger, way: str, rng: random.Random) -> None:
    if way == "worker killed":
        if pids := served.worker_pids():
            _kill(rng.choice(pids))
    elif way == "reloaded":
        os.kill(served.pid, signal.SIGHUP)
    else:
        if way == "core killed":
            served.kill()
        elif (code := served.stop()) != 0:
            ledger.violated(f"a server did not stop by itself (exit status {code})")
        served.start()


def _disturb_database(cluster: Cluster, way: str, rng: random.Random) -> None:
    if way == "backend killed":
        # PostgreSQL then ends all other connections, too, and recovers from its log.
        with contextlib.suppress(postgres.NoPostgres):
            backends = cluster.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
            _kill(int(rng.choice(backends)[0]))
        return
    # SIGQUIT ends its processes without notice and without a checkpoint.
    cluster.stop(signal.SIGQUIT if way == "database killed" else signal.SIGINT)
    cluster.start()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
