"""Files that hosted applications answer with, under a scripted core: it sends them, or has never heard of that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conftest import Core, StartCore
from parkade._hosting.file_part import park_of
from parkade._limits import INLINE_MAX
from parkade._session.hello import PARTS
from parkade._wire import frames as f

pytestmark = pytest.mark.usefixtures("implementation")

SIZE = 3 * INLINE_MAX

WSGI = """
import io, os

def application(environ, start_response):
    how, _, path = environ["QUERY_STRING"].partition(":")
    fields = [("Content-Length", environ["PATH_INFO"][1:])] if environ["PATH_INFO"] != "/" else []
    file = open(path, "rb")
    def close(close=file.close):
        print("closed")
        close()
    file.close = close
    if how == "memory": file = io.BytesIO(file.read())
    if how == "rest": file.read(10)
    if how == "unbuffered": file = open(path, "rb", 0)
    if how == "pipe":
        reader, writer = os.pipe()
        os.write(writer, b"0123")
        os.close(writer)
        file = os.fdopen(reader, "rb")
    if how == "fails":
        file.close = lambda: 1 / 0
    start_response("204 No Content" if how == "204" else "200 OK", fields)
    return environ["wsgi.file_wrapper"](file)
"""

ASGI = """
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise ValueError
    how, _, path = scope["query_string"].decode().partition(":")
    fields = [(b"content-length", scope["path"][1:].encode())] if scope["path"] != "/" else []
    await send({"type": "http.response.start", "status": 204 if how == "204" else 200, "headers": fields})
    await send({"type": "http.response.pathsend", "path": path})
    print("closed")
    if (await receive())["type"] == "http.request": await receive()
    print("over")
