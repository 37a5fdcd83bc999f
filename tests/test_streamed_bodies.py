"""Bodies of requests that applications read while they arrive, over each version of HTTP."""

from __future__ import annotations

import os
import signal

import pytest

from .conftest import Serve
from .harness import perl, processes
from .harness.client import chunked
from .harness.server import Server

MEBIBYTE = 1024 * 1024
SIZE = 100 * MEBIBYTE
APPS = ["raw_wsgi", "raw_asgi", "native_def", "native_async"]

ask_for_it = pytest.mark.parametrize("server", APPS, indirect=True)
"""Applications that decide whether they read a body. Those of PSGI get it when it is there."""


@pytest.fixture(params=[*APPS, *perl.PSGI])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(request.param, workers=1, body_limit="1MiB", stream_limit="101MiB")


def head(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: here", *fields, "", ""]).encode()


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "of unknown length"])
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_a_large_body_leaves_the_memory_of_core_and_worker_flat(
    server: Server, version: str, is_announced: bool
) -> None:
    (pid,) = server.worker_pids()
    assert server.post("/count", b"x" * MEBIBYTE).text == str(MEBIBYTE), "what it takes once is there"
    before, core = processes.peak_bytes(pid), processes.peak_bytes(server.pid)
    body = b"x" * SIZE
    if version == "HTTP/2":
        fields = [("content-length", str(SIZE))] if is_announced else []
        with server.connect2() as client:
            answer = client.answer(client.ask("POST", "/count", *fields, body=body))
    elif is_announced:
        answer = server.post("/count", body)
    else:
        whole = chunked(*[body[:MEBIBYTE]] * (SIZE // MEBIBYTE))
        answer = server.connect().send(head("/count", "Transfer-Encoding: chunked"), whole).answer()
    assert (answer.status, answer.text) == (200, str(SIZE))
    assert processes.peak_bytes(pid) - before < 4 * MEBIBYTE
    assert processes.peak_bytes(server.pid) - core < 4 * MEBIBYTE
    assert server.worker_pids() == [pid]


def test_a_chunked_body_is_read_while_it_arrives(server: Server) -> None:
    client = server.connect().send(head("/count", "Transfer-Encoding: chunked"))
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    for _ in range(48):
        client.send(piece)
    server.until_running(1)
    assert client.send(b"0\r\n\r\n").answer().text == str(48 * 65_536)
    assert client.get("/hola/you").status == 200, "the connection is kept"


@ask_for_it
def test_the_application_decides_whether_100_continue_is_sent(server: Server) -> None:
    fields = (f"Content-Length: {2 * MEBIBYTE}", "Expect: 100-continue")
    reading = server.connect().send(head("/count", *fields))
    assert reading.answer().status == 100
    assert reading.send(b"x" * 2 * MEBIBYTE).answer().text == str(2 * MEBIBYTE)
    other = server.connect().send(head("/hola/you", *fields))
    answer = other.answer()
    assert answer.status != 100
    assert answer["connection"] == "close"
    assert other.ends()


def test_a_body_beyond_the_limit_is_refused_at_once_or_when_it_passes_it(server: Server) -> None:
    announced = server.connect().send(head("/count", f"Content-Length: {102 * MEBIBYTE}")).answer()
    assert announced.status == 413
    assert b"--stream-limit" in announced.body
    client = server.connect().send(head("/count", "Transfer-Encoding: chunked"))
    piece = b"100000\r\n" + b"x" * MEBIBYTE + b"\r\n"
    for _ in range(101):
        client.send(piece)
    answer = client.send(b"100000\r\n").answer()
    assert answer.status == 413
    assert client.ends()
    server.until_zero()
    server.still_serves()


def test_a_client_that_leaves_in_the_middle_frees_its_worker(server: Server) -> None:
    client = server.connect().send(head("/count", f"Content-Length: {4 * MEBIBYTE}") + b"x" * 2 * MEBIBYTE)
    server.until_running(1)
    client.close()
    server.until_zero()
    assert server.post("/count", b"abc").text == "3"


def test_a_worker_that_dies_in_the_middle_is_a_502(server: Server) -> None:
    client = server.connect().send(head("/count", f"Content-Length: {4 * MEBIBYTE}") + b"x" * 2 * MEBIBYTE)
    server.until_running(1)
    # It has begun to read: more than its window has been taken from the client.
    (pid,) = server.worker_pids()
    os.kill(pid, signal.SIGKILL)
    assert client.answer().status == 502
    server.until_zero()


def test_a_body_that_stalls_is_a_408(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, stream_limit="64MiB", body_timeout="1s")
    client = server.connect().send(head("/count", f"Content-Length: {4 * MEBIBYTE}") + b"x" * MEBIBYTE)
    assert client.answer().status == 408
    assert client.ends()
    server.until_zero()


def test_a_slow_client_outlives_the_deadline_of_a_request(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, deadline="2s")
    client = server.connect().send(head("/count", f"Content-Length: {10 * 65_536}"))
    for _ in range(9):
        client.send(b"x" * 65_536)
        assert not client.is_readable(0.4)
    assert client.send(b"x" * 65_536).answer().text == str(10 * 65_536)


def test_a_small_body_is_complete_before_a_worker_has_it(serve: Serve) -> None:
    """A slow client holds no worker: a plain one not up to `--body-limit`, and no other up to 64 KiB."""
    for app, length in (("raw_wsgi", MEBIBYTE), ("raw_asgi", 60_000), *((app, MEBIBYTE) for app in perl.PSGI)):
        server = serve(app, workers=1, stream_limit="64MiB")
        client = server.connect().send(head("/count", f"Content-Length: {length}") + b"x" * (length - 1))
        assert server.post("/count", b"abc").text == "3"
        assert server.status()["lives"]["running"] == 0
        assert client.send(b"x").answer().text == str(length)


COROUTINES = pytest.mark.parametrize("server", ["raw_asgi", "native_async"], indirect=True)
"""They may wait for their clients."""


@COROUTINES
def test_a_client_hears_of_one_piece_before_it_sends_the_next(server: Server) -> None:
    client = server.connect().send(head("/back", "Transfer-Encoding: chunked"))
    client.send(b"3\r\none\r\n")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"one"
    client.send(b"3\r\ntwo\r\n")
    assert next(pieces) == b"two"
    client.send(b"0\r\n\r\n")
    assert list(pieces) == []
    assert client.ends(), "as the head of the response said"


@COROUTINES
def test_over_http_2_it_does_too(server: Server) -> None:
    with server.connect2() as client:
        stream = client.ask("POST", "/back", end=False)
        server.until_running(1)
        client.send(stream, b"one", end=False)
        assert client.opening(stream).status == 200
        assert client.piece(stream) == b"one"
        client.send(stream, b"two")
        assert client.answer(stream).body == b"two"


@COROUTINES
def test_a_coroutine_decides_about_a_small_body_too(server: Server) -> None:
    for fields, body in (
        (("Content-Length: 3", "Expect: 100-continue"), b"abc"),
        (("Transfer-Encoding: chunked", "Expect: 100-continue"), chunked(b"abc")),
    ):
        reading = server.connect().send(head("/count", *fields))
        assert reading.answer().status == 100
        assert reading.send(body).answer().text == "3"
        other = server.connect().send(head("/hola/you", *fields))
        answer = other.answer()
        assert (answer.status, answer["connection"]) == (200, "close")


def test_over_http_2_the_same_holds(server: Server) -> None:
    """Too much is refused, a client that resets its stream frees the worker, and a worker that dies is a 502."""
    length = ("content-length", str(4 * MEBIBYTE))
    with server.connect2() as client:
        assert (
            client.answer(client.ask("POST", "/count", ("content-length", str(102 * MEBIBYTE)), end=False)).status
            == 413
        )
        left = client.ask("POST", "/count", length, end=False)
        client.send(left, b"x" * 2 * MEBIBYTE, end=False)
        server.until_running(1)
        client.reset(left)
        server.until_zero()
        cut = client.ask("POST", "/count", length, end=False)
        client.send(cut, b"x" * 2 * MEBIBYTE, end=False)
        server.until_running(1)
        (pid,) = server.worker_pids()
        os.kill(pid, signal.SIGKILL)
        assert client.answer(cut).status == 502
        server.until_zero()
        assert client.answer(client.ask("POST", "/count", body=b"abc")).text == "3"


@ask_for_it
def test_an_answer_does_not_wait_for_the_body(server: Server) -> None:
    """The rest of it is dropped up to a bound, and the connection closes."""
    client = server.connect().send(head("/hola/you", f"Content-Length: {4 * MEBIBYTE}") + b"x" * MEBIBYTE)
    answer = client.answer()
    assert (answer.status, answer["connection"]) == (200, "close")
    assert client.ends()
    server.until_zero()
