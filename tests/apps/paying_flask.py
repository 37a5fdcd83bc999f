"""Views of Flask with transactions."""

import asyncio
import contextvars
import threading
from typing import Any

from flask import Flask, Response, request, stream_with_context
from gates import hold
from paying import pay, pay_in_loop, totals, write_within

from parkade import park, transaction

app = Flask(__name__)


@app.post("/pay")
def paying() -> Any:
    return pay(request.get_data())


@app.post("/pay_in_loop")
async def paying_in_loop() -> Any:
    return await pay_in_loop(request.get_data())


@app.post("/pay_in_thread")
async def paying_in_thread() -> Any:
    return await asyncio.to_thread(pay, request.get_data())


@app.post("/leaves_a_thread/<gate>")
def leaves_a_thread(gate: str) -> str:
    """Answers while a thread of it is in a statement."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(pay, request.get_data())).start()
    hold(gate)
    return "answered"


@app.get("/streamed")
def streamed() -> Any:
    @stream_with_context
    def lines() -> Any:
        yield "begin\n"
        with transaction() as t:
            for row in t.query("select id from accounts order by id"):
                yield f"{row['id']}\n"

    return Response(lines(), content_type="text/plain")


@app.get("/totals")
def sums() -> Any:
    return park(totals())


@app.post("/enqueue/<line>")
def enqueue(line: str) -> str:
    return write_within.enqueue(line).id
