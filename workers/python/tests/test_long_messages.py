"""Messages of WebSockets that are longer than a frame: in pieces, both ways."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

import parkade._session.sockets as sockets_module
from conftest import Core, StartCore
from parkade._limits import FRAME_MAX, SOCKET_MESSAGE_OVERHEAD, SOCKET_PIECE, WINDOW
from parkade._session.events import Cancelled, Ended, Event, MessageArrived, Reply, Writable
from parkade._session.hello import LONG_MESSAGES, MESSAGES
from parkade._session.session import Session
from parkade._wire import frames as f
from parkade._wire.ready import Application

STREAM = 1
SIZE = 3_000_000


def opened(features: int = MESSAGES | LONG_MESSAGES) -> Session:
    """A session with a WebSocket that was accepted."""
    session = Session()
    session.receive(f.frame(f.HELLO, 0, msgspec.msgpack.encode([1, 1, features, {}])))
    session.ready(8, Application(interface="native", concurrent=True))
    head = ["GET", "/", "", [], "", "ws", "1.1"]
    session.receive(f.frame(f.REQUEST, STREAM, msgspec.msgpack.encode([None, [], None, b"", head])))
    session.accept(STREAM, msgspec.msgpack.encode([101, [], None]))
    return session


def window(size: int) -> bytes:
    return f.frame(f.WINDOW, STREAM, msgspec.msgpack.encode([size]))


def piece(data: bytes, flags: int) -> bytes:
    return f.frame(f.MESSAGE, STREAM, data, flags)


def frames_in(events: list[Event]) -> list[tuple[int, bytes]]:
    """The flags and payloads of what the session itself sends."""
    sent = b"".join(event.data for event in events if isinstance(event, Reply))
    return [(flags, payload) for _, flags, _, payload in f.Decoder().feed(sent)]


# Out


def test_a_long_message_is_sent_in_pieces_as_the_window_allows() -> None:
    session, message = opened(), random.Random(1).randbytes(SIZE)
    sent = [(flags, data) for _, flags, _, data in f.Decoder().feed(session.sockets.message(STREAM, True, message))]
    assert [flags for flags, _ in sent] == [f.TEXT | f.MORE]
    assert session.sockets.is_full(STREAM)
    assert session.sockets.is_sending(STREAM)
    left = WINDOW - len(sent[0][1]) - SOCKET_MESSAGE_OVERHEAD
    while session.sockets.is_sending(STREAM):
        assert frames_in(session.receive(window(-left))) == [], "it needs a window above 0"
        events = session.receive(window(1))
        (told,) = frames_in(events)
        sent.append(told)
        left = 1 - len(told[1]) - SOCKET_MESSAGE_OVERHEAD
    assert b"".join(data for _, data in sent) == message
    assert {flags for flags, _ in sent[1:-1]} == {f.MORE}
    assert sent[-1][0] == 0
    assert [event for event in events if isinstance(event, Writable)] == []
    assert [type(event) for event in session.receive(window(WINDOW))] == [Writable]


def test_what_fits_into_a_frame_is_one_and_what_does_not_is_cut_small() -> None:
    session = opened()
    ((_, flags, _, data),) = f.Decoder().feed(session.sockets.message(STREAM, False, bytes(FRAME_MAX)))
    assert (flags, len(data)) == (0, FRAME_MAX)
    session.receive(window(100 * FRAME_MAX))
    sent = list(f.Decoder().feed(session.sockets.message(STREAM, False, bytes(FRAME_MAX + 1))))
    assert [(flags, len(data)) for _, flags, _, data in sent] == [(f.MORE, SOCKET_PIECE)] * 4 + [(0, 1)]


def test_nothing_else_is_sent_in_the_middle_of_a_message() -> None:
    session = opened()
    session.sockets.message(STREAM, False, bytes(SIZE))
    with pytest.raises(RuntimeError):
        session.sockets.message(STREAM, False, b"next")


@pytest.mark.parametrize("how", ["close", "error", "cancel"])
def test_an_unfinished_message_is_dropped_at_the_end(how: str) -> None:
    session = opened()
    session.sockets.message(STREAM, False, bytes(SIZE))
    match how:
        case "close":
            session.close_socket(STREAM, 1000, "")
        case "error":
            session.error(STREAM, "application")
        case "cancel":
            session.receive(f.frame(f.CANCEL, STREAM, msgspec.msgpack.encode(["client_left"])))
    assert not session.sockets.is_sending(STREAM)
    assert session.receive(window(SIZE)) == []


# In


def test_pieces_are_put_together_and_granted_as_one() -> None:
    session = opened()
    text = "J\u00fcrgen".encode()
    assert session.receive(piece(text[:2], f.TEXT | f.MORE) + piece(b"", f.MORE)) == []
    assert session.receive(piece(text[2:], 0)) == [MessageArrived(STREAM, True, text)]
    long = bytes(SIZE)
    events = session.receive(piece(long[:FRAME_MAX], f.MORE) + piece(long[FRAME_MAX : 2 * FRAME_MAX], f.MORE))
    events += session.receive(piece(long[2 * FRAME_MAX :], 0))
    assert events == [MessageArrived(STREAM, False, long)]
    granted = session.sockets.consumed(STREAM, len(text)), session.sockets.consumed(STREAM, SIZE)
    assert granted == (b"", window(len(text) + SIZE + 2 * SOCKET_MESSAGE_OVERHEAD))


def test_a_message_needs_a_window_only_to_begin() -> None:
    session = opened()
    assert session.receive(piece(bytes(WINDOW), f.MORE)) == []
    assert session.receive(piece(b"x", f.MORE)) == []
    assert [type(event) for event in session.receive(piece(b"x", 0))] == [MessageArrived]
    assert [type(event) for event in session.receive(piece(b"x", f.MORE))] == [Reply, Ended]


def test_pieces_are_a_violation_if_nobody_has_agreed_on_them() -> None:
    session = opened(MESSAGES)
    assert [type(event) for event in session.receive(piece(b"x", f.MORE))] == [Reply, Ended]
    with pytest.raises(ValueError, match="at most 1,048,576 bytes, not 3,000,000"):
        session.sockets.check(SIZE)
    session.sockets.check(FRAME_MAX)


def test_a_message_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets_module, "SOCKET_MESSAGE_MAX", 100)
    session = opened()
    assert session.receive(piece(bytes(60), f.MORE) + piece(bytes(40), f.MORE)) == []
    assert [type(event) for event in session.receive(piece(b"x", 0))] == [Reply, Ended]


def test_the_rest_of_a_message_that_was_cancelled_is_dropped() -> None:
    session = opened()
    cancel = f.frame(f.CANCEL, STREAM, msgspec.msgpack.encode(["client_left"]))
    assert [type(event) for event in session.receive(piece(b"x", f.MORE) + cancel)] == [Cancelled]
    assert session.receive(piece(b"x", 0)) == []


@pytest.mark.parametrize("seed", range(40))
def test_messages_arrive_whole_in_both_directions_whatever_comes_between(seed: int) -> None:
    """The core's end is a model, which knows how much it has granted and may still send."""
    chance, session = random.Random(seed), opened()
    sizes = [0, 1, 100, 65_536, FRAME_MAX, FRAME_MAX + 1, 2_500_000]
    ours, theirs = ([chance.randbytes(chance.choice(sizes)) for _ in range(6)] for _ in range(2))
    to_send, unsent, left, taken = list(theirs), b"", WINDOW, 0
    received: list[bytes] = []
    may_send, arriving, untaken = WINDOW, bytearray(), 0
    arrived: list[bytes] = []
    sent_count = 0

    def core_hears(data: bytes) -> None:
        nonlocal may_send, untaken
        for kind, flags, _, payload in f.Decoder().feed(data):
            if kind == f.WINDOW:
                nonlocal left
                left += msgspec.msgpack.decode(payload)[0]
                continue
            assert may_send > 0, "the worker sends within its window"
            may_send -= len(payload) + SOCKET_MESSAGE_OVERHEAD
            untaken += len(payload) + SOCKET_MESSAGE_OVERHEAD
            arriving.extend(payload)
            if not flags & f.MORE:
                arrived.append(bytes(arriving))
                arriving.clear()

    def worker_hears(data: bytes) -> None:
        for event in session.receive(data):
            assert not isinstance(event, Ended), event
            if isinstance(event, Reply):
                core_hears(event.data)
            elif isinstance(event, MessageArrived):
                received.append(event.data)

    def steps() -> Any:
        nonlocal unsent, left, taken, may_send, untaken, sent_count
        match chance.randrange(4):
            case 0 if unsent or (to_send and left > 0):
                first = not unsent
                if first:
                    unsent = to_send.pop(0)
                    left -= len(unsent) + SOCKET_MESSAGE_OVERHEAD
                size = len(unsent) if len(unsent) <= FRAME_MAX else chance.randrange(1, FRAME_MAX)
                data, unsent = unsent[:size], unsent[size:]
                worker_hears(piece(data, f.MORE if unsent else 0))
            case 1 if taken < len(received):
                core_hears(session.sockets.consumed(STREAM, len(received[taken])))
                taken += 1
            case 2 if sent_count < len(ours) and not session.sockets.is_full(STREAM):
                core_hears(session.sockets.message(STREAM, False, ours[sent_count]))
                sent_count += 1
            case 3 if untaken:
                granted = chance.randrange(1, untaken + 1)
                untaken -= granted
                may_send += granted
                worker_hears(window(granted))

    for _ in range(20_000):
        steps()
        if received == theirs and arrived == ours:
            break
    assert received == theirs
    assert arrived == ours


