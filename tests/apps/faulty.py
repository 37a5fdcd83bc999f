"""An application that does everything wrong, each at its own path."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator

from gates import hold

from parkade import App, Response, after, channel

app = App(concurrent="CONCURRENT" in os.environ)
memory: list[bytearray] = []


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/pid")
def pid() -> str:
    return str(os.getpid())


@app.get("/hold/{gate}")
def hold_at(gate: str) -> str:
    hold(gate)
    return "held"


@app.get("/next/{name}")
def next_message(name: str) -> object:
    return channel(name).next()


@app.get("/after/{seconds:float}")
def after_seconds(seconds: float) -> object:
    return after(seconds, "after")


# Deaths


@app.get("/kill")
def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.get("/segfault")
def segfault() -> bytes:
    return ctypes.string_at(0)


@app.get("/exit")
def leave() -> None:
    os._exit(3)


@app.get("/loop")
def loop() -> None:
    while True:
        pass


@app.get("/loop-soon", deadline=0.2)
def loop_soon() -> None:
    while True:
        pass


@app.get("/leak/{mebibytes:int}")
def leak(mebibytes: int) -> str:
    memory.append(bytearray(os.urandom(1 << 10)) * (mebibytes << 10))
    time.sleep(0.02)  # or a gigabyte would be gone before the test sees it
    return f"{len(memory)}"


# Invalid responses


@app.get("/raise")
def raise_error() -> str:
    raise ValueError("the handler of /raise raises")


@app.get("/object")
def an_object() -> object:
    return object()


@app.get("/tuple")
def a_tuple() -> object:
    return "text", 200


@app.get("/split-value")
def split_value() -> Response:
    return Response("x", headers={"X-A": "1\r\nX-B: 2"})


@app.get("/nul-value")
def nul_value() -> Response:
    return Response("x", headers={"X-A": "1\0"})


@app.get("/split-name")
def split_name() -> Response:
    return Response("x", headers={"X-A: 1\r\nX-B": "2"})


@app.get("/empty-name")
def empty_name() -> Response:
    return Response("x", headers={"": "2"})


@app.get("/split-in-a-wait")
def split_in_a_wait() -> object:
    return after(0.01, Response("x", headers={"X-A": "1\nX-B: 2"}))


@app.get("/length/{announced:int}")
def length(announced: int) -> Response:
    return Response("12345", headers={"Content-Length": str(announced)})


@app.get("/length-streamed/{announced:int}")
def length_streamed(announced: int) -> Response:
    return Response(iter(["12345"]), headers={"Content-Length": str(announced)})


@app.get("/length-nonsense")
def length_nonsense() -> Response:
    return Response("12345", headers={"Content-Length": "five"})


@app.get("/framing")
def framing() -> Response:
    return Response("12345", headers={"Transfer-Encoding": "chunked", "Connection": "upgrade", "Upgrade": "x"})


@app.get("/breaks-off")
def breaks_off() -> Iterator[str]:
    yield "the beginning"
    raise ValueError("in the middle of an answer")


@app.get("/streams-nonsense")
def streams_nonsense() -> Iterator[object]:
    yield "the beginning"
    yield 42


@app.get("/waits-for-nonsense")
def waits_for_nonsense() -> object:
    return channel("x\r\ny").next()


@app.get("/prints")
def prints() -> str:
    print("a line \x1b[31m of the application\r\nforged: another", flush=True)
    return "printed"
