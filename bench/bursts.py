"""Compares two builds of Parkade that run at once: `python bench/bursts.py OLD NEW [--only hola,log] [--bursts 40]`.

`versus.py` starts a build for each run, and a shared machine changes its speed from run to run by more than two builds
differ. Here both builds are up, and bursts of the same load reach them in turn. Each burst is compared with the other
build's next to it. A row shows the median of these ratios, and the range of the middle half of them.

OLD and NEW are binaries as for `versus.py`. The CPU time is that of all processes, and of the core alone.
"""

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import behind
import catalogue
import catalogue_jobs
import catalogue_postgres
import load
import postgres
import processes
import wrk
from servers import Recipe, Server, started

BUILDS = ["old", "new"]
LINE = "Doobie Doo: a line of some forty letters"
LOOK_SECONDS = 0.05
QUIET_SHARE = 0.1
"""A core that uses less than this share of the time has done what was asked of it."""


@dataclass(frozen=True, slots=True)
class Work:
    path: str
    clients: int = 64
    body: str | None = None
    """With a body: POST, and a burst lasts until its jobs are done."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """So many clients wait. A burst lasts from their first request until one publish has answered them all."""

    path: str
    clients: int


WORKS: dict[str, tuple[str, Work | Crowd]] = {
    "hola": ("hola", Work("/hola/Ada")),
    "async": ("hola_async", Work("/hola/Ada")),
    "constant": ("queries", Work("/constant")),
    "route": ("queries", Work("/one")),
    "def": ("queries", Work("/def")),
    "log10": ("log", Work("/log", 10, LINE)),
    "log200": ("log", Work("/log", 200, LINE)),
    "release": ("parked", Crowd("/next", 8_000)),
}
"""The application in `apps/` that each of them needs."""


def main() -> int:
    options = _options()
    for name in options.only.split(","):
        app, work = WORKS[name]
        rows: dict[str, list[float]] = defaultdict(list)
        with _both(app, {"old": options.old.absolute(), "new": options.new.absolute()}) as servers:
            for server in servers.values():
                _burst(server, work, 1)
            for turn in range(options.bursts):
                order = BUILDS if turn % 2 == 0 else BUILDS[::-1]
                found = {build: _burst(servers[build], work, options.seconds) for build in order}
                for figure, value in found["new"].items():
                    rows[figure].append(value / found["old"][figure])
        for figure, ratios in rows.items():
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"{name:<10} {figure:<16} new/old {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)
    return 0


def _burst(server: Server, work: Work | Crowd, seconds: int) -> dict[str, float]:
    core, tree = server.core, server.tree
    before, core_before = processes.cpu_seconds(tree), processes.cpu_seconds(core)
    if isinstance(work, Crowd):
        found = load.release(server, work.path, work.clients)
        count, failed, figures = work.clients, found["failed"], {"last answer": found["last_ms"]}
    else:
        count, failed, figures = _flood(server, work, seconds)
    if failed:
        raise SystemExit(f"{failed} requests for {work.path} failed")
    return figures | {
        "CPU": (processes.cpu_seconds(tree) - before) / count,
        "CPU of the core": (processes.cpu_seconds(core) - core_before) / count,
    }


def _flood(server: Server, work: Work, seconds: int) -> tuple[int, int, dict[str, float]]:
    """The requests, the failed ones, and how many a second."""
    began = time.monotonic()
    found = wrk.flood(server.url(work.path), seconds, work.clients, work.body)
    took = found.seconds
    if work.body is not None:
        _until_quiet(server.core)
        took = time.monotonic() - began
    return found.requests, found.failed, {"requests/s": found.requests / took}


def _until_quiet(core: list[int]) -> None:
    used = QUIET_SHARE
    while used >= QUIET_SHARE * LOOK_SECONDS:
        before = processes.cpu_seconds(core)
        time.sleep(LOOK_SECONDS)
        used = processes.cpu_seconds(core) - before


@contextmanager
def _both(app: str, binaries: dict[str, Path]) -> Iterator[dict[str, Server]]:
    """Both builds, serving the same application. The one for jobs keeps them on a disk."""
    with ExitStack() as stack:
        recipe = _recipe(app, stack)
        servers = {}
        for build, binary in binaries.items():
            os.environ["PARKADE_BIN"] = str(binary)
            servers[build] = stack.enter_context(started(recipe()))
        yield servers


def _recipe(app: str, stack: ExitStack) -> Callable[[], Recipe]:
    if app == "log":
        return lambda: catalogue_jobs.parkade_log(stack.enter_context(behind.folder()))
    if app == "queries":
        cluster = stack.enter_context(postgres.running())
        return lambda: catalogue_postgres.parkade(cluster)
    return lambda: catalogue.parkade(app)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares two builds of Parkade that run at once.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default=",".join(WORKS), help=f"works of this file ({','.join(WORKS)})")
    parser.add_argument("--bursts", type=int, default=40, help="how many bursts each build gets (40)")
    parser.add_argument("--seconds", type=int, default=1, help="how long a burst lasts (1)")
    options = parser.parse_args()
    if missing := [path for path in (options.old, options.new) if not path.exists()]:
        parser.error(f"there is no Parkade at {missing[0]}")
    return options


if __name__ == "__main__":
    sys.exit(main())
