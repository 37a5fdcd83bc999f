"""Files that hosted applications answer with, and the core sends: `wsgi.file_wrapper`, `http.response.pathsend`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import processes
from .harness.client import Client
from .harness.server import Server
from .harness.until import until
from .harness.wire import CANCEL, GOODBYE, PARK, WINDOW, Worker, Workers, frame

MEBIBYTE = 1024 * 1024
SIZE = 24 * MEBIBYTE
"""More than the kernel keeps for a client that does not read."""

PLAIN = {"raw_wsgi": "/wrapped/plain", "raw_asgi": "/sent-file"}
REMOVED = {"raw_wsgi": "/wrapped/removed", "raw_asgi": "/sent-once"}
"""Where a file is removed as soon as the application has sent it."""


@pytest.fixture(params=[(name, threads) for name in PLAIN for threads in ((1, 2) if name == "raw_wsgi" else (1,))])
def started(request: pytest.FixtureRequest) -> tuple[str, int]:
    """An application, and its threads."""
    name, threads = request.param
    return name, threads


@pytest.fixture
def app(started: tuple[str, int]) -> str:
    return started[0]


@pytest.fixture
def server(serve: Serve, started: tuple[str, int]) -> Server:
    name, threads = started
    return serve(name, workers=1, threads=threads)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "file", SIZE)


def written(path: Path, size: int) -> Path:
    """Each eight bytes say where they are."""
    path.write_bytes(b"".join(number.to_bytes(8, "big") for number in range(size // 8)))
    return path


def asked(server: Server, target: str) -> Client:
    """A client that has asked for a file and does not read it; the core sends it."""
    client = server.connect(receive_buffer=4096).ask("GET", target)
    server.until(lambda status: status["lives"]["parked"] == 1)
    return client


def body_of(client: Client) -> bytes:
    return b"".join(client.pieces(client.opening()))


def test_the_worker_is_free_and_the_file_may_be_removed(server: Server, app: str, file: Path) -> None:
    whole = file.read_bytes()
    client = asked(server, f"{REMOVED[app]}?{file}")
    assert server.get("/hola/you").text == "Hola you", "the only worker"
    until("the application to remove the file", lambda: not file.exists())
    opened = client.opening()
    assert opened["content-length"] == str(SIZE)
    assert [name for name in ("etag", "last-modified", "accept-ranges") if opened.all(name)] == []
    assert b"".join(client.pieces(opened)) == whole
    assert client.get("/hola/you").text == "Hola you", "the connection is kept"
    server.until_zero()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["nameless", "temporary", "rest"])
def test_a_file_without_a_name_or_read_in_part_is_sent_from_where_it_is(
    serve: Serve, file: Path, how: str, threads: int
) -> None:
    server, whole = serve("raw_wsgi", workers=1, threads=threads), file.read_bytes()
    client = asked(server, f"/wrapped/{how}?{file}")
    assert server.get("/hola/you").text == "Hola you"
    assert body_of(client) == (whole[10:] if how == "rest" else whole)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_close_that_fails_is_logged_and_costs_nobody_anything(serve: Serve, file: Path, threads: int) -> None:
    server, whole = serve("raw_wsgi", workers=1, threads=threads), file.read_bytes()
    pids = server.worker_pids()
    for _ in range(2):
        assert server.get(f"/wrapped/unclosable?{file}").body == whole
    server.until_logged("ZeroDivisionError", times=2)
    assert (server.get("/hola/you").text, server.worker_pids()) == ("Hola you", pids)


@pytest.mark.parametrize("size", [0, 8, 65_536, 65_544, 131_072, 131_080])
def test_files_of_every_size_are_whole(server: Server, app: str, tmp_path: Path, size: int) -> None:
    file = written(tmp_path / "file", size)
    assert server.get(f"{PLAIN[app]}?{file}").body == file.read_bytes()
    head = server.connect().ask("HEAD", f"{PLAIN[app]}?{file}").answer("HEAD")
    assert head.body == b""
    with server.connect2() as client:
        assert client.answer(client.ask("GET", f"{PLAIN[app]}?{file}")).body == file.read_bytes()
    server.until_zero()


@pytest.mark.parametrize("length", [1_000, 1_000_001])
def test_a_file_is_sent_as_far_as_its_response_goes(server: Server, app: str, file: Path, length: int) -> None:
    """It may have grown after the application had looked at it, or be asked for in part."""
    target = f"/{'wrapped' if app == 'raw_wsgi' else 'sent-file'}/{length}?{file}"
    expected = file.read_bytes()[:length]
    client = server.connect()
    assert [client.get(target).body for _ in range(2)] == [expected] * 2
    with server.connect2() as other:
        assert other.answer(other.ask("GET", target)).body == expected


def test_the_worker_that_named_a_file_may_end(server: Server, app: str, file: Path) -> None:
    whole = file.read_bytes()
    client = asked(server, f"{REMOVED[app]}?{file}")
    until("the application to remove the file", lambda: not file.exists())
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGKILL)
    server.until(lambda status: pid not in [worker["pid"] for worker in status["workers"]])
    assert body_of(client) == whole


def test_a_worker_that_is_replaced_has_its_file_open_in_the_core_before(server: Server, app: str, file: Path) -> None:
    whole = file.read_bytes()
    client = asked(server, f"{REMOVED[app]}?{file}")
    server.reload()
    assert body_of(client) == whole
    assert "ERROR" not in server.log()


def test_a_file_that_grows_is_sent_as_long_as_it_was(server: Server, app: str, file: Path) -> None:
    whole = file.read_bytes()
    client = asked(server, f"{PLAIN[app]}?{file}")
    with file.open("ab") as more:
        more.write(b"more")
    assert body_of(client) == whole


def test_a_file_that_becomes_shorter_ends_the_connection(server: Server, app: str, file: Path) -> None:
    client = asked(server, f"{PLAIN[app]}?{file}")
    os.truncate(file, SIZE // 2)
    opened = client.opening()
    with pytest.raises((ConnectionError, AssertionError, EOFError)):
        sum(len(piece) for piece in client.pieces(opened))
    server.until_logged("a file was not sent to its end")


def test_nothing_is_left_of_a_client_that_leaves(server: Server, app: str, file: Path) -> None:
    (pid,) = server.worker_pids()
    assert len(server.get(f"{PLAIN[app]}?{file}").body) == SIZE
    server.until_zero()
    core, worker = processes.descriptors(server.pid), processes.descriptors(pid)
    for _ in range(3):
        asked(server, f"{PLAIN[app]}?{file}").reset()
        server.until_zero()
    until("the core to close the files", lambda: processes.descriptors(server.pid) <= core)
    until("the worker to close the files", lambda: processes.descriptors(pid) <= worker)


def test_100_mb_leave_the_memory_of_core_and_worker_flat(server: Server, app: str, tmp_path: Path) -> None:
    file = written(tmp_path / "file", 100 * MEBIBYTE)
    (pid,) = server.worker_pids()
    assert len(server.get(f"{PLAIN[app]}?{written(tmp_path / 'small', MEBIBYTE)}").body) == MEBIBYTE
    before, core = processes.peak_bytes(pid), processes.peak_bytes(server.pid)
    client = server.connect().ask("GET", f"{PLAIN[app]}?{file}")
    assert sum(len(piece) for piece in client.pieces(client.opening())) == 100 * MEBIBYTE
    assert processes.peak_bytes(pid) - before < 2 * MEBIBYTE
    assert processes.peak_bytes(server.pid) - core < 4 * MEBIBYTE


# What a worker may name; the test plays it.


@pytest.fixture
def workers() -> Iterator[Workers]:
    played = Workers()
    yield played
    played.close()


@pytest.fixture
def played(serve: Serve, workers: Workers) -> tuple[Server, Worker]:
    usual = {"python": workers.python, "environment": workers.environment, "is_ready": False}
    server = serve("fake:app", workers=1, **usual)
    worker = workers.next().start()
    return server.ready(), worker


def named(*paths: object, of: Path, first: int = 0, length: int = 100, fields: tuple[str, ...] = ()) -> list[object]:
    """A PARK that names a part of a file."""
    about = of.stat()
    wait = ["part", [str(path) for path in paths], [about.st_dev, about.st_ino], first, length]
    return [wait, ["answer", [200, list(fields), None]]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path / "small", 800)


def test_the_first_path_that_leads_to_the_very_file_counts(played: tuple[Server, Worker], small: Path) -> None:
    (server, worker), other = played, written(small.with_name("other"), 1600)
    link = small.with_name("link")
    link.symlink_to(small)
    with small.open("rb") as opened:
        descriptor = f"/proc/{os.getpid()}/fd/{opened.fileno()}"
        for paths in ([small], [link], [descriptor], [other, small], ["/nowhere", small], [small.parent, descriptor]):
            client = server.connect().ask("GET", "/hola/x")
            stream = worker.request()
            worker.send(frame(PARK, stream, named(*paths, of=small, first=8)))
            assert client.answer().body == small.read_bytes()[8:108], paths
            told = worker.next(WINDOW)
            assert (told.stream, told.payload) == (stream, [0])


@pytest.mark.parametrize("what", ["another", "missing", "a folder", "a device", "short", "far", "length", "field"])
def test_what_is_not_the_file_is_not_sent(played: tuple[Server, Worker], small: Path, what: str) -> None:
    """Whatever the worker names, it is told when it may close the file."""
    (server, worker), other = played, written(small.with_name("other"), 1600)
    null = Path("/dev/null")
    park = {
        "another": named(other, of=small),
        "missing": named(small.with_name("nowhere"), of=small),
        "a folder": named(small.parent, of=small.parent),
        "a device": named(null, of=null),
        "short": named(small, of=small, first=701),
        "far": named(small, of=small, first=2**63 - 1, length=2**63),
        "length": named(small, of=small, fields=("content-length", "99")),
        "field": named(small, of=small, fields=("two words", "99")),
    }[what]
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(frame(PARK, stream, park))
    assert client.answer().status == 500
    told = worker.next(WINDOW)
    assert (told.stream, told.payload) == (stream, [0])
    server.until_logged("ERROR")
    server.until_zero()


def test_a_worker_hears_of_its_file_before_the_goodbye(played: tuple[Server, Worker], file: Path) -> None:
    server, worker = played
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(frame(PARK, stream, named(file, of=file, length=SIZE)))
    server.signal(signal.SIGTERM)
    assert body_of(client) == file.read_bytes()
    kinds: list[int] = []
    while GOODBYE not in kinds and (said := worker.frame()) is not None:
        kinds.append(said.kind)
    worker.close()
    assert [kind for kind in kinds if kind in (WINDOW, GOODBYE)] == [WINDOW, GOODBYE]
    assert server.ended() == 0


def test_a_file_whose_client_has_left_before_is_not_opened(played: tuple[Server, Worker], small: Path) -> None:
    server, worker = played
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    client.close()
    worker.next(CANCEL)
    worker.send(frame(PARK, stream, named("/nowhere", of=small)))
    server.until_zero()
    assert "/nowhere" not in server.log()
