"""Opens more connections through one pool than there are numbers for them: `python soak/connections.py --count 200000`.

First the driver alone, while a transaction keeps its connection. The user that cancels may not call
`pg_cancel_backend`, so each cancel takes a connection. The checks are in `crates/parkade-postgres/tests/many`.

Then a server, until numbers of 16 bits are reused: transactions on its oldest connections commit, transactions on the
newest ones roll back, and the table must contain only the former.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench"))

import postgres  # noqa: E402
from connection import Broken, Connection, Late, Left  # noqa: E402
from kinds import Kind, Leaving, Request  # noqa: E402
from postgres import Cluster, quiet_port  # noqa: E402
from served import Served  # noqa: E402

ROLE = """
create role many login;
grant all on database postgres to many;
revoke execute on function pg_cancel_backend(int) from public;
create table held (n int, commits bool);
grant all on table held to many;
"""
TEST = ["cargo", "test", "--locked", "--quiet", "-p", "parkade-postgres", "--test", "many", "--", "--ignored"]

NUMBERS = 65_535
SLOTS = 80
RENEWED = 48
"""Connections that the database closes, so that others are opened when the numbers are reused."""

LEFT_AFTER = Leaving(seconds=0.01, bytes=1 << 30, resets=False)
SECONDS_MAX = 1_200
ATTEMPTS = 300


def _kind(name: str) -> Kind:
    return Kind(name, 0, 0, lambda _: 0, lambda *_: 0, lambda *_: True)


SLEEP, HOLD, GO = _kind("sleep"), _kind("hold"), _kind("go")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Opens very many connections; exits with 1 if one was confused with another."
    )
    parser.add_argument("--count", type=int, default=200_000, help="how many with the driver alone; 0: none (200000)")
    parser.add_argument("--log", type=Path, help="file for the log of the server")
    options = parser.parse_args()
    with postgres.running({"log_min_messages": "fatal", "log_min_error_statement": "fatal"}) as cluster:
        cluster.ask(ROLE)
        url = cluster.url.replace("postgres://postgres@", "postgres://many@")
        code = _by_the_driver(url, options.count) if options.count else 0
        mistakes = asyncio.run(_by_a_server(cluster, url, options.log or cluster.folder / "parkade.log"))
    for mistake in mistakes:
        print(f"VIOLATION: {mistake}")
    return code or (1 if mistakes else 0)


def _by_the_driver(url: str, count: int) -> int:
    environment = os.environ | {"PARKADE_POSTGRES": url, "PARKADE_CONNECTIONS": str(count)}
    began = time.monotonic()
    ended = subprocess.run([*TEST, "--nocapture"], cwd=HERE.parent, env=environment, check=False)
    print(f"the driver alone has opened {count:,} connections in {time.monotonic() - began:.0f} s", flush=True)
    return ended.returncode


async def _by_a_server(cluster: Cluster, url: str, log: Path) -> list[str]:
    served = Served(url, quiet_port(), quiet_port(), SLOTS, 2, log)
    began = time.monotonic()
    try:
        served.start()
        await _fill(served)
        await _open(served, NUMBERS - 12)
        print(f"a server has opened {_opened(served):,} connections in {time.monotonic() - began:.0f} s", flush=True)
        return await _cross(cluster, served)
    finally:
        served.stop()


def _opened(served: Served) -> int:
    """The canceller, which is a connection too, has tried every cancel first; then it was sent on a new connection."""
    counts: dict[str, int] = served.status()["databases"]["default"]["counts"]
    return counts["connects"] + 1 + counts["cancels_repeated"]


async def _fill(served: Served) -> None:
    """Opens a connection in every slot."""
    await asyncio.gather(*(_ask(served, Request(SLEEP, number, 1_500)) for number in range(SLOTS)))


async def _open(served: Served, count: int) -> None:
    """Cancels statements as soon as they run, in each slot; at the end one at a time."""
    end = time.monotonic() + SECONDS_MAX
    while (missing := count - _opened(served)) > 0:
        if time.monotonic() > end:
            raise TimeoutError(f"the server was to open {missing:,} more connections within {SECONDS_MAX} s")
        crowd, rounds = (SLOTS, missing // (4 * SLOTS)) if missing > 8 * SLOTS else (1, 1)
        await asyncio.gather(*(_leave_often(served, min(rounds, 20)) for _ in range(crowd)))


async def _leave_often(served: Served, times: int) -> None:
    for _ in range(times):
        await _ask(served, Request(SLEEP, 0, 600_000, LEFT_AFTER))


async def _ask(served: Served, request: Request) -> int | None:
    """The status; None if there was no response."""
    try:
        connection = await Connection.open(served.port)
        answer = await connection.exchange(request)
    except (Broken, Late, Left):
        return None
    connection.close()
    return answer.status


async def _cross(cluster: Cluster, served: Served) -> list[str]:
    """Old connections hold the transactions that will commit, new ones those that will roll back."""
    await asyncio.sleep(2)
    cluster.ask(
        f"select pg_terminate_backend(pid) from (select pid from pg_stat_activity where usename = 'many' "
        f"order by backend_start desc limit {RENEWED}) newest"
    )
    await asyncio.sleep(2)
    kept = await _hold(cluster, served, range(SLOTS - RENEWED - 3), commits=True)
    dropped = await _hold(cluster, served, range(1_000, 1_000 + RENEWED), commits=False)
    print(f"after {_opened(served):,} connections, numbers of 16 bits are reused", flush=True)
    await _ask(served, Request(GO, 0, 1))
    await asyncio.sleep(2)
    await _ask(served, Request(GO, 0, 0))
    return await _judge(cluster, served, await asyncio.gather(*kept), await asyncio.gather(*dropped))


async def _hold(cluster: Cluster, served: Served, numbers: range, commits: bool) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(_ask(served, Request(HOLD, number, int(commits)))) for number in numbers]
    await asyncio.sleep(3)
    return tasks


async def _judge(cluster: Cluster, served: Served, kept: list[Any], dropped: list[Any]) -> list[str]:
    rows = [(int(number), commits == "t") for number, commits in cluster.ask("select n, commits from held")]
    mistakes = []
    if wrong := sum(not commits for _, commits in rows):
        mistakes.append(f"{wrong} rows were committed although their transactions were rolled back")
    if (right := sum(commits for _, commits in rows)) != len(kept):
        mistakes.append(f"{len(kept)} transactions were committed, but {right} of their rows")
    if kept != [200] * len(kept):
        mistakes.append(f"statuses of the requests that commit: {kept}")
    if dropped != [500] * len(dropped):
        mistakes.append(f"statuses of the requests that roll back: {dropped}")
    told = await asyncio.gather(*(_ask(served, Request(SLEEP, number, 10)) for number in range(ATTEMPTS)))
    if lost := sum(status != 200 for status in told):
        mistakes.append(f"{lost} of {ATTEMPTS} later queries failed")
    print(
        f"{len(kept)} transactions were committed and {len(dropped)} rolled back; the table has {right} rows of the "
        f"former and {wrong} of the latter",
        flush=True,
    )
    return mistakes


if __name__ == "__main__":
    sys.exit(main())
