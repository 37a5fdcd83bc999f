"""What happens in the middle of a body that its application reads while it arrives: pieces of a byte, reloads, stops,
clients that leave, responses that come first. And large bodies that go both ways, or down.
"""

from __future__ import annotations

import resource
import signal
import threading

import pytest

from .conftest import Serve
from .harness import perl, processes
from .harness.client import Client, chunked, request
from .harness.server import Server

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE
APPS = ["raw_wsgi", "raw_asgi", "native_def", "native_async"]
"""They decide whether they read a body. Those of PSGI get it when it is there."""
LENGTH = 4 * MEBIBYTE
"""More than `--body-limit`, so also a plain function reads it while it arrives."""


ask_for_it = pytest.mark.parametrize("server", APPS, indirect=True)


@pytest.fixture(params=[*APPS, *perl.PSGI])
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return serve(request.param, workers=1, body_limit="1MiB", stream_limit="101MiB")


def head(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: here", *fields, "", ""]).encode()


def begun(server: Server) -> Client:
    """A client that has sent half of its body."""
    return server.connect().send(head("/count", f"Content-Length: {LENGTH}"), b"x" * (LENGTH // 2))


def midway(server: Server) -> Client:
    """The same, and its body is being read."""
    client = begun(server)
    server.until_running(1)
    return client


# Large bodies


def test_100_mb_down_leave_the_memory_of_core_and_worker_flat(server: Server) -> None:
    (pid,) = server.worker_pids()
    assert len(server.get("/down/16").body) == MEBIBYTE, "what it takes once is there"
    before, core = processes.peak_bytes(pid), processes.peak_bytes(server.pid)
    client = server.connect().ask("GET", "/down/1600")
    assert sum(len(piece) for piece in client.pieces(client.opening())) == 100 * MEBIBYTE
    assert processes.peak_bytes(pid) - before < 4 * MEBIBYTE
    assert processes.peak_bytes(server.pid) - core < 4 * MEBIBYTE


def test_100_mb_go_up_and_come_back_at_the_same_time(server: Server) -> None:
    (pid,) = server.worker_pids()
    before, core = processes.peak_bytes(pid), processes.peak_bytes(server.pid)
    client = server.connect().send(head("/back", f"Content-Length: {100 * MEBIBYTE}"))
    sends = threading.Thread(target=lambda: [client.send(b"x" * MEBIBYTE) for _ in range(100)])
    sends.start()
    assert sum(len(piece) for piece in client.pieces(client.opening())) == 100 * MEBIBYTE
    sends.join()
    assert processes.peak_bytes(pid) - before < 8 * MEBIBYTE
    assert processes.peak_bytes(server.pid) - core < 8 * MEBIBYTE


@pytest.mark.parametrize("app", perl.PSGI)
def test_100_mb_of_psgi_can_be_read_again_and_written_by_a_writer(serve: Serve, app: str) -> None:
    """What arrives is in a file, and what is written waits for the client."""
    server = serve(app, workers=1, body_limit="1MiB", stream_limit="101MiB")
    (pid,) = server.worker_pids()
    before, core = processes.peak_bytes(pid), processes.peak_bytes(server.pid)
    body = b"0123456789" * (10 * MEBIBYTE)
    assert server.post("/twice", body).text == f"{len(body)} {len(body)} 34567"
    client = server.connect().ask("GET", "/down/1600/written")
    assert sum(len(piece) for piece in client.pieces(client.opening())) == 100 * MEBIBYTE
    assert processes.peak_bytes(pid) - before < 24 * MEBIBYTE, "4 MiB wait, which Perl copies"
    assert processes.peak_bytes(server.pid) - core < 8 * MEBIBYTE


@pytest.mark.promise(4)
@pytest.mark.parametrize("app", perl.PSGI)
def test_bodies_that_arrive_slowly_hold_no_worker_of_psgi(serve: Serve, app: str) -> None:
    server = serve(app, workers=1, body_limit="64KiB", stream_limit="101MiB")
    clients = [begun(server) for _ in range(3)]
    server.until_running(3)
    assert server.get("/hola/you").text == "Hola you"
    for client in clients:
        client.send(b"x" * (LENGTH // 2))
    assert [client.answer().text for client in clients] == [str(LENGTH)] * 3
    server.until_zero()


@pytest.mark.parametrize("app", perl.PSGI)
def test_a_body_that_the_disk_has_no_room_for_is_500(serve: Serve, app: str) -> None:
    folder = perl.app("lib")
    server = serve(
        app, body_limit="64KiB", stream_limit="101MiB", environment={"PERL5OPT": f"-Mlib={folder} -MFullDisk"}
    )
    # From 1 MiB on, it goes to a file. Of a much longer one the server would not read the rest after its response.
    assert server.post("/count", b"x" * 1_300_000).status == 500
    server.until_logged("cannot store a body: No space left on device")
    assert server.post("/count", b"x" * 100_000).text == "100000"
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_of_wsgi_too_if_its_length_is_not_known(serve: Serve, threads: int) -> None:
    server = serve("raw_wsgi", workers=1, threads=threads, body_limit="64KiB", stream_limit="101MiB")
    (pid,) = server.worker_pids()
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (MEBIBYTE, MEBIBYTE))
    for count, status in ((20, 500), (10, 200)):
        body = chunked(*[b"x" * 65_536] * count)
        assert server.connect().send(head("/count", "Transfer-Encoding: chunked"), body).answer().status == status
    server.until_logged("cannot store a body: File too large")
    assert server.worker_pids() == [pid]


@pytest.mark.parametrize("app", ["native_def", "native_async"])
def test_a_route_may_allow_more_than_the_server_does_for_others(serve: Serve, app: str) -> None:
    server = serve(app, workers=1, body_limit="1MiB")
    assert server.post("/large", b"x" * 3 * MEBIBYTE).text == str(3 * MEBIBYTE)
    refused = server.connect().send(head("/count", f"Content-Length: {3 * MEBIBYTE}")).answer()
    assert refused.status == 413, "and its connection closes, so whoever sends the body may find it closed"
    announced = server.connect().send(head("/large", f"Content-Length: {151 * MEBIBYTE}")).answer()
    assert announced.status == 413
    assert b"than its route allows: its body_limit, or else 1048576 bytes (--stream-limit)" in announced.body


# Small pieces


def test_chunks_of_a_byte_each_are_a_body_like_any_other(server: Server) -> None:
    count = MEBIBYTE + 5_000
    client = server.connect().send(head("/count", "Transfer-Encoding: chunked"), b"1\r\nx\r\n" * (count - 50))
    server.until_running(1)
    for _ in range(50):
        client.send(b"1\r")
        client.send(b"\nx\r\n")
    assert client.send(b"0\r\n\r\n").answer().text == str(count)
    assert client.get("/hola/you").text == "Hola you"


# Reloads and stops


def test_a_reload_in_the_middle_of_a_body_does_not_disturb_it(server: Server) -> None:
    client = midway(server)
    (pid,) = server.worker_pids()
    server.reload()
    assert server.get("/hola/you").text == "Hola you"
    assert client.send(b"x" * (LENGTH // 2)).answer().text == str(LENGTH)
    server.until(lambda status: pid not in [worker["pid"] for worker in status["workers"]])
    assert server.post("/count", b"abc").text == "3"


def test_a_server_that_stops_waits_for_a_body(server: Server) -> None:
    client = midway(server)
    server.signal(signal.SIGTERM)
    server.until(lambda status: status["state"] == "draining")
    answer = client.send(b"x" * (LENGTH // 2)).answer()
    assert (answer.text, answer["connection"]) == (str(LENGTH), "close")
    assert server.ended() == 0


WHOLE = head("/count", "Content-Length: 10") + b"x" * 10
IN_CHUNKS = head("/count", "Transfer-Encoding: chunked") + chunked(b"xxxxx", b"xxxxx")
PARTS = {"head": (WHOLE, 20), "body": (WHOLE, -5), "chunks": (IN_CHUNKS, -8)}


def stopping(server: Server) -> None:
    """What was sent before has been read."""
    assert server.get("/hola/you").text == "Hola you"
    server.signal(signal.SIGTERM)
    server.until(lambda status: status["state"] == "draining")


@pytest.mark.promise(3)
@pytest.mark.parametrize("part", PARTS)
def test_a_server_that_stops_waits_for_a_request_of_which_a_part_has_come(server: Server, part: str) -> None:
    whole, sent = PARTS[part]
    client = server.connect()
    assert client.get("/hola/you").text == "Hola you"
    client.send(whole[:sent])
    stopping(server)
    answer = client.send(whole[sent:]).answer()
    assert (answer.text, answer["connection"]) == ("10", "close")
    assert server.ended() == 0
    assert "stopped: every request has ended" in server.log()


@pytest.mark.promise(3)
def test_over_http_2_it_waits_as_well(server: Server) -> None:
    with server.connect2() as client:
        stream = client.ask("POST", "/count", ("content-length", "10"), end=False)
        client.send(stream, b"xxxxx", end=False)
        stopping(server)
        client.send(stream, b"xxxxx")
        assert client.answer(stream).text == "10"
    assert server.ended() == 0


def test_it_does_not_wait_for_a_client_that_leaves(server: Server) -> None:
    clients = [server.connect().send(WHOLE[:-5]) for _ in range(3)]
    stopping(server)
    for client in clients:
        client.close()
    assert server.ended() == 0
    assert "stopped: every request has ended" in server.log()


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_what_has_not_come_when_its_grace_is_over_is_cut_off(serve: Serve, version: str) -> None:
    for app in ["raw_wsgi", *perl.PSGI]:
        server = serve(app, workers=1, grace="1s")
        if version == "2":
            client = server.connect2()
            client.send(client.ask("POST", "/count", ("content-length", "10"), end=False), b"xxxxx", end=False)
        else:
            server.connect().send(WHOLE[:-5])
        stopping(server)
        assert server.ended() == 0
        assert "grace period expired" in server.log()


def test_a_server_that_stops_does_not_wait_for_ever(serve: Serve) -> None:
    for app in [*APPS, *perl.PSGI]:
        server = serve(app, workers=1, body_limit="1MiB", stream_limit="101MiB", grace="1s")
        client = midway(server)
        server.signal(signal.SIGTERM)
        assert client.answer().status == 503
        assert server.ended() == 0


# Clients that leave


@pytest.mark.parametrize("sent", [0, 1_000, 65_536, MEBIBYTE, MEBIBYTE + 1, LENGTH - 1])
@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
def test_wherever_a_client_leaves_nothing_is_left_of_it(serve_for_all: Serve, sent: int, how: str) -> None:
    for app in [*APPS, *perl.PSGI]:
        server = serve_for_all(app, workers=1, body_limit="1MiB", stream_limit="101MiB")
        client = server.connect().send(head("/count", f"Content-Length: {LENGTH}"), b"x" * sent)
        if sent > MEBIBYTE:
            server.until_running(1)
        getattr(client, how)()
        server.until_zero()
        assert server.post("/count", b"abc").text == "3"
        assert "Traceback" not in server.log()


# Responses that come first


@pytest.mark.parametrize("rest", [1, 200 * KIBIBYTE])
def test_a_short_rest_that_nobody_reads_is_dropped_and_the_connection_kept(serve: Serve, rest: int) -> None:
    for app in APPS:
        server = serve(app, workers=1, body_limit="64KiB", stream_limit="101MiB")
        client = server.connect().send(head("/hola/you", f"Content-Length: {65_536 + rest}"), b"x" * 65_536)
        answer = client.answer()
        assert (answer.text, answer.all("connection")) == ("Hola you", [])
        client.send(b"x" * rest, request("GET", "/hola/you"))
        assert client.answer().text == "Hola you"
        server.until_zero()


def test_the_rest_is_dropped_while_a_client_that_does_not_read_yet_sends_it(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, stream_limit="101MiB")
    whole = head("/long", f"Content-Length: {65_536 + 200 * KIBIBYTE}") + b"x" * (65_536 + 200 * KIBIBYTE)
    client = server.connect(receive_buffer=4096).send(whole, request("GET", "/hola/me"))
    assert len(client.answer().body) == 3_000_000
    assert client.answer().text == "Hola me"


def test_a_rest_that_stalls_ends_the_connection(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, stream_limit="101MiB", body_timeout="1s")
    client = server.connect().send(head("/hola/you", f"Content-Length: {65_536 + 1_000}"), b"x" * 65_536)
    assert client.answer().text == "Hola you"
    assert client.rest() == b"", "and nothing is said of a request that has its response"


@pytest.mark.parametrize(
    "fields", [("Transfer-Encoding: chunked",), (f"Content-Length: {MEBIBYTE}",)], ids=["of unknown length", "long"]
)
def test_any_other_rest_closes_the_connection_after_the_response(serve: Serve, fields: tuple[str, ...]) -> None:
    server = serve("raw_asgi", workers=1, stream_limit="101MiB")
    begun = chunked(b"x" * 70_000).removesuffix(b"0\r\n\r\n") if "chunked" in fields[0] else b"x" * 70_000
    client = server.connect().send(head("/hola/you", *fields), begun)
    answer = client.answer()
    assert (answer.text, answer["connection"]) == ("Hola you", "close")
    assert client.ends()


# HTTP/2


@ask_for_it
def test_over_http_2_the_application_decides_whether_100_continue_is_sent(server: Server) -> None:
    fields = (("content-length", str(LENGTH)), ("expect", "100-continue"))
    with server.connect2() as client:
        unread = client.ask("POST", "/hola/you", *fields, end=False)
        assert client.answer(unread).text == "Hola you"
        assert client.streams[unread].interim == []
        reading = client.ask("POST", "/count", *fields, end=False)
        assert client.interim(reading).status == 100
        client.send(reading, b"x" * LENGTH)
        assert client.answer(reading).text == str(LENGTH)
        assert client.streams[reading].interim == [], "it is told once"
