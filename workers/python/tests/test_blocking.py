"""A worker with plain functions, as a process under a scripted core."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conftest import StartCore
from parkade._limits import CREDIT_BLOCKING, WINDOW
from parkade._wire import frames as f

SOURCE = """
import os, sys, threading
from parkade import App, Status, after, channel, query

app = App()

@app.on_start
def start(): print("started")

@app.on_stop
def stop(): print("stopped")

@app.get("/hola/{name}")
def hola(name: str): return f"Hola {name}"

@app.get("/big")
def big():
    try:
        while True: yield b"x" * 65_536
    finally:
        print("closed")

@app.get("/sum")
def few(): return (f"{n}\\n" for n in range(3))

@app.post("/length")
def length(body: bytes): return str(len(body))

@app.get("/publish")
def publish():
    channel("c").publish("in a handler")
    thread = threading.Thread(target=channel("c").publish, args=("in a thread",))
    thread.start(); thread.join()
    return Status(202)

@app.get("/wait")
def wait(): return after(1).then(done, n=7)

def done(n: int): return {"n": n}

@app.get("/input")
def read(): return sys.stdin.read() + str(os.get_inheritable(3))

@app.get("/broken")
def broken():
    yield "a"
    raise ValueError("in the middle")

@app.get("/long")
def long(): return "x" * 300_000

@app.get("/query")
def rows(): return query("select n from bids where n > $1", 7).then(total)

def total(rows): return {"rows": len(rows), "sum": sum(row["n"] for row in rows)}

class Foreign(BaseException): pass

def foreign(): raise Foreign("of a library")

@app.get("/foreign")
def foreign_at_once(): foreign()

@app.get("/foreign-later")
def foreign_later(): return after(1).then(foreign)

@app.get("/foreign-pieces")
def foreign_pieces():
    yield "a"
    foreign()

