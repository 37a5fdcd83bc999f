"""Starlette's background tasks: they run in the process that has answered, after the response."""

import asyncio
import os

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

FILE = os.open(os.environ["LOG_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def write_log(line: bytes, seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)
    os.write(FILE, line + b"\n")


async def log(request: Request) -> Response:
    return PlainTextResponse("Doobie Doo", background=BackgroundTask(write_log, await request.body(), 0))


async def later(request: Request) -> Response:
    return PlainTextResponse("Doobie Doo", background=BackgroundTask(write_log, await request.body(), 1))


async def constant(request: Request) -> Response:
    return PlainTextResponse("Hola")


app = Starlette(
    routes=[
        Route("/log", log, methods=["POST"]),
        Route("/later", later, methods=["POST"]),
        Route("/constant", constant),
    ]
)