# The code that sends and receives them

NATIVE = """
import asyncio
from parkade import App, WebSocket

app = App()

@app.websocket("/")
async def sockets(socket: WebSocket, case: str):
    await socket.accept()
    await globals()[case](socket)

async def sends(socket):
    await socket.send("x" * 3_000_000)
    print("sent")
    await socket.send("next")

async def two_tasks(socket):
    async with asyncio.TaskGroup() if hasattr(asyncio, "TaskGroup") else Gathered() as tasks:
        for letter in "abc":
            tasks.create_task(socket.send(letter * 1_200_000))
            tasks.create_task(socket.send(letter))

async def gives_up(socket):
    try:
        await asyncio.wait_for(socket.send("x" * 3_000_000), 0.01)
    except asyncio.TimeoutError:
        print("gave up")
    await socket.close(4000)

async def returns(socket):
    task = asyncio.create_task(socket.send("x" * 3_000_000))
    await asyncio.sleep(0)

async def is_told(socket):
    try:
        await socket.send("x" * 3_000_000)
    except BaseException as error:  # it is cancelled, since it has never received
        print("closed", type(error).__name__)
        raise

async def lengths(socket):
    async for message in socket:
        await socket.send(f"{type(message).__name__} {len(message)}")

class Gathered:
    async def __aenter__(self):
        self.tasks = []
        return self
    def create_task(self, coroutine):
        self.tasks.append(asyncio.create_task(coroutine))
    async def __aexit__(self, *_):
        await asyncio.gather(*self.tasks)
"""

