"""PgQueuer on asyncpg: `jobs_pgqueuer.py fill COUNT` makes its tables and enqueues, `… work BATCH` is one worker."""

import os
import sys

import asyncpg  # type: ignore[import-untyped]
import uvloop
from pgqueuer import AsyncpgDriver, Job, PgQueuer, Queries

FILE = os.open(os.environ["JOBS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def fill(count: int) -> None:
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    # Its documentation asks for this after the installation.
    await queries.optimize_autovacuum()
    for _ in range(0, count, 1_000):
        await queries.enqueue(["trivial"] * 1_000, [b"7"] * 1_000, [0] * 1_000)
    await connection.close()


async def work(batch: int) -> None:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))

    @queuer.entrypoint("trivial")
    async def trivial(job: Job) -> None:
        os.write(FILE, b".")

    await queuer.run(batch_size=batch)


if __name__ == "__main__":
    count = int(sys.argv[2])
    # As its own command does.
    uvloop.run(fill(count) if sys.argv[1] == "fill" else work(count))
