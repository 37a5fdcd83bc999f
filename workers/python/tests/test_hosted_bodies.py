"""Bodies of requests that hosted applications read as they arrive, under a scripted core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Core, StartCore
from parkade._limits import INLINE_MAX, WINDOW
from parkade._wire import frames as f

pytestmark = pytest.mark.usefixtures("implementation")

WSGI = """
def application(environ, start_response):
    path, body = environ["PATH_INFO"], environ["wsgi.input"]
    print("begun", environ.get("CONTENT_LENGTH"))
    if path == "/unread":
        start_response("200 OK", [])
        return [b"unread"]
    if path == "/lines":
        start_response("200 OK", [])
        return [b"|".join([body.readline(), body.read(3), *body])]
    count = 0
    try:
        while piece := body.read(50_000):
            if count == 0: print("first", piece[:5].decode())
            count += len(piece)
    except OSError as error:
        print("cut off:", error)
        raise
    assert body.read() == body.read(1) == body.readline() == b""
    start_response("200 OK", [])
    return [str(count).encode()]
"""

ASGI = """
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise ValueError
    path, count, more = scope["path"], 0, True
    print("begun", dict(scope["headers"]).get(b"content-length", b"None").decode())
    pieces = []
    while more and path != "/unread":
        message = await receive()
        if message["type"] == "http.disconnect":
            print("cut off:", "the client left in the middle of its request")
            return
        if count == 0: print("first", message["body"][:5].decode())
        count += len(message["body"])
        if path == "/lines": pieces.append(message["body"])
        more = message["more_body"]
    body = {"/unread": b"unread", "/lines": b"".join(pieces)}.get(path, str(count).encode())
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": body})
    if path == "/unread":
        print("then", (await receive())["type"])
"""


@pytest.fixture(params=[(WSGI, 1), (WSGI, 3), (ASGI, 1)], ids=["wsgi", "threads", "asgi"])
def worker(request: pytest.FixtureRequest, core: StartCore) -> Core:
    source, threads = request.param
    worker = core(source, "application:application", threads=str(threads))
    worker.ready()
    return worker


def begin(worker: Core, path: str = "/", length: int | None = 1) -> int:
    """Opens a request whose body follows."""
    headers = {} if length is None else {"content-length": str(length)}
    return worker.request(None, method="POST", path=path, body=None, headers=headers, flags=f.MORE)


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


def test_a_request_begins_before_its_body_has_arrived(worker: Core) -> None:
    stream, lines = begin(worker), printed(worker)
    assert "begun 1" in lines
    worker.send(f.DATA, stream, b"early" * 10_000, f.MORE)
    assert "first early" in lines
    worker.send(f.DATA, stream, b"late")
    assert answered(worker) == (stream, b"50004")
    assert worker.end()[0] == 0


def test_the_window_is_granted_as_the_body_is_read_and_memory_stays_flat(worker: Core) -> None:
    size, sent, window = 100_000_000, 0, WINDOW
    stream = begin(worker, length=size)
    before = 0
    while sent < size:
        while window < INLINE_MAX:
            name, at, grant = worker.next()
            assert (name, at) == ("WINDOW", stream)
            window += grant.bytes
        worker.send(f.DATA, stream, b"x" * INLINE_MAX, f.MORE)
        sent, window = sent + INLINE_MAX, window - INLINE_MAX
        if before == 0 and sent > 5_000_000:
            before = resident_bytes(worker)
    assert resident_bytes(worker) - before < 5_000_000
    worker.send(f.DATA, stream, b"")
    assert answered(worker) == (stream, str(sent).encode())


def resident_bytes(worker: Core) -> int:
    lines = Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def test_whoever_reads_hears_that_the_client_has_left(worker: Core) -> None:
    stream, lines = begin(worker), printed(worker)
    worker.send(f.DATA, stream, b"begin" * 100, f.MORE)
    assert "begun 1" in lines
    worker.send(f.CANCEL, stream, ["client_left"])
    assert any(line.startswith("cut off: the client left in the middle of its request") for line in lines)
    while (frame := worker.next())[0] == "WINDOW":  # it may have read the first piece by then
        pass
    assert frame[:2] == ("ERROR", stream)
    other = worker.request(None, body=b"abc", method="POST")
    assert answered(worker) == (other, b"3")
    assert not [line for line in worker.end()[1].splitlines() if "Traceback" in line], "it is nobody's fault"


def test_a_response_may_come_before_the_end_of_the_body(worker: Core) -> None:
    stream = begin(worker, "/unread")
    assert answered(worker) == (stream, b"unread")
    worker.send(f.DATA, stream, b"crossed", f.MORE)
    other = worker.request(None, body=b"abc", method="POST")
    assert answered(worker) == (other, b"3")


def test_a_coroutine_that_still_reads_hears_that_its_response_is_complete(core: StartCore) -> None:
    worker = core(ASGI, "application:application")
    worker.ready()
    stream, lines = begin(worker, "/unread"), printed(worker)
    assert answered(worker) == (stream, b"unread")
    assert "then http.disconnect" in lines


def test_requests_behind_a_body_are_answered_after_it(core: StartCore) -> None:
    worker = core(WSGI, "application:application")
    worker.ready()
    stream = begin(worker)
    other = worker.request(None, body=b"abc", method="POST")
    worker.send(f.DATA, stream, b"x" * 100, f.MORE)
    worker.send(f.DATA, stream, b"")
    assert [answered(worker), answered(worker)] == [(stream, b"100"), (other, b"3")]


def test_lines_of_a_body_cross_its_pieces(core: StartCore) -> None:
    worker = core(WSGI, "application:application")
    worker.ready()
    stream = begin(worker, "/lines", length=20)
    for piece in (b"a", b"b\nc", b"de", b"f\nlast", b"\nend"):
        worker.send(f.DATA, stream, piece, f.MORE)
    worker.send(f.DATA, stream, b"")
    assert answered(worker) == (stream, b"ab\n|cde|f\n|last\n|end")


def test_a_body_of_unknown_length_is_whole_because_many_applications_read_nothing_otherwise(core: StartCore) -> None:
    worker = core(WSGI, "application:application")
    worker.ready()
    stream, lines = begin(worker, length=None), printed(worker)
    worker.send(f.DATA, stream, b"x" * 60_000, f.MORE)
    worker.send(f.DATA, stream, b"y" * 60_000)
    assert answered(worker) == (stream, b"120000")
    assert "begun 120000" in lines
    cut = begin(worker, length=None)
    worker.send(f.DATA, cut, b"x", f.MORE)
    worker.send(f.CANCEL, cut, ["client_left"])
    while (frame := worker.next())[0] == "WINDOW":  # it may have read the first byte by then
        pass
    assert frame[:2] == ("ERROR", cut)
