"""Bodies of requests that functions of an `App` read as they arrive, under a scripted core."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from conftest import Core, StartCore
from parkade._limits import INLINE_MAX, WINDOW
from parkade._wire import frames as f

PLAIN = """
from parkade import App, IncompleteBody, Request

app = App()

@app.post("/count", stream=True)
def count(request: Request) -> str:
    body, total = request.stream(), 0
    print("begun")
    try:
        while piece := body.read1(): total += len(piece)
    except IncompleteBody as error:
        print("cut off:", error)
        raise
    assert body.read() == b"" and request.stream() is body
    return str(total)

@app.post("/lines", stream=True)
def lines(request: Request) -> str:
    body = request.stream()
    return "|".join([body.readline().decode(), body.read(3).decode(), *(line.decode() for line in body)])

@app.post("/unread", stream=True)
def unread(request: Request) -> str: return "unread"

@app.post("/echo", stream=True)
def echo(request: Request):
    body = request.stream()
    while piece := body.read1(): yield piece

@app.post("/whole")
def whole(request: Request) -> str: return str(len(request.body))
"""

THREADS = f"{PLAIN}\nasync def start(): pass\napp.on_start(start)\n"

HOOKED = f"{PLAIN}\n@app.before\nasync def before(request: Request): pass\n"

COROUTINES = """
import asyncio
from parkade import App, Request, query

app = App()

@app.post("/count", stream=True)
async def count(request: Request) -> str:
    total = 0
    print("begun")
    try:
        async for piece in request.stream(): total += len(piece)
    except asyncio.CancelledError:
        print("cut off: the client left in the middle of its request")
        raise
    assert [piece async for piece in request.stream()] == []
    return str(total)

@app.post("/lines", stream=True)
async def lines(request: Request) -> str:
    whole = b"".join([piece async for piece in request.stream()])
    return "|".join([whole[:3].decode(), whole[3:6].decode(), *whole[6:].decode().splitlines(keepends=True)])

@app.post("/unread", stream=True)
async def unread(request: Request) -> str: return "unread"

@app.post("/echo", stream=True)
async def echo(request: Request):
    async for piece in request.stream(): yield piece

@app.post("/whole")
async def whole(request: Request) -> str: return str(len(request.body))

@app.post("/waits", stream=True)
async def waits(request: Request) -> str:
    async def read(): return b"".join([piece async for piece in request.stream()])
    rows, body = await asyncio.gather(query("select n from bids"), read())
    return f"{rows[0]['n']} {len(body)}"

@app.post("/file", stream=True)
async def file(request: Request) -> str:
    try:
        request.stream().read()
    except Exception as error:
        return str(error)