"""


@pytest.fixture(params=[WSGI, ASGI], ids=["wsgi", "asgi"])
def source(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * (SIZE // 256))
    return path


def started(core: StartCore, source: str, features: int = PARTS) -> Core:
    worker = core(source, "application:application", features)
    worker.ready()
    return worker


def parked(worker: Core) -> tuple[int, Any, Any]:
    """The stream, the wait and the response of the next PARK."""
    name, stream, park = worker.next()
    assert name == "PARK", park
    response = park.then.response
    return stream, park.wait, (response.status, response.headers, response.body)


def whole(worker: Core) -> bytes:
    """The body of the next response, which comes in pieces."""
    body = b""
    while True:
        name, stream, payload = worker.next()
        if name.startswith("DATA"):
            body += bytes(payload)
            worker.send(f.WINDOW, stream, [len(payload)])
        if name == "DATA":
            return body


def test_the_core_gets_the_file_and_it_is_kept_until_it_is_open(core: StartCore, source: str, file: Path) -> None:
    worker, about = started(core, source), file.stat()
    assert worker.request(None, query=f"plain:{file}") == 1
    stream, (name, paths, identity, first, length), response = parked(worker)
    assert (stream, name, first, length) == (1, "part", 0, SIZE)
    assert identity == [about.st_dev, about.st_ino]
    assert os.path.samefile(paths[0], file), "it is open"
    assert paths[1] == str(file)
    assert response == (200, ["content-length", str(SIZE)], None)
    worker.send(f.WINDOW, 1, [0])
    assert worker.process.stderr is not None
    assert any(line == "closed\n" for line in iter(worker.process.stderr.readline, ""))
    assert worker.end()[0] == 0


@pytest.mark.parametrize("what", ["CANCEL", "GOODBYE"])
def test_it_is_closed_when_nobody_wants_it(core: StartCore, source: str, file: Path, what: str) -> None:
    worker = started(core, source)
    worker.request(None, query=f"plain:{file}")
    parked(worker)
    if what == "CANCEL":
        worker.send(f.CANCEL, 1, ["client_left"])
    code, printed = worker.end()
    assert (code, "closed" in printed.split()) == (0, True), printed
    assert "Traceback" not in printed


def test_others_are_served_after_a_file_that_is_not_open_yet(core: StartCore, source: str, file: Path) -> None:
    worker = started(core, source)
    worker.request(None, query=f"plain:{file}")
    parked(worker)
    worker.request(None, query=f"plain:{file}")
    worker.send(f.WINDOW, 1, [0])
    assert parked(worker)[0] == 2
    worker.send(f.WINDOW, 2, [0])
    assert worker.end()[0] == 0


def test_a_core_that_sends_no_files_gets_the_bytes(core: StartCore, source: str, file: Path) -> None:
    worker = started(core, source, features=0)
    worker.request(None, query=f"plain:{file}")
    assert worker.next()[0] == "RESPONSE+"
    assert whole(worker) == file.read_bytes()


def test_a_close_that_fails_is_logged_and_the_worker_goes_on(core: StartCore, file: Path) -> None:
    worker = started(core, WSGI)
    worker.request(None, query=f"fails:{file}")
    worker.send(f.WINDOW, parked(worker)[0], [0])
    worker.request(None, query=f"plain:{file}")
    worker.send(f.WINDOW, parked(worker)[0], [0])
    code, printed = worker.end()
    assert code == 0
    assert "ZeroDivisionError" in printed


def test_a_name_is_left_out_if_it_is_not_utf_8_or_another_files(file: Path) -> None:
    for name in (os.fsdecode(bytes(file) + b"\xff"), str(file.parent), str(file.parent / "nowhere"), "\0", 3):
        with file.open("rb") as opened:
            if "\udcff" in str(name):
                os.link(file, str(name))
            park = park_of((200, []), opened.fileno(), 0, name)
            assert park is not None
            paths = msgspec.msgpack.decode(park)[0][1]
            assert paths == [f"/proc/{os.getpid()}/fd/{opened.fileno()}"], name


def test_a_response_that_claims_to_be_longer_is_sent_by_the_worker(core: StartCore, source: str, file: Path) -> None:
    worker = started(core, source)
    worker.request(None, path=f"/{SIZE + 1}", query=f"plain:{file}")
    assert worker.next()[0] == "RESPONSE+"
    assert len(whole(worker)) == SIZE


@pytest.mark.parametrize(("length", "features"), [(SIZE - 1, PARTS), (SIZE - 1, 0), (INLINE_MAX, PARTS), (7, PARTS)])
def test_a_file_is_sent_as_far_as_its_response_goes(
    core: StartCore, source: str, file: Path, length: int, features: int
) -> None:
    """It may have grown since, or only the beginning of it is asked for."""
    worker = started(core, source, features)
    worker.request(None, path=f"/{length}", query=f"plain:{file}")
    if features and length > INLINE_MAX:
        _, (*_, sent), _ = parked(worker)
        assert sent == length
    else:
        assert worker.next()[0] == "RESPONSE+"
        assert whole(worker) == file.read_bytes()[:length]


def test_a_response_of_that_length_is_as_it_was(core: StartCore, source: str, file: Path) -> None:
    worker = started(core, source)
    worker.request(None, path=f"/{SIZE}", query=f"plain:{file}")
    (_, _, (status, fields, body)) = parked(worker)
    value = fields[1].decode() if isinstance(fields[1], bytes) else fields[1]
    assert (status, fields[0].lower(), value, body) == (200, "content-length", str(SIZE), None)


@pytest.mark.parametrize("how", ["rest", "unbuffered", "memory", "pipe"])
def test_what_is_read_of_a_file_is_sent_from_there_or_read_on(core: StartCore, file: Path, how: str) -> None:
    worker = started(core, WSGI)
    worker.request(None, query=f"{how}:{file}")
    if how in ("memory", "pipe"):
        assert worker.next()[0] == "RESPONSE+"
        assert whole(worker) == (file.read_bytes() if how == "memory" else b"0123")
        return
    _, (_, _, _, first, length), _ = parked(worker)
    assert (first, length) == ((10, SIZE - 10) if how == "rest" else (0, SIZE))


def test_a_small_file_is_read_by_the_worker(core: StartCore, source: str, file: Path) -> None:
    worker = started(core, source)
    os.truncate(file, INLINE_MAX)
    worker.request(None, query=f"plain:{file}")
    assert worker.next()[0] == "RESPONSE+"
    assert whole(worker) == file.read_bytes()
