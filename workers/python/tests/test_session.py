"""The session against the protocol's conversations, and against itself where those do not lead."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec
import pytest

import vectors
from parkade._limits import BRANCH_FIRST, INLINE_MAX, SOCKET_MESSAGE_OVERHEAD, WINDOW
from parkade._session.events import Called, Continued, Ended, Event, Opened, Pinged, Reply, Resumed
from parkade._session.session import Session
from parkade._wire import frames as f
from parkade._wire import payloads as p
from parkade._wire.codec import FROM_WORKER, read
from parkade._wire.ready import Application

EVERY_ROUTE = (None, *range(10))
WAYS = {"bodies whole": (), "bodies in pieces": EVERY_ROUTE}
"""The routes whose bodies are read as they arrive. Without any, the worker lacks one optional part."""

CONVERSATIONS = [
    pytest.param(vector, opens_early, id=f"{way}-{name}")
    for way, opens_early in WAYS.items()
    for name, vector in vectors.sessions()
    if "by worker" not in vector["ends"] and (opens_early or "incremental_bodies" not in vector["needs"])
]


@pytest.mark.parametrize(("vector", "opens_early"), CONVERSATIONS)
@pytest.mark.parametrize("size", [None, 1], ids=["whole", "a byte at a time"])
def test_the_session_follows_the_conversation(
    vector: dict[str, Any], opens_early: Container[int | None], size: int | None
) -> None:
    session = Session(opens_early)
    events: list[Event] = []
    window = 0
    for step in vector["steps"]:
        data = vectors.unhex(step["hex"])
        if step["from"] == "core":
            assert not any(isinstance(event, Ended) for event in events), "it ended too early"
            events += fed(session, data, size)
        else:
            window += granted(data)
            play(session, data)
    ended = [event.code for event in events if isinstance(event, Ended)]
    more = granted(b"".join(event.data for event in events if isinstance(event, Reply))) - window
    if ": window:" in vector["ends"] and more > 0:
        assert ended == [], "it has granted more than the worker of the conversation: nothing is beyond its window"
    else:
        assert ended == expected_end(vector)


def granted(data: bytes) -> int:
    """Bytes that the worker grants in these frames."""
    frames = f.Decoder().feed(data)
    return sum(msgspec.msgpack.decode(payload)[0] for kind, _, _, payload in frames if kind == f.WINDOW)


def expected_end(vector: dict[str, Any]) -> list[str]:
    """What the worker's end is told: the violation, or what the GOODBYE says. It says that itself if it is about the
    version.
    """
    if vector["ends"].startswith("violation by core"):
        return ["violation"]
    said = [
        (step["from"], msgspec.msgpack.decode(payload)[0])
        for step in vector["steps"]
        for kind, _, _, payload in f.Decoder().feed(vectors.unhex(step["hex"]))
        if kind == f.GOODBYE
    ]
    return [code for end, code in said if vector["ends"] == "closed" and (end == "core" or code == "version")]


def fed(session: Session, data: bytes, size: int | None) -> list[Event]:
    step = size or len(data)
    if len(data) > 20_000:
        step = 977 if size else step
    return [event for at in range(0, len(data), step) for event in session.receive(data[at : at + step])]


OF_JOBS = ("retry", "discard", "unknown")  # reasons of an ERROR


def play(session: Session, data: bytes) -> None:
    """Has the session write what the worker of a conversation wrote."""
    for kind, flags, stream, payload in f.Decoder().feed(data):
        read(FROM_WORKER, kind, stream, payload)
        match kind:
            case f.READY:
                ready = msgspec.msgpack.decode(payload)
                session.ready(ready[0], Application(interface="native", concurrent=ready[1].get("concurrent", False)))
            case f.RESPONSE if flags & f.MORE and msgspec.msgpack.decode(payload)[0] == p.SWITCHING_PROTOCOLS:
                assert session.accept(stream, payload) == f.frame(kind, stream, payload, flags)
            case f.RESPONSE if flags & f.MORE:
                session.begin(stream, payload)
            case f.MESSAGE:
                wanted = session.held(stream) and stream not in session.cancelled
                written = f.frame(kind, stream, payload, flags) if wanted else b""
                assert (session.sockets.piece(stream, payload, flags) if wanted else b"") == written
            case f.CLOSE if session.held(stream):
                assert_written(session.close_socket(stream, *msgspec.msgpack.decode(payload)), kind, stream)
            case f.RESPONSE if session.held(stream):
                assert_written(session.respond(stream, payload), kind, stream)
            case f.DATA if session.held(stream):
                session.data(stream, payload)
                if not flags & f.MORE:
                    session.finish(stream)
            case f.EARLY_HINTS:
                session.early_hints(stream, msgspec.msgpack.decode(payload)[0])
            case f.TRAILERS if session.held(stream):
                session.finish(stream, msgspec.msgpack.decode(payload)[0])
            case f.PARK if stream >= BRANCH_FIRST:
                parent = msgspec.msgpack.decode(payload)[1][1]
                if session.held(parent) or session.awaiting(parent):
                    session._branches._last = stream - 1  # this worker would take another free number
                    park = payload[: -len(msgspec.msgpack.encode(["branch", parent]))]
                    await_it = park + msgspec.msgpack.encode(["await"])
                    assert session.branch(parent, await_it) == (stream, f.frame(kind, stream, payload))
            case f.PARK if session.held(stream):
                awaiting = msgspec.msgpack.decode(payload)[1] == ["await"] and session.may_await(stream)
                (session.park_awaiting if awaiting else session.park)(stream, payload)
            case f.RESULT if session.held(stream):
                assert_written(session.end(stream, kind, payload), kind, stream)
            case f.WINDOW if stream in session.sockets:
                (granted,) = msgspec.msgpack.decode(payload)
                size = granted - SOCKET_MESSAGE_OVERHEAD
                assert session.sockets.consumed(stream, size) == f.frame(kind, stream, payload)
            case f.WINDOW:
                while session.bodies.read(stream)[0]:  # one that opens early grants what is read
                    pass
            case f.ENQUEUE:
                place = stream if session.takes_writes(stream) else 0
                assert session.enqueue(stream, payload) == f.frame(kind, place, payload)
            case f.PROGRESS:
                assert session.progress(stream, payload) == f.frame(kind, stream, payload)
            case f.ERROR if session.held(stream) and msgspec.msgpack.decode(payload)[0] in OF_JOBS:
                assert_written(session.end(stream, kind, payload), kind, stream)
            case f.ERROR if session.held(stream):
                session.error(stream, *msgspec.msgpack.decode(payload))
            case _:
                pass


def assert_written(data: bytes, kind: int, stream: int) -> None:
    """A cancelled stream is closed by an ERROR instead."""
    assert [(kind, stream) for kind, _, stream, _ in f.Decoder().feed(data)] in ([(kind, stream)], [(f.ERROR, stream)])


# What the conversations leave open


HEAD = msgspec.msgpack.encode([200, None, None])


def ready(concurrent: bool = False) -> Session:
    session = Session()
    session.receive(f.frame(f.HELLO, 0, msgspec.msgpack.encode([1, 1, 0, {}])))
    session.ready(8, Application(interface="native", concurrent=concurrent))
    return session


def request(stream: int, more: bool = False, route: int | None = None) -> bytes:
    body = None if more else b""
    payload = msgspec.msgpack.encode([route, [], None, body, ["GET", "/", "", [], "", "http", "1.1"]])
    return f.frame(f.REQUEST, stream, payload, f.MORE if more else 0)


def data(stream: int, chunk: bytes, more: bool = True) -> bytes:
    return f.frame(f.DATA, stream, chunk, f.MORE if more else 0)


def cancel(stream: int) -> bytes:
    return f.frame(f.CANCEL, stream, msgspec.msgpack.encode(["client_left"]))


def window(stream: int, grant: int) -> bytes:
    return f.frame(f.WINDOW, stream, msgspec.msgpack.encode([grant]))


def told(events: list[Event]) -> list[str]:
    return [f"{type(event).__name__} {getattr(event, 'stream', '')}".strip() for event in events]


@pytest.mark.parametrize(
    ("concurrent", "received", "expected"),
    [
        (False, [request(1, True), request(2), data(1, b"a", False)], ["Opened 1", "Opened 2"]),
        (True, [request(1, True), request(2), data(1, b"a", False)], ["Opened 2", "Opened 1"]),
        (False, [request(1, True), request(2, True), request(3), data(2, b"", False)], []),
        (
            False,
            [request(1, True), request(2, True), request(3), data(2, b"", False), data(1, b"", False)],
            ["Opened 1", "Opened 2", "Opened 3"],
        ),
        (False, [request(1, True), request(2), cancel(1)], ["Reply", "Opened 2"]),
    ],
    ids=["in order", "as they come when concurrent", "two bodies, the later first", "then the earlier", "never"],
)
def test_what_stands_behind_a_body_waits_for_it(concurrent: bool, received: list[bytes], expected: list[str]) -> None:
    assert told(ready(concurrent).receive(b"".join(received))) == expected


def test_a_body_is_put_together_and_its_window_granted_again() -> None:
    session, chunk = ready(), b"x" * INLINE_MAX
    events = session.receive(request(1, True))
    for _ in range(10):
        events += session.receive(data(1, chunk))
    events += session.receive(data(1, b"end", False))
    granted = sum(
        msgspec.msgpack.decode(payload)[0]
        for event in events
        if isinstance(event, Reply)
        for _, _, _, payload in f.Decoder().feed(event.data)
    )
    (opened,) = [event for event in events if isinstance(event, Opened)]
    assert opened.request.body == chunk * 10 + b"end"
    assert 10 * INLINE_MAX - WINDOW <= granted <= 10 * INLINE_MAX


def early(concurrent: bool = False) -> Session:
    session = ready(concurrent)
    session.opens_early = (None,)
    return session


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_body_is_read_as_it_arrives_and_its_window_granted_as_it_is_read(concurrent: bool) -> None:
    session, chunk = early(concurrent), b"x" * INLINE_MAX
    assert told(session.receive(request(1, True))) == ["OpenedEarly 1"]
    assert session.bodies.read(1) == (None, window(1, 0)), "the core hears that it is read, and more has to arrive"
    assert session.bodies.read(1) == (None, b"")
    most = WINDOW // INLINE_MAX
    assert told(session.receive(data(1, chunk) * most)) == ["BodyArrived 1"] * most
    halves = [(chunk, b""), (chunk, window(1, WINDOW // 2))] * 2
    assert [session.bodies.read(1) for _ in range(most)] == halves, "each large piece as it is, without a copy"
    session.receive(data(1, b"the ") + data(1, b"end", False))
    assert [session.bodies.read(1) for _ in range(3)] == [(b"the end", b""), (b"", b""), (b"", b"")]
    session.respond(1, HEAD)
    assert session.bodies.read(1) == (b"", b"")
    assert session.bodies.is_empty


def test_a_request_of_another_route_has_its_body_whole() -> None:
    session = early()
    assert told(session.receive(request(1, True, route=0) + data(1, b"arguments of "))) == []
    (event,) = session.receive(data(1, b"a job", False))
    assert isinstance(event, Opened)
    assert event.request.body == b"arguments of a job"


def test_what_is_not_read_is_not_granted_again() -> None:
    session = early()
    session.receive(request(1, True) + data(1, b"x" * INLINE_MAX) * (WINDOW // INLINE_MAX))
    assert told(session.receive(data(1, b"x"))) == ["Reply", "Ended"]


def test_a_request_that_is_opened_early_holds_nothing_up() -> None:
    session = early()
    assert told(session.receive(request(1, True) + request(2))) == ["OpenedEarly 1", "Opened 2"]


@pytest.mark.parametrize("how", ["respond", "park", "error", "finish"])
def test_a_body_that_crosses_the_closing_frame_is_dropped(how: str) -> None:
    session = early()
    session.receive(request(1, True) + data(1, b"a"))
    match how:
        case "respond":
            session.respond(1, HEAD)
        case "park":
            session.park(1, msgspec.msgpack.encode([["timer", 1], ["answer", None]]))
        case "error":
            session.error(1, "application")
        case "finish":
            session.begin(1, HEAD)
            session.finish(1)
    assert session.receive(data(1, b"b") + data(1, b"", False)) == []
    assert session.bodies.is_empty


def test_a_cancelled_body_never_ends() -> None:
    session = early()
    assert told(session.receive(request(1, True) + data(1, b"a") + cancel(1)))[-1] == "Cancelled 1"
    assert session.bodies.read(1) == (b"a", window(1, 0))
    assert session.bodies.read(1) == (None, b"")
    session.error(1, "cancelled")
    assert session.bodies.is_empty


def test_an_answer_is_kept_back_at_its_window_and_goes_on_with_it() -> None:
    session = ready()
    session.receive(request(1))
    session.begin(1, HEAD)
    body = bytes(range(256)) * 2_000  # 512,000 bytes
    sent = b"".join(session.data(1, body))
    assert session.blocked(1)
    events: list[Event] = []
    while session.blocked(1):
        events += session.receive(window(1, 100_000))
    assert told(events)[-1] == "Writable 1"
    sent += b"".join(b"".join(event.parts) for event in events if isinstance(event, Continued))
    sent += session.finish(1)
    frames = list(f.Decoder().feed(sent))
    assert b"".join(payload for _, _, _, payload in frames) == body
    assert [flags for _, flags, _, _ in frames] == [f.MORE] * (len(frames) - 1) + [0]
    assert max(len(payload) for _, _, _, payload in frames) == INLINE_MAX


def test_a_cancelled_stream_is_closed_once_by_an_error() -> None:
    session = ready()
    events = session.receive(request(1) + cancel(1))
    assert told(events) == ["Opened 1", "Cancelled 1"]
    written = session.respond(1, HEAD)
    assert [(f.NAMES[kind], stream) for kind, _, stream, _ in f.Decoder().feed(written)] == [("ERROR", 1)]
    assert not session.held(1)
    assert session.receive(cancel(1)) == []


def test_a_cancelled_answer_takes_no_more_data() -> None:
    session = ready()
    session.receive(request(1))
    session.begin(1, HEAD)
    session.data(1, b"x" * (WINDOW + 1))
    assert told(session.receive(cancel(1))) == ["Cancelled 1"]
    assert not session.blocked(1)
    assert session.data(1, b"more") == []
    assert session.finish(1)[4] == f.ERROR


def test_events_before_a_violation_are_told() -> None:
    assert told(ready().receive(request(1) + request(1))) == ["Opened 1", "Reply", "Ended"]


def test_nothing_is_read_behind_the_end() -> None:
    session = ready()
    goodbye = f.frame(f.GOODBYE, 0, msgspec.msgpack.encode(["stopping", ""]))
    assert told(session.receive(goodbye + request(1))) == ["Ended"]
    assert session.receive(request(2)) == []


def test_one_resume_wakes_many_or_opens_many() -> None:
    session = ready(concurrent=True)
    session.receive(request(1) + request(2))
    for stream in (1, 2):
        session.park_awaiting(stream, msgspec.msgpack.encode([["timer", 1], ["await"]]))
    resume = f.frame(f.RESUME, 0, msgspec.msgpack.encode([["elapsed"], [2, 1]]))
    call = f.frame(f.RESUME, 0, msgspec.msgpack.encode([["elapsed"], [3, 4], "m:f", [b"a", b"b"]]))
    events = session.receive(resume + call)
    assert [event.streams for event in events if isinstance(event, Resumed)] == [[2, 1]]
    assert [(event.stream, event.state) for event in events if isinstance(event, Called)] == [(3, b"a"), (4, b"b")]


def rows(stream: int, *call: Any, body: bytes | None = None) -> bytes:
    """RESUME with rows, which follow unless `body` is given."""
    payload = [["rows", [["n", "int4"]], "SELECT", 2, body], [stream], *call]
    return f.frame(f.RESUME, 0, msgspec.msgpack.encode(payload), f.MORE if body is None else 0)


def called(stream: int) -> bytes:
    return rows(stream, "m:f", [b"state"])


def awaiting(stream: int) -> Session:
    """A concurrent session whose stream awaits a query."""
    session = ready(concurrent=True)
    session.receive(request(stream))
    session.park_awaiting(stream, msgspec.msgpack.encode([["query", "select 1", [], {}], ["await"]]))
    return session


@pytest.mark.parametrize(
    ("concurrent", "received", "expected"),
    [
        (False, [called(1), request(2), data(1, b"a", False)], ["Called 1", "Opened 2"]),
        (True, [called(1), request(2), data(1, b"a", False)], ["Opened 2", "Called 1"]),
        (False, [request(1, True), called(2), data(2, b"", False)], []),
        (False, [request(1, True), called(2), data(2, b"", False), data(1, b"", False)], ["Opened 1", "Called 2"]),
        (False, [called(1), request(2), cancel(1), data(1, b"")], ["Reply", "Opened 2"]),
    ],
    ids=["in order", "as they come when concurrent", "behind a body", "then it comes", "never"],
)
def test_what_stands_behind_rows_waits_for_them(concurrent: bool, received: list[bytes], expected: list[str]) -> None:
    assert told(ready(concurrent).receive(b"".join(received))) == expected


def test_rows_that_follow_are_put_together_and_their_window_granted_again() -> None:
    session, chunk = ready(), b"x" * INLINE_MAX
    events = session.receive(called(1))
    for _ in range(10):
        events += session.receive(data(1, chunk))
    events += session.receive(data(1, b"end", False))
    (call,) = [event for event in events if isinstance(event, Called)]
    assert call.outcome == p.Rows([("n", "int4")], "SELECT", 2, chunk * 10 + b"end")
    assert (call.function, call.state, session.held(1)) == ("m:f", b"state", True)
    assert len([event for event in events if isinstance(event, Reply)]) == 5


def test_a_stream_awaits_until_its_rows_are_complete() -> None:
    session = awaiting(1)
    assert session.receive(rows(1)) == []
    assert (session.awaiting(1), session.held(1), session.may_await(1)) == (True, False, False)
    assert session.unpark(1) == b"", "its RESUME has come"
    assert told(session.receive(request(2) + data(1, b"[1,"))) == ["Opened 2"]
    (resumed,) = session.receive(data(1, b"2]", False))
    assert resumed == Resumed([1], p.Rows([("n", "int4")], "SELECT", 2, b"[1,2]"))
    assert (session.awaiting(1), session.held(1)) == (False, True)


def test_a_stream_that_is_cancelled_while_its_rows_come_is_closed_and_told() -> None:
    session = awaiting(1)
    reply, cancelled = session.receive(rows(1) + data(1, b"[1") + cancel(1))
    assert isinstance(reply, Reply)
    assert [(kind, stream) for kind, _, stream, _ in f.Decoder().feed(reply.data)] == [(f.ERROR, 1)]
    assert told([cancelled]) == ["Cancelled 1"]
    assert (session.awaiting(1), session.held(1)) == (False, False)
    assert session.receive(data(1, b",2]", False)) == []


def test_what_is_enqueued_goes_on_the_stream_while_that_is_held_and_wanted_else_on_the_link() -> None:
    session = ready()
    session.receive(request(1) + request(2) + cancel(2))
    assert session.enqueue(1, b"a") == f.frame(f.ENQUEUE, 1, b"a")
    assert session.enqueue(2, b"a") == f.frame(f.ENQUEUE, 0, b"a"), "nobody waits for the answer"
    session.respond(1, HEAD)
    assert session.enqueue(1, b"a") == session.enqueue(0, b"a") == f.frame(f.ENQUEUE, 0, b"a")


def test_what_is_enqueued_while_its_request_is_parked_goes_on_the_stream_until_that_is_cancelled() -> None:
    session = awaiting(1)
    assert session.enqueue(1, b"a") == f.frame(f.ENQUEUE, 1, b"a")
    session.receive(rows(1))
    assert session.enqueue(1, b"a") == f.frame(f.ENQUEUE, 1, b"a"), "its rows are arriving"
    session.receive(cancel(1))
    assert session.enqueue(1, b"a") == f.frame(f.ENQUEUE, 0, b"a")


def test_how_far_a_job_is_told_only_while_it_is_held() -> None:
    session = ready(concurrent=True)
    run = f.frame(f.RUN, 1, msgspec.msgpack.encode([b"i" * 16, "job", 1, None, b""]))
    assert told(session.receive(run)) == ["Given 1"]
    assert session.progress(1, b"p") == f.frame(f.PROGRESS, 1, b"p")
    session.park_awaiting(1, msgspec.msgpack.encode([["timer", 1], ["await"]]))
    assert session.progress(1, b"p") == b""
    session.receive(f.frame(f.RESUME, 0, msgspec.msgpack.encode([["elapsed"], [1]])))
    session.end(1, f.RESULT, b"r")
    assert session.progress(1, b"p") == b""


def test_requests_and_jobs_are_told_in_the_order_in_which_they_came() -> None:
    run = f.frame(f.RUN, 2, msgspec.msgpack.encode([b"i" * 16, "job", 1, None, b""]))
    assert told(ready().receive(request(1) + run + request(3))) == ["Opened 1", "Given 2", "Opened 3"]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        ([b"i" * 16, "job", 0, None, b""], "RUN: Expected `int` >= 1"),
        ([b"i" * 16, "a\n", 1, None, b""], "RUN: a job's name must not contain control characters"),
        ([b"i" * 15, "job", 1, None, b""], "RUN: Expected `bytes` of length >= 16"),
    ],
)
def test_a_run_that_is_broken_is_a_violation(run: list[Any], reason: str) -> None:
    *_, ended = ready().receive(request(1) + f.frame(f.RUN, 2, msgspec.msgpack.encode(run)))
    assert isinstance(ended, Ended)
    assert reason in ended.text


def test_a_job_behind_a_body_waits_for_it() -> None:
    run = f.frame(f.RUN, 2, msgspec.msgpack.encode([b"i" * 16, "job", 1, None, b""]))
    assert told(ready().receive(request(1, True) + run + data(1, b"", False))) == ["Opened 1", "Given 2"]


def test_a_ping_is_told_and_answered_by_whoever_runs_the_code() -> None:
    (event,) = ready().receive(f.frame(f.PING, 0, msgspec.msgpack.encode([7])))
    assert event == Pinged(7)


def test_a_traceback_that_is_too_long_keeps_its_end() -> None:
    ((_, _, _, payload),) = f.Decoder().feed(Session().failed("x" * 100_000 + "ValueError: ü"))
    (text,) = msgspec.msgpack.decode(payload)
    assert text.endswith("ValueError: ü")
    assert len(text.encode()) == 65_536