"""

COUNT, LINES, UNREAD, ECHO, WHOLE, WAITS, FILE = range(7)
SOURCES = {"plain": PLAIN, "threads": THREADS, "hooked": HOOKED, "coroutines": COROUTINES}


@pytest.fixture(params=SOURCES)
def worker(request: pytest.FixtureRequest, core: StartCore) -> Core:
    return started(core, SOURCES[request.param])


def started(core: StartCore, source: str) -> Core:
    worker = core(source)
    worker.ready()
    return worker


def begin(worker: Core, route: int = COUNT) -> int:
    """Opens a request whose body follows."""
    return worker.request(route, method="POST", body=None, headers={"content-length": "1"}, flags=f.MORE)


def printed(worker: Core) -> Iterator[str]:
    assert worker.process.stderr is not None
    return (line.rstrip("\n") for line in iter(worker.process.stderr.readline, ""))


def answered(worker: Core) -> tuple[int, bytes]:
    """The next RESPONSE; WINDOW is read over."""
    while (frame := worker.next())[0] == "WINDOW":
        pass
    name, stream, response = frame
    assert name == "RESPONSE", frame
    return stream, bytes(response.body) if isinstance(response.body, bytes) else response.body.encode()


def test_ready_names_the_routes_that_stream(core: StartCore) -> None:
    worker = core(PLAIN.replace('"/lines", stream=True', '"/lines", stream=True, body_limit="2GB"'))
    routes = worker.ready().application.routes
    assert [route.stream for route in routes] == [True, True, True, True, False]
    assert [route.body_limit for route in routes] == [None, 2_000_000_000, None, None, None]


def test_the_function_begins_before_the_body_has_arrived(worker: Core) -> None:
    stream, lines = begin(worker), printed(worker)
    assert "begun" in lines
    worker.send(f.DATA, stream, b"early" * 10_000, f.MORE)
    worker.send(f.DATA, stream, b"late")
    assert answered(worker) == (stream, b"50004")
    assert worker.end()[0] == 0


def test_a_body_that_comes_with_its_request_is_read_in_the_same_way(worker: Core) -> None:
    stream = worker.request(COUNT, body=b"abc", method="POST")
    assert answered(worker) == (stream, b"3")
    empty = worker.request(COUNT, body=b"", method="POST")
    assert answered(worker) == (empty, b"0")


def test_the_window_is_granted_as_the_body_is_read(worker: Core) -> None:
    sent, window, stream = 0, WINDOW, begin(worker)
    for _ in range(64):
        while window < INLINE_MAX:
            name, at, grant = worker.next()
            assert (name, at) == ("WINDOW", stream)
            window += grant.bytes
        worker.send(f.DATA, stream, b"x" * INLINE_MAX, f.MORE)
        sent, window = sent + INLINE_MAX, window - INLINE_MAX
    worker.send(f.DATA, stream, b"")
    assert answered(worker) == (stream, str(sent).encode())


def test_lines_of_a_body_cross_its_pieces(worker: Core) -> None:
    stream = begin(worker, LINES)
    for piece in (b"a", b"b\nc", b"de", b"f\nlast", b"\nend"):
        worker.send(f.DATA, stream, piece, f.MORE)
    worker.send(f.DATA, stream, b"")
    assert answered(worker) == (stream, b"ab\n|cde|f\n|last\n|end")


def test_whoever_reads_hears_that_the_client_has_left_and_it_is_nobodys_fault(worker: Core) -> None:
    stream, lines = begin(worker), printed(worker)
    worker.send(f.DATA, stream, b"begin", f.MORE)
    assert "begun" in lines
    assert worker.names(1) == [f"WINDOW {stream}"]
    worker.send(f.CANCEL, stream, ["client_left"])
    assert any(line.startswith("cut off: the client left in the middle of its request") for line in lines)
    assert worker.names(1) == [f"ERROR {stream}"]
    other = worker.request(COUNT, body=b"abc", method="POST")
    assert answered(worker) == (other, b"3")
    assert "Traceback" not in worker.end()[1]


def test_a_response_may_come_before_the_end_of_the_body(worker: Core) -> None:
    stream = begin(worker, UNREAD)
    assert answered(worker) == (stream, b"unread")
    worker.send(f.DATA, stream, b"crossed", f.MORE)
    other = worker.request(COUNT, body=b"abc", method="POST")
    assert answered(worker) == (other, b"3")


def test_a_body_is_sent_back_while_it_arrives(worker: Core) -> None:
    stream = begin(worker, ECHO)
    frames = (frame for frame in iter(worker.next, None) if not frame[0].startswith("WINDOW"))
    for piece in (b"one", b"two"):
        worker.send(f.DATA, stream, piece, f.MORE)
        assert piece == next(bytes(frame[2]) for frame in frames if frame[0] == "DATA+" and frame[2])
    worker.send(f.DATA, stream, b"")
    assert next(frames)[:2] == ("DATA", stream)


def test_a_route_that_does_not_stream_gets_its_body_whole(worker: Core) -> None:
    stream = begin(worker, WHOLE)
    for last in itertools.chain([False] * 3, [True]):
        worker.send(f.DATA, stream, b"x" * 50_000, 0 if last else f.MORE)
    assert answered(worker) == (stream, b"200000")


def test_a_coroutine_may_wait_for_something_else_while_its_body_arrives(core: StartCore) -> None:
    worker = started(core, COROUTINES)
    stream, branch = begin(worker, WAITS), 1 << 31
    assert sorted(worker.names(3)) == [f"PARK {stream}", f"PARK {branch}", f"WINDOW {stream}"]
    worker.send(f.DATA, stream, b"x" * 10, f.MORE)
    worker.send(f.RESUME, 0, [["rows", [["n", "int4"]], "SELECT", 1, None], [branch]], f.MORE)
    worker.send(f.RESUME, 0, [["elapsed"], [stream], None, None])
    worker.send(f.DATA, branch, b'[{"n":7}]')
    worker.send(f.DATA, stream, b"x")
    assert answered(worker) == (stream, b"7 11")


def test_a_coroutine_that_reads_as_a_function_does_is_told_how(core: StartCore) -> None:
    worker = started(core, COROUTINES)
    worker.request(FILE, body=b"abc", method="POST")
    assert b"async for piece in request.stream()" in answered(worker)[1]


def test_the_function_of_a_thread_that_was_cancelled_before_it_began_never_runs(core: StartCore) -> None:
    worker = started(core, THREADS)
    first, second = begin(worker), begin(worker)
    worker.send(f.CANCEL, second, ["client_left"])
    names = set(worker.names(2))
    assert names == {f"WINDOW {first}", f"ERROR {second}"}
    worker.send(f.DATA, first, b"abc")
    assert answered(worker) == (first, b"3")
