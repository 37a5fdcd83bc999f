"""No client needs a statement any more: how long until its backend is idle, according to pg_stat_activity?"""

import json
import subprocess
from dataclasses import dataclass

import catalogue_postgres as catalogue
import postgres
from alternate import Comparison, Contender, Sample, in_turn
from postgres import Cluster
from report import Outcome, Row, met, number
from servers import Recipe, Server, Unavailable, started
from settings import BENCH, VENV, Settings

MS_MAX = 20
KILL_MS_MAX = 1_500


@dataclass(frozen=True, slots=True)
class Case:
    work: str
    how: str
    """One of the ways in leave.py."""
    path: str
    each: int
    """Statements for each start of the server."""
    starts: int
    limit_ms: int
    """At p99 of all."""
    has_peers: bool = True


# Peers always need the whole statement, two seconds: a few samples are enough.
PEER_COUNT = 3

CASES = [
    Case("the client has gone", "gone", "/slow", 1_000, 1, MS_MAX),
    Case("the deadline has passed", "deadline", "/late", 1_000, 1, MS_MAX, has_peers=False),
    Case("SIGTERM", "SIGTERM", "/slow", catalogue.POOL_SIZE, 63, MS_MAX),
    Case("`kill -9` of the core", "SIGKILL", "/slow", catalogue.POOL_SIZE, 10, KILL_MS_MAX),
]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Cancel: statements of 10 s for Parkade, of 2 s for its peers, which end them at their end; Starman's and "
            "Granian's workers are killed with their masters. A moment is seen one step of the watch late at most."
        ]
    )
    with postgres.running() as cluster:
        # Otherwise statements have a second to finish when the server stops.
        ours = catalogue.parkade(cluster, flags="--query-grace 0s")
        peers = [catalogue.uvicorn(cluster), catalogue.granian(cluster), catalogue.starman(cluster)]
        for case in CASES:
            contenders: dict[str, Contender] = {ours.name: lambda case=case: _ours(cluster, ours, case)}  # type: ignore[misc]
            if case.has_peers:
                for peer in peers:
                    contenders[peer.name] = lambda peer=peer, case=case: _theirs(cluster, peer, case)  # type: ignore[misc]
            found = in_turn(settings, contenders, runs=1)
            outcome.comparisons[f"cancel {case.how}"] = found
            outcome.rows.append(_row(found, ours, peers if case.has_peers else [], case))
    return outcome


def _ours(cluster: Cluster, recipe: Recipe, case: Case) -> Sample:
    return _sample([_left(cluster, recipe, case, case.each) for _ in range(case.starts)])


def _theirs(cluster: Cluster, recipe: Recipe, case: Case) -> Sample:
    return _sample([_left(cluster, recipe, case, PEER_COUNT)])


@dataclass(frozen=True, slots=True)
class Found:
    latencies_ms: list[float]
    step_ms: float


def _left(cluster: Cluster, recipe: Recipe, case: Case, count: int) -> Found:
    if not (VENV / "python").exists():
        raise Unavailable("bench/.venv is not installed")
    with started(recipe) as server:
        command = [str(VENV / "python"), str(BENCH / "leave.py"), cluster.url, str(server.ports.main)]
        words = [case.how, case.path, str(count), *map(str, _told(server, case))]
        done = subprocess.run([*command, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{case.how}: {done.stderr.strip()[-200:]}")
    return Found(**json.loads(done.stdout))


def _told(server: Server, case: Case) -> list[int]:
    """SIGTERM goes only to the master. A kill goes to all processes of a peer, because its workers would survive."""
    if case.how == "SIGKILL" and not catalogue.is_parkade(server.recipe):
        return server.tree
    return server.core


def _sample(found: list[Found]) -> Sample:
    latencies = sorted(latency for one in found for latency in one.latencies_ms)
    return {
        "p50_ms": _rank(latencies, 0.5),
        "p99_ms": _rank(latencies, 0.99),
        "max_ms": latencies[-1],
        "count": len(latencies),
        "step_ms": max(one.step_ms for one in found),
    }


def _rank(ordered: list[float], share: float) -> float:
    """Nearest rank."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _row(found: Comparison, ours: Recipe, peers: list[Recipe], case: Case) -> Row:
    p50, p99, count = (found.median(ours.name, key) for key in ("p50_ms", "p99_ms", "count"))
    theirs = [f"{peer.name} {number(found.median(peer.name, 'max_ms'), ' ms')}" for peer in peers]
    return Row(
        work=f"{case.work}: until the backend is idle",
        target=f"p99 ≤ {case.limit_ms:,} ms",
        parkade=f"p50 {number(p50, ' ms', 1)}, p99 {number(p99, ' ms', 1)} of {number(count)}",
        peer=", ".join(theirs) or "–",
        met=met(p99, at_most=case.limit_ms),
    )
