"""Endpoints of FastAPI with transactions: the plain ones run in threads of the framework."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from paying import pay, pay_in_loop, totals, write_within

from parkade import park

app = FastAPI()


async def body_of(request: Request) -> bytes:
    return await request.body()


@app.post("/pay")
async def paying(request: Request) -> Any:
    return JSONResponse(await run_in_threadpool(pay, await request.body()))


@app.post("/pay_in_loop")
async def paying_in_loop(request: Request) -> Any:
    return JSONResponse(await pay_in_loop(await request.body()))


@app.post("/pay_in_thread")
async def paying_in_thread(request: Request) -> Any:
    return JSONResponse(await asyncio.to_thread(pay, await request.body()))


@app.get("/totals")
def sums() -> Any:
    return park(totals())


@app.post("/enqueue/{line}")
def enqueue(line: str) -> str:
    return write_within.enqueue(line).id
