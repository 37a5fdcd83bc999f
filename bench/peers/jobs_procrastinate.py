"""procrastinate: `jobs_procrastinate.py fill COUNT` makes its tables and enqueues, `… work` is one worker."""

import asyncio
import os
import sys

import procrastinate

# Between 1 and 60 it makes no difference of more than a quarter.
CONCURRENCY = 20

FILE = os.open(os.environ["JOBS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

connector = procrastinate.PsycopgConnector(conninfo=os.environ["DATABASE_URL"], max_size=CONCURRENCY + 4)
app = procrastinate.App(connector=connector)


@app.task(name="trivial")
async def trivial(number: int) -> None:
    os.write(FILE, b".")


async def fill(count: int) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for first in range(0, count, 1_000):
            await trivial.batch_defer_async(*({"number": number} for number in range(first, first + 1_000)))


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY, wait=True)


if __name__ == "__main__":
    asyncio.run(fill(int(sys.argv[2])) if sys.argv[1] == "fill" else work())
