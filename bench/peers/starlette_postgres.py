"""Many rows as JSON the usual quick way: Starlette, asyncpg, orjson."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=16, max_size=16) as pool:
        app.state.pool = pool
        yield


async def constant(request: Request) -> Response:
    return PlainTextResponse("Hola")


async def rows(request: Request) -> Response:
    found = await request.app.state.pool.fetch("select * from wide")
    return Response(orjson.dumps([dict(row) for row in found]), media_type="application/json")


app = Starlette(routes=[Route("/constant", constant), Route("/rows", rows)], lifespan=lifespan)
