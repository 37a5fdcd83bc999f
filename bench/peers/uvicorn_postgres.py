"""Plain ASGI with asyncpg: what uvicorn can do at best. Granian serves it too."""

import os
from typing import Any

import asyncpg  # type: ignore[import-untyped]

POOL_SIZE = 16

STATEMENTS = {
    "/one": "select 1",
    "/queued": "select 1 from pg_sleep(25)",
    "/slow": "select 1 from pg_sleep(2) /* bench */",
}

pool: Any = None


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    if sql := STATEMENTS.get(scope["path"]):
        return await answer(send, str(await pool.fetchval(sql)).encode())
    return await answer(send, b"Hola")


async def lifespan(receive: Any, send: Any) -> None:
    global pool
    await receive()
    pool = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=POOL_SIZE, max_size=POOL_SIZE)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    # Not close(): it would wait for statements whose clients have gone.
    pool.terminate()
    await send({"type": "lifespan.shutdown.complete"})


async def answer(send: Any, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
