"""Every limit is reached: what happens there, and that memory and workers stay protected."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest

from .conftest import Serve
from .harness import processes
from .harness.client import Broken, Client, chunked, request
from .harness.server import Server
from .harness.until import BUSY, SECONDS, Stopwatch, until

pytestmark = pytest.mark.also_in_perl

KIBIBYTE, MEBIBYTE = 1 << 10, 1 << 20

SHORT = {
    "header_timeout": "400ms",
    "body_timeout": "400ms",
    "keep_alive": "400ms",
    "stall_timeout": "600ms",
    "body_limit": "1MiB",
}
SWEEP = 0.5
"""Timeouts are checked twice a second."""


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic")


@pytest.fixture(scope="module")
def shared_impatient(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", **SHORT)


@pytest.fixture
def impatient(shared_impatient: Server) -> Iterator[Server]:
    yield shared_impatient
    shared_impatient.cleared()


def dribble(client: Client, data: Iterator[bytes], pause: float = 0.02, seconds: float = SECONDS) -> None:
    """Sends piece by piece, with a pause after each, until the server responds."""
    watch = Stopwatch()
    for piece in data:
        assert watch.seconds < seconds, "the server lets it go on for ever"
        if client.is_readable(pause):
            return
        client.send_what_goes(piece)
    until("the server says something", client.is_readable)


def grows_by_less_than(server: Server, bytes_max: int, act: Callable[[], None]) -> None:
    before = server.resident_bytes
    act()
    grown = server.resident_bytes - before
    assert grown < bytes_max, f"the core grew by {grown >> 10} KiB"


# The head


@pytest.mark.promise(8)
@pytest.mark.parametrize(
    "fields",
    [
        ["X-A: " + "v" * 50_000],
        [f"X-{number}: {'v' * 1000}" for number in range(60)],
        ["X-" + "n" * 50_000 + ": v"],
        ["Cookie: " + "c" * (32 * KIBIBYTE)],
    ],
)
def test_a_head_over_its_limit_is_431(server: Server, fields: list[str]) -> None:
    client = server.connect().ask("GET", "/hola/x", *fields)
    answer = client.answer()
    assert (answer.status, answer["connection"]) == (431, "close")
    assert client.ends()


@pytest.mark.parametrize(("size", "status"), [(32 * KIBIBYTE, 200), (32 * KIBIBYTE + 1, 431)])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_head_of_exactly_the_limit_is_served_and_one_byte_more_is_431(
    server: Server, size: int, pieces: int, status: int
) -> None:
    fewest = len(request("GET", "/hola/x", "X-A: "))
    head = request("GET", "/hola/x", "X-A: " + "v" * (size - fewest))
    assert len(head) == size
    client = server.connect()
    for at in range(pieces):
        client.send(head[len(head) * at // pieces : len(head) * (at + 1) // pieces])
    assert client.answer().status == status


@pytest.mark.parametrize(("count", "status"), [(100, 200), (101, 431), (300, 431), (5_000, 431)])
def test_as_many_fields_as_the_limit_are_served_and_more_are_431(server: Server, count: int, status: int) -> None:
    assert server.get("/hola/x", *["X: y"] * (count - 1)).status == status


def test_a_target_over_the_limit_is_414(server: Server) -> None:
    answer = server.get("/hola/" + "x" * 40_000)
    assert answer.status == 414
    assert "32768 bytes (--header-limit)" in answer.text


def test_who_is_over_a_limit_is_told_which(serve: Serve) -> None:
    server = serve("basic", body_limit="1KiB", header_count=20)
    for answer, says in (
        (server.post("/hola/x", b"x" * 1025), "1024 bytes (--body-limit)"),
        (server.get("/hola/x", "X-A: " + "v" * 50_000), "32768 bytes (--header-limit)"),
        (server.get("/hola/x", *["X: y"] * 20), "20 (--header-count)"),
    ):
        assert says in answer.text
    with server.connect2() as client:
        stream = client.ask("POST", "/hola/x", body=b"x" * 1025)
        assert b"1024 bytes (--body-limit)" in client.answer(stream).body


def test_ten_megabytes_of_fields_are_cut_off_and_memory_stays_flat(server: Server) -> None:
    def stream() -> None:
        client = server.connect().send(b"GET /hola/x HTTP/1.1\r\nHost: test\r\n")
        sent = 0
        try:
            while sent < 10 * MEBIBYTE:
                client.send(b"X-A: " + b"v" * 65_000 + b"\r\n")
                sent += 65_007
        except ConnectionError:
            return  # cut off in the middle; what was sent was in buffers of the kernel
        assert client.answer().status == 431

    grows_by_less_than(server, 4 * MEBIBYTE, stream)


def test_a_head_that_stops_is_408(impatient: Server) -> None:
    client = impatient.connect().send(b"GET /hola/x HTTP/1.1\r\nHost: te")
    answer = client.answer()
    assert (answer.status, answer["connection"]) == (408, "close")
    assert client.ends()


def test_a_head_that_comes_a_byte_at_a_time_for_ever_is_408(impatient: Server) -> None:
    watch = Stopwatch()
    client = impatient.connect().send(b"GET /hola/x HTTP/1.1\r\nX-Slow: ")
    dribble(client, iter(lambda: b"x", b""))
    assert client.answer().status == 408
    assert 0.4 <= watch.seconds < 0.4 + SWEEP + BUSY


def test_a_hundred_slow_heads_occupy_no_worker(impatient: Server) -> None:
    slow = [impatient.connect().send(b"POST /echo HTTP/1.1\r\nHost: te") for _ in range(100)]
    assert impatient.get("/hola/x").status == 200
    assert impatient.status()["lives"]["running"] == 0
    assert {client.answer().status for client in slow} == {408}


# The body


@pytest.mark.promise(8)
def test_a_body_that_is_announced_over_the_limit_is_413_at_once(impatient: Server) -> None:
    client = impatient.connect().send(request("POST", "/digest", f"Content-Length: {10 << 30}"))
    answer = client.answer()
    assert (answer.status, answer["connection"]) == (413, "close")
    assert client.ends()


def test_a_413_reaches_a_client_that_goes_on_sending(impatient: Server) -> None:
    client = impatient.connect().send(request("POST", "/digest", f"Content-Length: {2 * MEBIBYTE}"))
    for _ in range(8):
        client.send_what_goes(b"x" * 65_536)
    assert client.answer().status == 413


def test_a_chunked_body_over_the_limit_is_413_while_it_comes(impatient: Server) -> None:
    def stream() -> None:
        client = impatient.connect().send(request("POST", "/digest", "Transfer-Encoding: chunked"))
        sent = 0
        piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        while sent < 1 << 30 and not client.is_readable():
            sent += client.send_what_goes(piece)
        assert client.answer().status == 413
        assert sent < 16 * MEBIBYTE

    grows_by_less_than(impatient, 12 * MEBIBYTE, stream)


def test_a_chunk_that_is_announced_over_the_limit_is_413_before_it_comes(impatient: Server) -> None:
    client = impatient.connect().send(request("POST", "/digest", "Transfer-Encoding: chunked"), b"fffffff\r\n")
    assert client.answer().status == 413


def test_a_body_of_exactly_the_limit_is_taken(impatient: Server) -> None:
    assert impatient.post("/digest", b"x" * MEBIBYTE).json()["bytes"] == MEBIBYTE
    client = impatient.connect().send(
        request("POST", "/digest", "Transfer-Encoding: chunked"), chunked(b"x" * MEBIBYTE)
    )
    assert client.answer().json()["bytes"] == MEBIBYTE


def test_a_body_of_http_2_over_the_limit_is_413(impatient: Server) -> None:
    client = impatient.connect2()
    announced = client.ask("POST", "/digest", ("content-length", str(2 * MEBIBYTE)), end=False)
    assert client.answer(announced).status == 413
    streamed = client.ask("POST", "/digest", body=b"x" * (2 * MEBIBYTE))
    assert client.opening(streamed).status == 413
    assert client.get("/hola/x").status == 200


@pytest.mark.promise(8)
@pytest.mark.parametrize(
    "begun",
    [
        request("POST", "/digest", "Content-Length: 10") + b"begun",
        request("POST", "/digest", "Content-Length: 10"),
        request("POST", "/digest", "Transfer-Encoding: chunked") + b"5\r\nbeg",
        request("POST", "/digest", "Transfer-Encoding: chunked") + b"5\r\nbegun\r\n0\r\n",
    ],
)
def test_a_body_that_stops_is_408(impatient: Server, begun: bytes) -> None:
    client = impatient.connect().send(begun)
    answer = client.answer()
    assert (answer.status, answer["connection"]) == (408, "close")
    assert client.ends()


def test_a_body_of_http_2_that_stops_is_408(impatient: Server) -> None:
    client = impatient.connect2()
    assert client.answer(client.ask("POST", "/digest", end=False)).status == 408


def test_a_body_that_comes_a_byte_at_a_time_for_ever_is_408(impatient: Server) -> None:
    client = impatient.connect().send(request("POST", "/digest", "Content-Length: 100000"))
    dribble(client, iter(lambda: b"x", b""), seconds=5)
    assert client.answer().status == 408


def test_slow_bodies_occupy_no_worker(impatient: Server) -> None:
    slow = [impatient.connect().send(request("POST", "/digest", "Content-Length: 9"), b"x") for _ in range(50)]
    assert impatient.get("/hola/x").status == 200
    assert impatient.status()["lives"]["running"] == 0
    assert {client.answer().status for client in slow} == {408}


# The response


def test_a_client_that_never_reads_is_cut_off(impatient: Server) -> None:
    def refuse_to_read() -> None:
        clients = [impatient.connect(receive_buffer=4096).ask("GET", "/stream/10000/65536") for _ in range(5)]
        impatient.until(lambda status: status["lives"]["running"] > 0)
        impatient.until_zero()
        for client in clients:
            with pytest.raises((ConnectionError, AssertionError)):
                client.answer()

    grows_by_less_than(impatient, 24 * MEBIBYTE, refuse_to_read)


@pytest.mark.promise(4)
def test_clients_that_never_read_hold_no_worker(server: Server) -> None:
    clients = [server.connect(receive_buffer=4096).ask("GET", "/stream/10000/65536") for _ in range(5)]
    server.until(lambda status: status["lives"]["running"] > 0)
    assert server.connect(seconds=3).get("/hola/x").text == "Hola x"
    server.until_running(5)
    for client in clients:
        client.close()
    server.until_zero()


@pytest.mark.promise(4)
def test_clients_of_http_2_that_never_read_hold_no_worker(server: Server) -> None:
    client = server.connect2(window=65_535)
    for _ in range(5):
        client.ask("GET", "/stream/1000/65536")
    server.until(lambda status: status["lives"]["running"] > 0)
    assert server.connect(seconds=3).get("/hola/x").text == "Hola x"
    server.until_running(5)
    client.close()
    server.until_zero()


def test_a_client_of_http_2_that_never_reads_is_cut_off(impatient: Server) -> None:
    def refuse_to_read() -> None:
        client = impatient.connect2(window=65_535)
        client.ask("GET", "/stream/1000/65536")
        impatient.until_running(1)
        impatient.until_zero()

    grows_by_less_than(impatient, 24 * MEBIBYTE, refuse_to_read)


def test_a_whole_answer_of_http_2_that_is_never_taken_is_broken_off_and_its_connection_goes_on(
    impatient: Server,
) -> None:
    client = impatient.connect2(window=10)
    watch = Stopwatch()
    untaken = [client.ask("GET", "/bytes/60000") for _ in range(3)]
    for stream in untaken:
        with pytest.raises(Broken, match="CANCEL"):
            client.answer(stream)
    assert 0.6 <= watch.seconds < 0.6 + BUSY
    assert client.get("/hola/x").text == "Hola x"


def test_whole_answers_that_are_never_read_end_their_connection_of_http_2(impatient: Server) -> None:
    def refuse_to_read() -> None:
        client = impatient.connect2()
        client.connection.increment_flow_control_window((1 << 31) - 1 - 65_535)
        for _ in range(250):
            client.ask("GET", "/bytes/60000")
        impatient.until(lambda status: status["connections"]["http2"] == 1)
        impatient.until(lambda status: status["connections"]["http2"] == 0)

    grows_by_less_than(impatient, 24 * MEBIBYTE, refuse_to_read)


def test_a_slow_reader_of_http_2_gets_everything(impatient: Server) -> None:
    client = impatient.connect2()
    stream = client.ask("GET", "/bytes/300000")
    watch, got = Stopwatch(), 0
    while piece := client.piece(stream):
        got += len(piece)
        until("a moment", lambda due=got / 150_000: watch.seconds > due)  # slower in total than the server's time limit
    assert got == 300_000


def test_a_slow_reader_gets_everything(impatient: Server) -> None:
    client = impatient.connect(receive_buffer=4096).ask("GET", "/stream/40/65536")
    opened = client.opening()
    watch, got = Stopwatch(), 0
    for number, piece in enumerate(client.pieces(opened)):
        got += len(piece)
        until("a moment", lambda due=number * 0.03: watch.seconds > due)  # slower in total than the server's time limit
    assert got == 40 * 65_536


@pytest.mark.promise(8)
@pytest.mark.parametrize("target", ["/constant", "/hola/x", "/bytes/1000", "/standing-timer"])
def test_pipelined_requests_whose_answers_are_never_read_grow_nothing(server: Server, target: str) -> None:
    def flood() -> None:
        client = server.connect(receive_buffer=4096)
        client.socket.settimeout(1)
        wave = request("GET", target) * 2_000
        sent = iter(lambda: client.send(wave), None)
        with pytest.raises(TimeoutError):
            next(number for number, _ in enumerate(sent) if number == 400)
        assert server.get("/hola/x").status == 200

    grows_by_less_than(server, 8 * MEBIBYTE, flood)


def test_a_client_of_events_that_never_reads_is_cut_off(server: Server) -> None:
    with Client(server.address, receive_buffer=4096) as client:
        client.ask("GET", "/events/piling-up")
        server.until(lambda status: status["waits"].get("stream", {}).get("count") == 1)

        def pile_up() -> None:
            watch = Stopwatch()
            while server.status()["lives"]["parked"] == 1:
                assert watch.seconds < SECONDS
                server.publish("piling-up", b"x" * 100_000)

        grows_by_less_than(server, 24 * MEBIBYTE, pile_up)


# Connections


def test_an_idle_connection_is_closed_when_its_time_is_over(impatient: Server) -> None:
    never_used, used = impatient.connect(), impatient.connect()
    used.get("/hola/x")
    assert never_used.ends()
    assert used.ends()


def test_an_idle_connection_of_http_2_ends_with_goaway_though_it_answers_pings(impatient: Server) -> None:
    never_used, used = impatient.connect2(), impatient.connect2()
    assert used.get("/hola/x").text == "Hola x"
    for client in (never_used, used):
        assert client.until_goaway().error_code == 0
        client.until_closed()


def test_an_idle_connection_of_http_2_that_ignores_its_goaway_is_closed(impatient: Server) -> None:
    assert impatient.connect2().ends()


def test_a_parked_request_of_http_2_outlives_the_time_of_idle_connections(impatient: Server) -> None:
    client = impatient.connect2()
    parked = client.ask("GET", "/next/patient-2")
    impatient.until_parked(1)
    assert impatient.connect().ends()
    assert impatient.connect().ends()
    for _ in range(2):
        client.receive()  # PINGs
    impatient.publish("patient-2", b"here")
    assert client.answer(parked).body == b"here"


def test_a_parked_request_outlives_the_time_of_idle_connections(impatient: Server) -> None:
    client = impatient.connect().ask("GET", "/next/patient")
    impatient.until_parked(1)
    idle = impatient.connect()
    assert idle.ends()
    assert impatient.connect().ends()
    assert impatient.status()["lives"]["parked"] == 1
    impatient.publish("patient", b"here")
    assert client.answer().body == b"here"


@pytest.mark.promise(8)
def test_more_connections_than_the_limit_wait_until_one_ends(serve: Serve) -> None:
    server = serve("basic", connections_limit=5)
    places = [server.connect() for _ in range(5)]
    assert [client.get("/hola/x").status for client in places] == [200] * 5
    waits = server.connect().ask("GET", "/hola/late")
    assert not waits.is_readable(0.3)
    assert server.status()["connections"]["http1"] == 5
    places[0].close()
    assert waits.answer().text == "Hola late"


@pytest.mark.promise(8)
def test_what_only_waits_costs_next_to_nothing(serve: Serve) -> None:
    """The benchmark measures it exactly; this checks the order of magnitude: 256 bytes and 1 KB are promised."""
    server = serve("basic")
    server.waiting("/next/cost", 500)
    server.until_parked(500)
    for target, bytes_max in ((None, 1 << 10), ("/next/cost", 3 << 10), ("/after/600", 3 << 10)):
        before = server.resident_bytes
        for _ in range(3_000):
            client = server.connect()
            if target is not None:
                client.ask("GET", target)
        server.until(lambda status: status["connections"]["http1"] == 3_500)
        server.until_parked(500 if target is None else 3_500)
        each = (server.resident_bytes - before) / 3_000
        assert each < bytes_max, f"{target}: {each:.0f} bytes"
        server.leave(3_000)
        server.until_parked(500)


@pytest.mark.promise(8)
def test_an_answer_that_waits_with_its_request_takes_little_more_than_its_bytes(serve: Serve) -> None:
    """The benchmark promises 400 bytes for a request and an answer of 15 bytes; in four blocks, it was 510."""
    server = serve("basic", workers=1)
    before, warm_up, count = 0, 500, 4_500
    for parked in range(0, count, 50):
        if parked == warm_up:
            before = server.resident_bytes
        # Requests that queue meanwhile would leave holes in the heap.
        for at in range(50):
            server.connect().ask("GET", f"/after/{600 + parked + at}")
        server.until_parked(parked + 50)
    each = (server.resident_bytes - before) / (count - warm_up)
    assert each < 420, f"{each:.0f} bytes"


@pytest.mark.promise(8)
def test_a_full_lot_is_503_with_retry_after(serve: Serve) -> None:
    server = serve("basic", parked_limit=3)
    parked = server.waiting("/next/full", 3)
    server.until_parked(3)
    for target in ("/next/full", "/after/1", "/events/full", "/standing-timer", "/next-then/full"):
        refused = server.get(target)
        assert (refused.status, int(refused["retry-after"]) >= 1) == (503, True), target
    server.publish("full", b"go")
    assert {client.answer().body for client in parked} == {b"go"}
    server.still_serves()


def test_without_descriptors_accepting_pauses_and_goes_on(serve: Serve) -> None:
    server = serve("basic")
    kept = server.connect()
    assert kept.get("/hola/x").status == 200
    used = processes.descriptors(server.pid)
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used + 3, 20_000))
    clients = [server.connect().ask("GET", "/hola/crowd") for _ in range(20)]
    server.until_logged("descriptor")
    cpu, watch = processes.cpu_seconds(server.pid), Stopwatch()
    until("a second", lambda: watch.seconds > 1)
    assert processes.cpu_seconds(server.pid) - cpu < 0.2, "it turns round and round"
    assert kept.get("/hola/x").status == 200, "who is in is served"
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
    statuses = [client.answer().status for client in clients]
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    server.cleared()