ASGI = """
async def application(scope, receive, send):
    if scope["type"] != "websocket":
        raise ValueError
    await receive()
    await send({"type": "websocket.accept"})
    case = scope["query_string"].decode().removeprefix("case=")
    if case == "lengths":
        while (message := await receive())["type"] == "websocket.receive":
            text, data = message.get("text"), message.get("bytes")
            told = f"str {len(text)}" if text is not None else f"bytes {len(data)}"
            await send({"type": "websocket.send", "text": told})
        return
    try:
        await send({"type": "websocket.send", "text": "x" * 3_000_000})
        print("sent")
        await send({"type": "websocket.send", "text": "next"})
    except OSError as error:
        print("closed", error)
        raise
"""


@pytest.fixture
def native(core: StartCore) -> Core:
    worker = core(NATIVE, features=LONG_MESSAGES)
    worker.ready()
    return worker


@pytest.fixture
def asgi(core: StartCore) -> Core:
    worker = core(ASGI, "application:application", features=LONG_MESSAGES)
    worker.ready()
    return worker


BOTH = pytest.mark.parametrize(("kind", "route"), [("native", 0), ("asgi", None)])


def accepted(worker: Core, case: str, route: int | None = 0) -> int:
    stream = worker.request(route, query=f"case={case}", scheme="ws")
    assert worker.next()[0] == "RESPONSE+"
    return stream


