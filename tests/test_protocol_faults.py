"""Workers that violate the protocol harm only themselves. The test plays the worker (`harness/wire.py`)."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Client, Closed
from .harness.server import ROOT, Server
from .harness.until import Stopwatch
from .harness.wire import (
    CANCEL,
    CREDIT,
    DATA,
    DRAIN,
    ERROR,
    FAILED,
    GOODBYE,
    HELLO,
    MORE,
    PARK,
    PING,
    PONG,
    PUBLISH,
    READY,
    REQUEST,
    RESPONSE,
    RESUME,
    WINDOW,
    Worker,
    Workers,
    frame,
    hello,
    ready,
    response,
)

MEBIBYTE = 1 << 20
HEAD = ["GET", "/", "", [], "", "http", "1.1"]


@pytest.fixture
def workers() -> Iterator[Workers]:
    fakes = Workers()
    yield fakes
    fakes.close()


@pytest.fixture
def serve_fakes(serve: Serve, workers: Workers) -> Callable[..., Server]:
    """A server whose workers the test plays; none has been accepted yet."""

    def start(**settings: Any) -> Server:
        usual = {"python": workers.python, "environment": workers.environment, "is_ready": False}
        return serve("fake:app", **(usual | settings))

    return start


@pytest.fixture
def server(serve_fakes: Callable[..., Server]) -> Server:
    return serve_fakes(workers=1)


def good(worker: Worker) -> Worker:
    """Plays a good worker from now on, in the background."""
    worker.serve()
    return worker


def replaced(server: Server, workers: Workers) -> None:
    """The next worker is good, and the server works."""
    good(workers.next().start())
    server.ready()
    assert server.get("/hola/x").body == b"Hola"
    server.until_zero()


# Violations of a worker while it runs a request. `s` is that request's stream.

VIOLATIONS: dict[str, Callable[[int], bytes]] = {
    "rubbish": lambda s: b"GET / HTTP/1.1\r\n\r\n" * 8,
    "a length over the maximum": lambda s: frame(RESPONSE, s, b"", length=1_048_577),
    "the greatest length": lambda s: frame(RESPONSE, s, b"", length=0xFFFFFFFF),
    "no MessagePack": lambda s: frame(RESPONSE, s, b"\xc1"),
    "trailing bytes": lambda s: frame(RESPONSE, s, b"\x93\xcc\xc8\xc0\xc0\x00"),
    "a map for an array": lambda s: frame(RESPONSE, s, {"status": 200}),
    "an array that is too short": lambda s: frame(RESPONSE, s, [200]),
    "a status that is text": lambda s: frame(RESPONSE, s, ["200", None, b""]),
    "a status of 99": lambda s: frame(RESPONSE, s, [99, None, b""]),
    "headers of odd length": lambda s: frame(RESPONSE, s, [200, ["x"], b""]),
    "headers that are numbers": lambda s: frame(RESPONSE, s, [200, [1, 2], b""]),
    "an inline body over the maximum": lambda s: frame(RESPONSE, s, [200, None, b"x" * 65_537]),
    "text that is no UTF-8": lambda s: frame(ERROR, s, b"\x92\xabapplication\xa1\xff"),
    "an array that says it is endless": lambda s: frame(RESPONSE, s, b"\xdd\xff\xff\xff\xff"),
    "deep nesting": lambda s: frame(RESPONSE, s, b"\x91" * 100_000),
    "a stream that was never opened": lambda s: response(s + 1000),
    "the greatest stream": lambda s: response(0xFFFFFFFF),
    "an answer on the link itself": lambda s: response(0),
    "a second answer": lambda s: response(s) + response(s),
    "a park behind the answer": lambda s: response(s) + frame(PARK, s, [["timer", 1], ["answer", [200, None, None]]]),
    "a second head": lambda s: response(s, flags=MORE) + response(s),
    "data without a head": lambda s: frame(DATA, s, b"x"),
    "data behind the last": lambda s: response(s, flags=MORE) + frame(DATA, s, b"x") + frame(DATA, s, b"y"),
    "data behind an answer without more": lambda s: response(s) + frame(DATA, s, b"x"),
    "data over its maximum": lambda s: response(s, flags=MORE) + frame(DATA, s, b"x" * 65_537, MORE),
    "await by a worker that is not concurrent": lambda s: frame(PARK, s, [["timer", 1], ["await"]]),
    "an unknown then": lambda s: frame(PARK, s, [["timer", 1], ["maybe"]]),
    "a stream that calls": lambda s: frame(PARK, s, [["stream", "c", {}], ["call", "f", b""]]),
    "a state over its maximum": lambda s: frame(PARK, s, [["timer", 1], ["call", "f", b"x" * 65_537]]),
    "an unknown reason": lambda s: frame(ERROR, s, ["whim", ""]),
    "a second hello": lambda s: hello(),
    "a second ready": lambda s: ready(),
    "failed behind ready": lambda s: frame(FAILED, 0, ["late"]),
    "a frame of the core's": lambda s: frame(REQUEST, s, [None, [], None, b"", HEAD]),
    "a resume": lambda s: frame(RESUME, 0, [["elapsed"], [s]]),
    "a drain": lambda s: frame(DRAIN, 0, [1]),
    "a ping": lambda s: frame(PING, 0, [1]),
    "a cancel": lambda s: frame(CANCEL, s, ["deadline"]),
    "a credit out of range": lambda s: frame(CREDIT, 0, [70_000]),
    "credit beyond the maximum": lambda s: frame(CREDIT, 0, [65_536]) * 2,
    "credit on a stream": lambda s: frame(CREDIT, s, [1]),
    "a message over its maximum": lambda s: frame(PUBLISH, 0, ["c", "text/plain", b"x" * 524_289]),
    "a message for a channel without a name": lambda s: frame(PUBLISH, 0, ["", "text/plain", b"x"]),
    "a window of a stream that was never opened": lambda s: frame(WINDOW, s + 1000, [1]),
    "a negative window": lambda s: frame(WINDOW, s, [-1]),
}


@pytest.mark.promise(6)
@pytest.mark.parametrize("violation", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_a_violation_ends_the_worker_and_nobody_else(
    serve: Serve, serve_fakes: Callable[..., Server], workers: Workers, violation: Callable[[int], bytes]
) -> None:
    server = serve_fakes(workers=2)
    bad, other = workers.next().start(), workers.next().start()
    server.ready(2)
    clients = server.waiting("/hola/x", 2)
    stream, neighbour = bad.request(), other.request()
    bad.send(violation(stream))
    said = bad.until_closed()
    assert not said or said[-1].kind == GOODBYE
    other.send(response(neighbour, b"from the good one"))
    # Responses before the violation was noticed remain valid; those that had begun are aborted.
    outcomes = [outcome(client) for client in clients]
    assert (200, b"from the good one") in outcomes
    outcomes.remove((200, b"from the good one"))
    assert outcomes[0] in [(200, b"Hola"), (200, b"Holax"), (500, None), (502, None), None]
    server.until_logged("a worker violated the protocol")
    server.until(lambda status: bad.pid not in [worker["pid"] for worker in status["workers"]])
    third = workers.next().start()
    server.ready(2)
    last = server.connect().ask("GET", "/hola/x")
    other.serve()
    third.serve()
    assert last.answer().body == b"Hola"
    server.until_zero()


def outcome(client: Client) -> tuple[int, bytes | None] | None:
    """Status and, for a 200, the body; None for a response that was aborted."""
    try:
        answer = client.answer()
    except (Closed, ConnectionError):
        return None
    return (answer.status, answer.body if answer.status == 200 else None)


def test_the_log_shows_the_beginning_of_a_broken_frame_in_hex(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    worker.request()
    worker.send(b"GET / HTTP/1.1\r\n\r\n")
    assert client.answer().status == 502
    server.until_logged(b"GET / HTTP/1.1".hex())


@pytest.mark.promise(6)
def test_half_a_frame_and_then_the_end_is_502(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    worker.send(response(worker.request())[:9])
    worker.close()
    assert client.answer().status == 502
    replaced(server, workers)


@pytest.mark.parametrize("cut", [1, 4, 5, 11, 12, 13, 20])
def test_frames_may_come_in_any_pieces(server: Server, workers: Workers, cut: int) -> None:
    worker = workers.next()
    worker.next(HELLO)
    for piece in cut_up(hello() + ready(), cut):
        worker.send(piece)
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    for piece in cut_up(response(worker.request()), cut):
        worker.send(piece)
    assert client.answer().body == b"Hola"


def cut_up(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


# Before it is ready


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"rubbish" * 10, id="rubbish"),
        pytest.param(ready(), id="ready before hello"),
        pytest.param(hello() + hello(), id="hello twice"),
        pytest.param(hello() + response(1), id="an answer before ready"),
        pytest.param(hello() + frame(CREDIT, 0, [1]), id="credit before ready"),
        pytest.param(hello() + frame(READY, 0, [70_000, {}]), id="too much credit"),
        pytest.param(hello() + frame(READY, 0, [8, []]), id="an application that is no map"),
        pytest.param(frame(HELLO, 5, [1, 1, 0, {}]), id="hello on a stream"),
    ],
)
def test_a_violation_before_ready_ends_a_server_that_never_served(
    server: Server, workers: Workers, said: bytes
) -> None:
    workers.next().send(said)
    assert server.fails() == 1
    assert "violated the protocol" in server.log()


def test_of_a_worker_of_another_version_the_log_says_what_to_do(server: Server, workers: Workers) -> None:
    worker = workers.next()
    worker.next(HELLO)
    worker.send(hello(7, 9))
    assert server.fails() == 1
    assert "7 to 9" in server.log()


def test_a_worker_that_says_failed_ends_a_server_that_never_served(server: Server, workers: Workers) -> None:
    worker = workers.next()
    worker.next(HELLO)
    worker.send(hello(), frame(FAILED, 0, ["the reason of the test"]))
    assert server.fails() == 1
    assert "the reason of the test" in server.log()


def test_routes_that_nobody_can_serve_are_refused(server: Server, workers: Workers) -> None:
    worker = workers.next()
    worker.next(HELLO)
    worker.send(hello(), ready(routes=[{"methods": ["GET"], "path": "no slash", "kind": "sync"}]))
    assert server.fails() == 1
    assert "no slash" in server.log()


def test_unknown_frames_flags_and_elements_are_read_over(server: Server, workers: Workers) -> None:
    worker = workers.next()
    worker.next(HELLO)
    later = frame(0x7F, 0, b"of a later version") + frame(0x7F, 99, b"\xc1", 0xFC)
    worker.send(later, frame(HELLO, 0, [1, 1, 1 << 40, {"new": [1]}, "more"]), later)
    worker.send(
        frame(
            READY,
            0,
            [
                8,
                {
                    "interface": "native",
                    "later": 1,
                    "routes": [{"methods": ["GET"], "path": "/hola/{name}", "kind": "sync", "new": 2}],
                },
                None,
            ],
        )
    )
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(later, frame(RESPONSE, stream, [200, None, b"Hola", "more", 5], 0xFC), later)
    assert client.answer().body == b"Hola"
    server.until_zero()


def test_a_beginning_that_is_longer_than_its_content_length_is_the_applications_fault(
    server: Server, workers: Workers
) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(response(stream, b"12345", headers=["content-length", b"3"], flags=MORE))
    answer = client.answer()
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    assert worker.next(CANCEL).stream == stream
    worker.send(frame(ERROR, stream, ["cancelled", ""]))
    server.until_logged("the application returned a response that cannot be sent: Content-Length does not match")
    server.until_zero()


# Too much, too late, for another


@pytest.mark.promise(1)
def test_a_late_answer_to_a_client_that_left_is_dropped_and_counted(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    client.close()
    assert worker.next(CANCEL).payload == ["client_left"]
    next_client = server.connect().ask("GET", "/hola/next")
    worker.send(response(stream, b"for who left"))
    worker.send(response(worker.request(), b"for who stayed"))
    assert next_client.answer().body == b"for who stayed"
    assert server.until(lambda status: status["counts"]["late_frames"] >= 1)
    server.until_zero()


@pytest.mark.promise(1)
def test_a_streamed_answer_that_goes_on_after_the_cancel_is_dropped(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(response(stream, b"", flags=MORE), frame(DATA, stream, b"x" * 1000, MORE))
    assert client.opening().status == 200
    client.close()
    worker.next(CANCEL)
    worker.send(frame(DATA, stream, b"x" * 1000, MORE), frame(DATA, stream, b""))
    client = server.connect().ask("GET", "/hola/next")
    worker.send(response(worker.request(), b"next"))
    assert client.answer().body == b"next"
    server.until_zero()


def test_a_second_answer_to_a_cancelled_request_ends_the_worker(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    client.close()
    worker.next(CANCEL)
    worker.send(response(stream), response(stream))
    server.until_logged("violated the protocol")
    replaced(server, workers)


@pytest.mark.promise(1)
def test_answers_are_matched_by_stream_never_by_order(server: Server, workers: Workers) -> None:
    worker = workers.next().start(concurrent=True, credit=100)
    server.ready()
    clients = {f"{number}": server.connect().ask("GET", f"/async?{number}") for number in range(20)}
    streams = {}
    for _ in clients:
        asked = worker.next(REQUEST)
        streams[asked.payload[4][2]] = asked.stream
    order = list(streams)
    random.Random(5).shuffle(order)
    for name in order:
        worker.send(response(streams[name], name.encode()))
    assert {name: client.answer().text for name, client in clients.items()} == {name: name for name in clients}


def test_no_more_is_given_than_the_credit_says(server: Server, workers: Workers) -> None:
    worker = workers.next().start(concurrent=True, credit=3)
    server.ready()
    clients = server.waiting("/async", 5)
    streams = [worker.request() for _ in range(3)]
    status = server.until(lambda status: status["lives"]["queued"] == 2)
    assert status["lives"]["running"] == 3
    worker.send(frame(CREDIT, 0, [1]))
    streams.append(worker.request())
    worker.send(frame(CREDIT, 0, [-1]), response(streams[0]))
    assert server.until(lambda status: status["lives"]["running"] == 3)["lives"]["queued"] == 1
    worker.send(response(streams[1]))
    streams.append(worker.request())
    for stream in streams[2:]:
        worker.send(response(stream))
    assert {client.answer().status for client in clients} == {200}


def test_credit_of_zero_queues_everything(server: Server, workers: Workers) -> None:
    worker = workers.next().start(credit=0)
    server.until(lambda status: bool(status["workers"]))
    client = server.connect().ask("GET", "/hola/x")
    server.until(lambda status: status["lives"]["queued"] == 1)
    worker.send(frame(CREDIT, 0, [1]))
    worker.send(response(worker.request()))
    assert client.answer().status == 200


@pytest.mark.promise(8)
def test_a_worker_that_floods_is_bounded_and_others_are_served(
    serve_fakes: Callable[..., Server], workers: Workers
) -> None:
    server = serve_fakes(workers=2)
    flooder = workers.next().start()
    good(workers.next().start())
    server.ready(2)
    over = threading.Event()

    def flood() -> None:
        piece = frame(0x7F, 0, b"x" * 1000) * 100
        try:
            while not over.is_set():
                flooder.send(piece)
        except OSError:
            pass

    thread = threading.Thread(target=flood)
    before = server.resident_bytes
    thread.start()
    with Client(server.address) as client:
        watch, times = Stopwatch(), []
        while watch.seconds < 1.5:
            began = watch.seconds
            assert client.get("/constant").status == 200
            times.append(watch.seconds - began)
    over.set()
    thread.join()
    assert sorted(times)[int(len(times) * 0.99)] < 0.1
    assert server.resident_bytes - before < 16 * MEBIBYTE


@pytest.mark.promise(8)
def test_an_answer_that_nobody_reads_stops_at_the_window(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    before = server.resident_bytes
    client = server.connect(receive_buffer=4096).ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(response(stream, b"", flags=MORE))
    room, sent = 262_144, 0
    watch = Stopwatch()
    while watch.seconds < 1:
        while room >= 65_536:
            worker.send(frame(DATA, stream, b"x" * 65_536, MORE))
            room -= 65_536
            sent += 65_536
        try:
            room += worker.next(WINDOW, seconds=0.3).payload[0]
        except TimeoutError:
            break
    assert sent < 8 * MEBIBYTE, "the client's socket took no more"
    assert server.resident_bytes - before < 2 * MEBIBYTE
    client.close()


@pytest.mark.promise(8)
def test_data_beyond_the_window_ends_the_worker(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect(receive_buffer=4096).ask("GET", "/hola/x")
    stream = worker.request()
    with contextlib.suppress(OSError):  # it may be gone already
        worker.send(response(stream, b"", flags=MORE), frame(DATA, stream, b"x" * 65_536, MORE) * 400)
    server.until_logged("violated the protocol.*window")
    assert outcome(client) is None
    replaced(server, workers)


def test_for_a_worker_that_does_not_read_its_link_nothing_grows(server: Server, workers: Workers) -> None:
    worker = workers.next().start(credit=64)
    server.ready()
    before = server.resident_bytes
    clients = [server.connect().ask("POST", "/hola/x", body=b"x" * MEBIBYTE) for _ in range(20)]
    server.until(lambda status: sum(status["lives"].values()) == 20)
    assert server.resident_bytes - before < 64 * MEBIBYTE
    worker.close()
    good(workers.next().start())
    statuses = [client.answer().status for client in clients]
    assert set(statuses) <= {200, 502}
    server.until_zero()


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("a header name with a space", lambda s: response(s, headers=["x y", b"z"])),
        ("an empty header name", lambda s: response(s, headers=["", b"z"])),
        ("CR LF in a value", lambda s: response(s, headers=["x", b"1\r\ny: 2"])),
        ("LF in a value", lambda s: response(s, headers=["x", "1\ny: 2"])),
        ("NUL in a value", lambda s: response(s, headers=["x", b"1\x002"])),
        ("a colon in a name", lambda s: response(s, headers=["x: 1\r\ny", b"2"])),
        ("a length that does not fit", lambda s: response(s, headers=["Content-Length", b"99"])),
        ("two lengths", lambda s: response(s, headers=["Content-Length", b"4", "Content-Length", b"5"])),
        ("an unknown wait", lambda s: frame(PARK, s, [["moon", 1], ["answer", None]])),
        ("access that nobody asked about", lambda s: frame(PARK, s, [["access", True], ["answer", None]])),
        ("a channel with a line break", lambda s: frame(PARK, s, [["next", "a\nb", {}], ["answer", None]])),
        (
            "a bad answer behind a wait",
            lambda s: frame(PARK, s, [["timer", 0.01], ["answer", [200, ["x\n", b""], b""]]]),
        ),
        ("an error", lambda s: frame(ERROR, s, ["application", "the reason"])),
    ],
)
def test_faults_of_the_application_are_500_and_no_violation(
    server: Server, workers: Workers, what: str, answer: Callable[[int], bytes]
) -> None:
    worker = workers.next().start()
    server.ready()
    with Client(server.address) as client:
        client.ask("GET", "/hola/x")
        worker.send(answer(worker.request()))
        told = client.answer()
        assert (told.status, "y" in told) == (500, False)
        client.ask("GET", "/hola/x")
        worker.send(response(worker.request()))
        assert client.answer().status == 200, "connection and worker go on"
    server.until_zero()


def test_overloaded_is_503_with_retry_after(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    worker.send(frame(ERROR, worker.request(), ["overloaded", "no memory"]))
    answer = client.answer()
    assert (answer.status, int(answer["retry-after"]) >= 1) == (503, True)
    assert "no memory" not in answer.text


def test_an_error_behind_the_head_breaks_the_connection_off(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    client = server.connect().ask("GET", "/hola/x")
    stream = worker.request()
    worker.send(response(stream, b"part", flags=MORE), frame(ERROR, stream, ["application", "in the middle"]))
    opened = client.opening()
    with pytest.raises((AssertionError, ConnectionError)):
        list(client.pieces(opened))


# A worker that ends in the middle


@pytest.mark.promise(6)
def test_what_a_dead_worker_had_not_begun_goes_to_another(serve_fakes: Callable[..., Server], workers: Workers) -> None:
    """A worker that is not concurrent answers in order: streams after an open one are untouched."""
    server = serve_fakes(workers=1)
    first = workers.next().start(credit=8)
    server.ready()
    with Client(server.address) as client:
        for _ in range(300):  # it is quick, so it gets requests ahead
            client.ask("GET", "/hola/x")
            first.send(response(first.request()))
            client.answer()
    clients = server.waiting("/hola/x", 6)
    first.request()
    server.until(lambda status: sum(status["lives"].values()) == 6)
    first.close()
    good(workers.next().start())
    assert sorted(client.answer().status for client in clients) == [200] * 5 + [502]
    server.until_zero()


@pytest.mark.promise(6)
def test_what_awaits_in_a_dead_worker_is_502_and_what_is_parked_for_any_is_not(
    serve_fakes: Callable[..., Server], workers: Workers
) -> None:
    server = serve_fakes(workers=1)
    first = workers.next().start(concurrent=True)
    server.ready()
    clients = server.waiting("/async", 3)
    waits = [["await"], ["answer", None], ["call", "module:function", b"state"]]
    for then in waits:
        stream = first.request()
        wait = ["next", "c", {}]
        first.send(frame(PARK, stream, [wait, then]))
    server.until_parked(3)
    first.close()
    assert sorted(client.status for client in [one_that_ends(clients)]) == [502]
    second = workers.next().start(concurrent=True)
    server.ready()
    server.publish("c", b"message")
    resumed = second.next(RESUME)
    outcome, streams, function, states = resumed.payload[:4]
    assert (outcome[0], outcome[3], function, states) == ("message", b"message", "module:function", [b"state"])
    second.send(response(streams[0], b"resumed"))
    assert sorted(client.answer().body for client in clients if client.socket.fileno() >= 0) == [b"message", b"resumed"]
    server.until_zero()


def one_that_ends(clients: list[Client]) -> Any:
    """The response to the first client that gets one."""
    while True:
        for client in clients:
            if client.is_readable(0.01):
                answer = client.answer()
                client.close()
                return answer


# Messages to many


def test_one_resume_names_all_who_wait(server: Server, workers: Workers) -> None:
    worker = workers.next().start(concurrent=True, credit=500)
    server.ready()
    clients = server.waiting("/async", 200)
    for _ in clients:
        worker.send(frame(PARK, worker.request(), [["next", "many", {}], ["await"]]))
    server.until_parked(200)
    server.publish("many", b"one for all")
    outcome, streams = worker.next(RESUME).payload[:2]
    assert (outcome[3], len(streams)) == (b"one for all", 200)
    worker.send(*(response(stream, b"got it") for stream in streams))
    assert {client.answer().body for client in clients} == {b"got it"}


def test_a_publish_before_an_answer_has_happened_when_the_client_gets_it(server: Server, workers: Workers) -> None:
    worker = workers.next().start()
    server.ready()
    waits = server.connect().ask("GET", "/hola/waits")
    worker.send(frame(PARK, worker.request(), [["next", "order", {}], ["answer", None]]))
    server.until_parked(1)
    says = server.connect().ask("GET", "/hola/says")
    stream = worker.request()
    worker.send(frame(PUBLISH, stream, ["order", "text/plain", b"message"]), response(stream, b"done"))
    assert says.answer().body == b"done"
    assert waits.is_readable(1)
    assert waits.answer().body == b"message"


# The vectors: all frames of a worker that they refuse, the core refuses


def from_hex(text: str) -> bytes:
    """As in `protocol/vectors/README.md`: spaces, and `61*65536` for that byte 65,536 times."""
    words = (word.partition("*") for word in text.split(" "))
    return b"".join(bytes.fromhex(byte) * int(times or 1) for byte, _, times in words)


def refused_vectors() -> list[tuple[str, bytes]]:
    files = sorted((ROOT / "protocol" / "vectors" / "frames").glob("*.json"))
    found = [(f"{file.stem}: {vector['name']}", vector) for file in files for vector in json.loads(file.read_text())]
    return [
        (name, from_hex(vector["hex"])) for name, vector in found if vector["from"] == "worker" and "refused" in vector
    ]


SHARE = 30
"""Workers at the same time: each plays one vector."""


@pytest.mark.parametrize("first", range(0, len(refused_vectors()), SHARE))
def test_every_frame_that_the_vectors_refuse_ends_the_worker(
    serve_fakes: Callable[..., Server], workers: Workers, first: int
) -> None:
    vectors = refused_vectors()[first : first + SHARE]
    server = serve_fakes(workers=len(vectors))
    fakes = [workers.next().start(concurrent=True) for _ in vectors]
    server.ready(len(vectors))
    for (name, data), worker in zip(vectors, fakes, strict=True):
        with contextlib.suppress(OSError):
            worker.send(data)
            worker.until_closed()
        assert server.get("/constant").status == 200, name
    server.until(lambda status: status["counts"]["workers_killed"].get("violation") == len(vectors))


@pytest.mark.parametrize("seed", range(3))
def test_rubbish_of_every_kind_never_harms_the_core(server: Server, workers: Workers, seed: int) -> None:
    chance = random.Random(seed)
    parked_worker = workers.next().start(concurrent=True)
    server.ready()
    parked = server.connect().ask("GET", "/async")
    parked_worker.send(frame(PARK, parked_worker.request(), [["next", "survives", {}], ["answer", None]]))
    server.until_parked(1)
    worker = parked_worker
    for _ in range(4):
        kind = chance.choice([HELLO, READY, RESPONSE, DATA, ERROR, PARK, PUBLISH, CREDIT, PONG, GOODBYE, 0x7F])
        broken = frame(kind, chance.randrange(3), chance.randbytes(chance.randrange(60)), chance.randrange(256))
        worker.send(broken + chance.randbytes(200)).close()
        worker = workers.next().start(concurrent=True)
    good(worker)
    server.ready()
    server.publish("survives", b"yes")
    assert parked.answer().body == b"yes"
    assert server.get("/hola/x").body == b"Hola"
