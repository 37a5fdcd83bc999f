"""arq on Redis: `jobs_arq.py fill COUNT` enqueues, `… work MAX_JOBS` is one worker."""

import asyncio
import os
import sys
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

SETTINGS = RedisSettings.from_dsn(os.environ["REDIS_URL"])
ENQUEUED_AT_ONCE = 50

FILE = os.open(os.environ["JOBS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def trivial(context: dict[Any, Any], number: int) -> None:
    os.write(FILE, b".")


async def fill(count: int) -> None:
    pool = await create_pool(SETTINGS)
    for first in range(0, count, ENQUEUED_AT_ONCE):
        last = min(first + ENQUEUED_AT_ONCE, count)
        await asyncio.gather(*(pool.enqueue_job("trivial", number) for number in range(first, last)))
    await pool.aclose()


def work(max_jobs: int) -> None:
    Worker([trivial], redis_settings=SETTINGS, max_jobs=max_jobs).run()


if __name__ == "__main__":
    count = int(sys.argv[2])
    if sys.argv[1] == "fill":
        asyncio.run(fill(count))
    else:
        work(count)