def whole(worker: Core, stream: int) -> tuple[str, list[int]]:
    """The next message, whose pieces are granted one by one; and their lengths."""
    data, lengths = b"", []
    while True:
        name, at, payload = worker.next()
        assert (name.rstrip("+"), at) == ("MESSAGE", stream), payload
        data += payload
        lengths.append(len(payload))
        worker.send(f.WINDOW, stream, [len(payload) + SOCKET_MESSAGE_OVERHEAD])
        if name == "MESSAGE":
            return data.decode(), lengths


@BOTH
def test_a_long_message_is_sent_and_then_the_next(request: pytest.FixtureRequest, kind: str, route: int | None) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream = accepted(worker, "sends", route)
    message, lengths = whole(worker, stream)
    assert message == "x" * 3_000_000
    assert set(lengths[:-1]) == {SOCKET_PIECE}
    assert whole(worker, stream) == ("next", [4])
    assert worker.next()[0] == "CLOSE"


@BOTH
def test_a_long_message_is_received(request: pytest.FixtureRequest, kind: str, route: int | None) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream = accepted(worker, "lengths", route)
    for is_text, told in ((True, "str 1500000"), (False, "bytes 3000000")):
        data = ("\u00e9" * 1_500_000).encode()
        for start in range(0, len(data), 65_535):  # within a character
            flags = (f.TEXT if is_text and not start else 0) | (f.MORE if start + 65_535 < len(data) else 0)
            worker.send(f.MESSAGE, stream, data[start : start + 65_535], flags)
        assert worker.next()[:2] == ("WINDOW", stream)
        assert whole(worker, stream) == (told, [len(told)])


def test_messages_of_several_tasks_are_not_mixed(native: Core) -> None:
    stream = accepted(native, "two_tasks")
    messages = {whole(native, stream)[0] for _ in range(6)}
    assert messages == {letter * count for letter in "abc" for count in (1, 1_200_000)}


@pytest.mark.parametrize(("case", "code"), [("gives_up", 4000), ("returns", 1000)])
def test_a_message_that_has_begun_is_sent_to_its_end_before_the_close(native: Core, case: str, code: int) -> None:
    stream = accepted(native, case)
    assert whole(native, stream)[0] == "x" * 3_000_000
    name, _, close = native.next()
    assert (name, close.code) == ("CLOSE", code)


@BOTH
@pytest.mark.parametrize("leaves", [False, True])
def test_who_sends_is_told_when_its_client_closes_or_leaves(
    request: pytest.FixtureRequest, kind: str, route: int | None, leaves: bool
) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream = accepted(worker, "is_told", route)
    assert worker.next()[0] == "MESSAGE+"
    if leaves:
        worker.send(f.CANCEL, stream, ["client_left"])
        assert worker.next()[0] == "ERROR"
    else:
        worker.send(f.CLOSE, stream, [1001, ""])
        assert worker.next()[0] == "CLOSE"
    assert "closed" in worker.end()[1]