app.job(name="foreign")(foreign)
"""
HOLA, BIG, FEW, LENGTH, PUBLISH, WAIT, INPUT, BROKEN, LONG, QUERY, FOREIGN, FOREIGN_LATER, FOREIGN_PIECES = range(13)


def cancel(reason: str = "client_left") -> bytes:
    return msgspec.msgpack.encode([reason])


def test_each_request_is_answered_and_hooks_run(core: StartCore) -> None:
    worker = core(SOURCE)
    ready = worker.ready()
    assert (ready.credit, ready.application.concurrent) == (CREDIT_BLOCKING, False)
    assert worker.answer(HOLA, "Anna").body == "Hola Anna"
    assert worker.end() == (0, "started\nstopped\n")


def test_requests_are_answered_in_the_order_they_came(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    for name in ("a", "b", "c"):
        worker.request(HOLA, name)
    assert worker.names(3) == ["RESPONSE 1", "RESPONSE 2", "RESPONSE 3"]


def test_a_body_that_follows_is_complete_for_the_handler(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(LENGTH, method="POST", body=None, flags=f.MORE)
    worker.request(HOLA, "behind")
    for _ in range(5):
        worker.send(f.DATA, stream, b"x" * 40_000, f.MORE)
    worker.send(f.DATA, stream, b"", 0)
    answers = [frame for frame in (worker.next() for _ in range(3)) if frame[0] != "WINDOW"]
    assert [(stream, response.body) for _, stream, response in answers] == [(1, "200000"), (2, "Hola behind")]


def test_a_streamed_answer_comes_in_pieces(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(FEW)
    frames = [worker.next() for _ in range(5)]
    assert [name for name, _, _ in frames] == ["RESPONSE+", "DATA+", "DATA+", "DATA+", "DATA"]
    assert [payload for _, _, payload in frames[1:]] == [b"0\n", b"1\n", b"2\n", b""]


def test_a_slow_reader_does_not_hold_the_worker(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    slow = worker.request(BIG)
    frames = [worker.next() for _ in range(6)]
    assert [name for name, _, _ in frames] == ["RESPONSE+", *["DATA+"] * 4, "CREDIT"]
    assert frames[-1][2].delta == 1
    assert worker.answer(HOLA, "others").body == "Hola others"
    worker.send(f.WINDOW, slow, [100_000])
    received = 0
    while received < 100_000:
        received += len(worker.next()[2])
    assert received == 100_000
    worker.send(f.CANCEL, slow, cancel())
    assert worker.names(2) == [f"ERROR {slow}", "CREDIT 0"]
    assert worker.answer(HOLA, "again").body == "Hola again"
    assert worker.end()[1] == "started\nclosed\nstopped\n"


def test_a_long_answer_waits_for_its_window_and_gives_the_credit_back(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    stream = worker.request(LONG)
    name, _, head = worker.next()
    assert (name, head.headers[-2:]) == ("RESPONSE+", ["content-length", "300000"])
    received = 0
    while received < WINDOW:
        received += len(worker.next()[2])
    assert worker.next()[2].delta == 1
    worker.send(f.WINDOW, stream, [WINDOW])
    assert len(worker.next()[2]) == 300_000 - WINDOW
    name, _, payload = worker.next()
    assert (name, payload) == ("DATA", b"")
    assert worker.next()[2].delta == -1


def test_a_request_that_was_cancelled_before_it_began_does_not_run(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    payload = msgspec.msgpack.encode([HOLA, ["x"], None, b"", ["GET", "/", "", [], "", "http", "1.1"]])
    worker.link.sendall(f.frame(f.REQUEST, 1, payload) + f.frame(f.CANCEL, 1, cancel()))
    name, stream, error = worker.next()
    assert (name, stream, error.reason) == ("ERROR", 1, "cancelled")


def test_publishing_goes_before_the_answer_from_threads_too(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(PUBLISH)
    frames = [worker.next() for _ in range(3)]
    assert [(name, getattr(payload, "body", None)) for name, _, payload in frames] == [
        ("PUBLISH", b"in a handler"),
        ("PUBLISH", b"in a thread"),
        ("RESPONSE", None),
    ]


def test_any_worker_runs_the_function_behind_a_wait(core: StartCore) -> None:
    first, second = core(SOURCE), core(SOURCE)
    first.ready()
    second.ready()
    first.request(WAIT)
    name, _, park = first.next()
    assert (name, park.wait, park.then.function) == ("PARK", ["timer", 1], "application:done")
    second.send(
        f.RESUME, 0, [["elapsed"], [second.number(), second.number()], "application:done", [park.then.state] * 2]
    )
    assert [(stream, response.body) for _, stream, response in (second.next(), second.next())] == [
        (1, b'{"n":7}'),
        (2, b'{"n":7}'),
    ]


@pytest.mark.parametrize("inline", [True, False])
def test_the_rows_of_a_query_are_complete_for_the_function_behind_it(core: StartCore, inline: bool) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(QUERY)
    name, _, park = worker.next()
    assert (name, park.wait) == ("PARK", ["query", "select n from bids where n > $1", [7], {}])
    body = b'[{"n":8},{"n":9}]' if inline else b"[" + b",".join([b'{"n":8}'] * 20_000) + b"]"
    stream = worker.number()
    outcome = ["rows", [["n", "int4"]], "SELECT", 2, body if inline else None]
    payload = [outcome, [stream], park.then.function, [park.then.state]]
    worker.send(f.RESUME, 0, payload, 0 if inline else f.MORE)
    worker.request(HOLA, "behind")
    for at in [] if inline else range(0, len(body), 65_536):
        worker.send(f.DATA, stream, body[at : at + 65_536], f.MORE if at + 65_536 < len(body) else 0)
    frames = iter(worker.next, None)
    answers = [next(frame for frame in frames if frame[0] == "RESPONSE") for _ in range(2)]
    expected = b'{"rows":2,"sum":17}' if inline else b'{"rows":20000,"sum":160000}'
    assert [(stream, response.body) for _, stream, response in answers] == [(2, expected), (3, "Hola behind")]


def test_an_answer_that_breaks_in_the_middle_is_an_error(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(BROKEN)
    frames = [worker.next() for _ in range(3)]
    assert [name for name, _, _ in frames] == ["RESPONSE+", "DATA+", "ERROR"]
    assert (frames[-1][2].reason, frames[-1][2].text) == ("application", "")  # its record says more
    assert "ValueError: in the middle" in worker.end()[1]


def test_an_exception_that_python_does_not_call_one_ends_the_request_and_not_the_worker(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(FOREIGN)
    assert _reason(worker.next()) == ("ERROR", "application", True)
    worker.request(FOREIGN_LATER)
    _, _, park = worker.next()
    worker.send(f.RESUME, 0, [["elapsed"], [worker.number()], park.then.function, [park.then.state]])
    assert _reason(worker.next()) == ("ERROR", "application", True)
    worker.run("foreign")
    assert _reason(worker.next()) == ("ERROR", "application", True)
    worker.request(FOREIGN_PIECES)
    frames = [worker.next() for _ in range(3)]
    assert [name for name, _, _ in frames] == ["RESPONSE+", "DATA+", "ERROR"]
    assert worker.answer(HOLA, "Anna").body == "Hola Anna"
    assert "Foreign: of a library" in worker.end()[1]


def _reason(frame: Any) -> tuple[str, str, bool]:
    name, _, error = frame
    return name, error.reason, "Foreign: of a library" in error.text


def test_the_application_has_an_empty_input_and_no_other_program_gets_the_link(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    assert worker.answer(INPUT).body == "False"


def test_a_ping_is_answered_between_requests(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.request(HOLA, "x")
    worker.send(f.PING, 0, [7])
    assert worker.names(2) == ["RESPONSE 1", "PONG 0"]


def test_a_violation_of_the_core_ends_the_worker(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.send(f.WINDOW, 99, [1])
    name, _, goodbye = worker.next()
    assert (name, goodbye.code) == ("GOODBYE", "violation")
    code, printed = worker.ended()
    assert code == 1
    assert "never opened" in printed


def test_the_end_of_the_link_ends_the_worker_at_once(core: StartCore) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.link.close()
    assert worker.process.wait(20) == 0


@pytest.mark.parametrize("notice", ["DRAIN"])
def test_a_drain_is_a_notice_and_changes_nothing(core: StartCore, notice: str) -> None:
    worker = core(SOURCE)
    worker.ready()
    worker.send(getattr(f, notice), 0, [30.0])
    assert worker.answer(HOLA, "x").body == "Hola x"
    assert worker.end() == (0, "started\nstopped\n")
