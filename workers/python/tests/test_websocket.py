"""WebSockets under a scripted core: of Parkade's own interface, and of ASGI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import Core, StartCore
from parkade import App, SignatureError, WebSocket
from parkade._limits import BRANCH_FIRST, FRAME_MAX, SOCKET_MESSAGE_OVERHEAD, WINDOW
from parkade._wire import frames as f

NATIVE = """
import asyncio
from parkade import App, HTTPError, Response, Status, WebSocket, WebSocketClosed, after, channel

app = App()

@app.before
def check(request):
    if "hooked" in request.query: return Status(403)

@app.websocket("/")
async def sockets(socket: WebSocket, case: str, size: int = 0):
    print("begun", case)
    try:
        result = await globals()[case](socket, size)
    except BaseException as error:
        print("raised", type(error).__name__, error)
        raise
    print("done", case)
    return result

async def echo(socket, size):
    async for message in socket:
        await socket.send(message)
    print("ended by", (socket.is_closed))

async def accept(socket, size):
    await socket.accept("b", {"x-a": "1"})
    print(socket.subprotocol, socket.subprotocols)
    try:
        await socket.accept()
    except RuntimeError as error:
        print(error)

async def foreign(socket, size): await socket.accept("c")
async def nothing(socket, size): pass
async def waits(socket, size): return after(1)
async def refuses(socket, size): raise HTTPError(403, "not you")
async def answers(socket, size): return Response("teapot", 418)
async def fails(socket, size):
    await socket.accept()
    raise ValueError("on purpose")
async def returns(socket, size):
    await socket.accept()
    return "text"
async def refuses_late(socket, size):
    await socket.receive()
    raise HTTPError(400, "nonsense")
async def closes(socket, size):
    await socket.accept()
    await socket.close(4000, "bye")
    await socket.close()
    print("receives", [message async for message in socket])
    await socket.send("late")
async def closes_first(socket, size): await socket.close()
async def closes_badly(socket, size):
    await socket.accept()
    for code, reason in ((1005, ""), (1000, "x" * 124)):
        try:
            await socket.close(code, reason)
        except ValueError as error:
            print(error)
async def kinds(socket, size):
    for message in ("a", b"b", {"c": 1}, [None], memoryview(b"d")):
        await socket.send(message)
async def huge(socket, size):
    await socket.send("x" * (1 << 20))
    await socket.send("x" * ((1 << 20) + 1))
async def many(socket, size):
    for number in range(size):
        await socket.send(b"x" * 100_000)
        print("sent", number)
async def slow(socket, size):
    await socket.accept()
    await after(1)
    print(len(await socket.receive()))
async def waits_inside(socket, size):
    await socket.accept()
    message = await channel("news").next(timeout=5)
    await socket.send(message)
async def never_reads(socket, size):
    await socket.accept()
    await asyncio.Event().wait()
async def reads_first(socket, size):
    print(await socket.receive())
    await asyncio.Event().wait()
async def collects(socket, size):
    await socket.accept()
    await after(1)
    print([message async for message in socket])
async def receives_after(socket, size):
    await socket.receive()
    try:
        await socket.receive()
    except WebSocketClosed as error:
        print("closed", error.code, error.reason)
    await socket.send("late")
async def two_tasks(socket, size):
    async def forward():
        try:
            while True:
                await socket.send(await channel("news").next())
        finally:
            print("the task ends")
    task = asyncio.create_task(forward())
    async for message in socket:
        break
    await socket.close()
"""

ASGI = """
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise ValueError
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200})
        return await send({"type": "http.response.body", "body": b"http"})
    case = scope["query_string"].decode().removeprefix("case=")
    print("begun", case)
    assert await receive() == {"type": "websocket.connect"}
    try:
        await globals()[case](scope, receive, send)
    except BaseException as error:
        print("raised", type(error).__name__, error)
        raise
    print("done", case)

async def echo(scope, receive, send):
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    print("then", message)
    print("again", await receive())
    await send({"type": "websocket.close"})
    await send({"type": "websocket.send", "text": "late"})

async def tell(scope, receive, send):
    print(scope["type"], scope["scheme"], scope["subprotocols"], "method" in scope, scope["extensions"])
    await send({"type": "websocket.accept", "subprotocol": "b", "headers": [(b"x-a", b"1")]})

async def deny(scope, receive, send):
    await send({"type": "websocket.close", "code": 4000})
    print(await receive())

async def respond(scope, receive, send):
    await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"x-a", b"1")]})
    await send({"type": "websocket.http.response.body", "body": b"not ", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"you"})

async def close(scope, receive, send):
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4000, "reason": "bye"})
    print(await receive())
    await send({"type": "websocket.close"})

async def silent(scope, receive, send): pass
async def early(scope, receive, send): await send({"type": "websocket.send", "text": "a"})
async def twice(scope, receive, send):
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.accept"})
async def odd(scope, receive, send): await send({"type": "http.response.start", "status": 200})
async def empty(scope, receive, send):
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send"})
async def badcode(scope, receive, send):
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 5000})
async def fails(scope, receive, send):
    await send({"type": "websocket.accept"})
    raise ValueError("on purpose")
async def fails_early(scope, receive, send): raise ValueError("on purpose")
async def half(scope, receive, send):
    await send({"type": "websocket.http.response.start", "status": 401})
async def waits(scope, receive, send):
    await send({"type": "websocket.accept"})
    await receive()
    from parkade import channel
    message = await channel("news").next(timeout=5)
    await send({"type": "websocket.send", "text": message.text})
async def blocked(scope, receive, send):
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "bytes": b"x" * 100_000})
async def cancels(scope, receive, send):
    scope["parkade.on_disconnect"]("cancel")
    await send({"type": "websocket.accept"})
    import asyncio
    await asyncio.Event().wait()
async def shuts(scope, receive, send):
    await send({"type": "websocket.accept"})
    await scope["parkade.shutdown"]
    await send({"type": "websocket.close", "code": 1001})
async def stays(scope, receive, send):
    await send({"type": "websocket.accept"})
    while True:
        print("hears", await receive())
        import asyncio
        await asyncio.Event().wait()
"""


@pytest.fixture
def native(core: StartCore) -> Core:
    worker = core(NATIVE)
    told = worker.ready()
    assert told.application.routes[0].websocket
    return worker


@pytest.fixture
def asgi(core: StartCore) -> Core:
    worker = core(ASGI, "application:application")
    assert worker.ready().application.websocket
    return worker


def asked(worker: Core, case: str, route: int | None, more: str = "", **options: Any) -> int:
    return worker.request(route, query=f"case={case}{more}", scheme="ws", **options)


def accepted(worker: Core, case: str, route: int | None, more: str = "", **options: Any) -> tuple[int, Any]:
    """Asks for a WebSocket; gives its stream, and the headers of the response that accepts it."""
    stream = asked(worker, case, route, more, **options)
    name, at, response = worker.next()
    assert (name, at, response.status, response.body) == ("RESPONSE+", stream, 101, None)
    return stream, response.headers


def said(worker: Core) -> str:
    """The next line that the worker prints."""
    assert worker.process.stderr is not None
    return worker.process.stderr.readline().rstrip("\n")


def until(worker: Core, line: str) -> list[str]:
    """The lines that it prints, up to that one."""
    assert worker.process.stderr is not None
    lines: list[str] = []
    for told in worker.process.stderr:
        lines.append(told.rstrip("\n"))
        if lines[-1].startswith(line):
            return lines
    raise AssertionError(f"{line!r} was not printed: {lines}")


def message(worker: Core, stream: int, data: bytes, is_text: bool = True) -> None:
    worker.send(f.MESSAGE, stream, data, f.TEXT if is_text else 0)


def closed(worker: Core, stream: int) -> tuple[int, str]:
    """How the worker closes it, and that it does so next."""
    name, at, close = worker.next()
    assert (name, at) == ("CLOSE", stream), close
    return close.code, close.text


# Both interfaces

BOTH = pytest.mark.parametrize(("kind", "route"), [("native", 0), ("asgi", None)])


@BOTH
def test_messages_are_answered_until_the_client_closes(
    request: pytest.FixtureRequest, kind: str, route: int | None
) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, headers = accepted(worker, "echo", route)
    assert not headers
    message(worker, stream, "h\u00f6la".encode())
    message(worker, stream, b"\xff\x00", is_text=False)
    assert worker.next() == ("MESSAGE", stream, "h\u00f6la".encode())
    assert worker.next() == ("MESSAGE", stream, b"\xff\x00")
    worker.send(f.CLOSE, stream, [4001, "enough"])
    assert closed(worker, stream) == (1000, "")
    _, printed = worker.end()
    assert "Traceback" not in printed
    if kind == "asgi":
        assert "then {'type': 'websocket.disconnect', 'code': 4001, 'reason': 'enough'}" in printed
        assert "raised Disconnected" in printed
    else:
        assert "done echo" in printed


@BOTH
def test_a_client_that_leaves_is_told_to_who_receives(
    request: pytest.FixtureRequest, kind: str, route: int | None
) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, _ = accepted(worker, "echo", route)
    until(worker, "begun")
    worker.send(f.CANCEL, stream, ["client_left"])
    name, at, error = worker.next()
    assert (name, at, error.reason) == ("ERROR", stream, "cancelled")
    _, printed = worker.end()
    assert "Traceback" not in printed
    assert ("'code': 1006" in printed) if kind == "asgi" else ("done echo" in printed)


@BOTH
def test_a_sub_protocol_and_headers_are_sent_with_the_acceptance(
    request: pytest.FixtureRequest, kind: str, route: int | None
) -> None:
    worker: Core = request.getfixturevalue(kind)
    case = "accept" if kind == "native" else "tell"
    stream, headers = accepted(worker, case, route, headers={"sec-websocket-protocol": "a, b"})
    told = [value if isinstance(value, str) else value.decode() for value in headers]
    pairs = dict(zip(told[::2], told[1::2], strict=True))
    assert pairs == {"x-a": "1", "sec-websocket-protocol": "b"}
    assert closed(worker, stream) == (1000, "")


@BOTH
def test_a_failure_after_the_acceptance_closes_with_1011_and_is_logged(
    request: pytest.FixtureRequest, kind: str, route: int | None
) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, _ = accepted(worker, "fails", route)
    assert closed(worker, stream) == (1011, "")
    _, printed = worker.end()
    assert "ValueError: on purpose" in printed
    assert "Traceback" in printed


@BOTH
def test_waits_can_be_awaited_while_it_is_open(request: pytest.FixtureRequest, kind: str, route: int | None) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, _ = accepted(worker, "waits_inside" if kind == "native" else "waits", route)
    if kind == "asgi":
        message(worker, stream, b"go")
    name, branch, park = worker.next()
    assert (name, park.wait[0], park.then.of) == ("PARK", "next", stream)
    assert branch >= BRANCH_FIRST
    outcome = ["message", "1.1", "text/plain", b"fresh", False]
    worker.send(f.RESUME, 0, [outcome, [branch]])
    assert worker.next() == ("MESSAGE", stream, b"fresh")
    assert closed(worker, stream) == (1000, "")


@BOTH
def test_who_sends_more_than_the_client_reads_waits(
    request: pytest.FixtureRequest, kind: str, route: int | None
) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, _ = accepted(worker, *(("many", 0, "&size=9") if kind == "native" else ("blocked", None)))
    sent = 0
    while sent < WINDOW:
        name, _, data = worker.next()
        assert name == "MESSAGE"
        sent += len(data) + SOCKET_MESSAGE_OVERHEAD
    worker.send(f.PING, 0, [7])
    assert worker.next()[0] == "PONG"  # and no message before
    worker.send(f.WINDOW, stream, [sent - WINDOW])
    worker.send(f.PING, 0, [8])
    assert worker.next()[0] == "PONG"  # it owes what it has sent too much
    worker.send(f.WINDOW, stream, [1])
    assert worker.next()[0] == "MESSAGE"
    worker.send(f.CANCEL, stream, ["client_left"])
    name, at, error = worker.next()
    assert (name, at, error.reason) == ("ERROR", stream, "cancelled")


@BOTH
def test_a_worker_that_stops_closes_what_is_open(request: pytest.FixtureRequest, kind: str, route: int | None) -> None:
    worker: Core = request.getfixturevalue(kind)
    stream, _ = accepted(worker, "never_reads" if kind == "native" else "stays", route)
    worker.send(f.CANCEL, stream, ["stopping"])
    name, at, error = worker.next()
    assert (name, at, error.reason) == ("ERROR", stream, "cancelled")


# The native interface


@pytest.mark.parametrize(
    ("case", "status", "body"),
    [
        ("refuses", 403, b"not you"),
        ("answers", 418, b"teapot"),
        ("nothing", 500, b"the application failed"),
        ("waits", 500, b"the application failed"),
        ("foreign", 500, b"the application failed"),
        ("closes_first", 500, b"the application failed"),
        ("echo&hooked=1", 403, b""),
        ("echo&size=x", 422, b"invalid or missing: size"),
    ],
)
def test_what_comes_before_the_acceptance_refuses(native: Core, case: str, status: int, body: bytes) -> None:
    asked(native, case, 0)
    name, _, response = native.next()
    assert (name, response.status) == ("RESPONSE", status)
    told = response.body or b""
    assert body in (told.encode() if isinstance(told, str) else told)


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("nothing", "the handler returned nothing, before it had accepted the WebSocket: receive or send something"),
        ("waits", "the handler returned a wait, which cannot refuse it, before it had accepted"),
        ("foreign", "the client does not offer the sub-protocol 'c', but none"),
        ("closes_first", "this WebSocket is not accepted: raise HTTPError, or return a response, to refuse it"),
    ],
)
def test_a_mistake_before_the_acceptance_is_logged(native: Core, case: str, says: str) -> None:
    asked(native, case, 0)
    assert native.next()[2].status == 500
    assert says in native.end()[1]


def test_a_request_for_something_else_is_told_that_this_is_a_websocket(native: Core) -> None:
    response = native.answer(0, query="case=echo")
    assert response.status == 426
    assert "upgrade" in response.headers


@pytest.mark.parametrize(
    ("case", "code", "text"), [("closes", 4000, "bye"), ("returns", 1011, ""), ("refuses_late", 1008, "nonsense")]
)
def test_the_handler_says_how_it_is_closed(native: Core, case: str, code: int, text: str) -> None:
    stream, _ = accepted(native, case, 0)
    message(native, stream, b"a")
    assert closed(native, stream) == (code, text)
    _, printed = native.end()
    if case == "closes":
        assert "receives []" in printed
        assert "raised WebSocketClosed the WebSocket is closed: 4000 bye" in printed
        assert "Traceback" not in printed
    if case == "returns":
        assert "the handler returned str after it had accepted the WebSocket: send it" in printed


def test_a_close_that_no_frame_can_have_is_refused(native: Core) -> None:
    stream, _ = accepted(native, "closes_badly", 0)
    assert closed(native, stream) == (1000, "")
    printed = native.end()[1]
    assert "1007 to 1014 or 3000 to 4999, not 1005" in printed
    assert "has at most 123 bytes" in printed


def test_text_bytes_and_json_are_sent(native: Core) -> None:
    accepted(native, "kinds", 0)
    assert [native.next()[2] for _ in range(5)] == [b"a", b"b", b'{"c":1}', b"[null]", b"d"]


def test_a_message_that_the_core_does_not_take_is_a_mistake(native: Core) -> None:
    stream, _ = accepted(native, "huge", 0)
    assert len(native.next()[2]) == FRAME_MAX
    assert closed(native, stream) == (1011, "")
    assert "the server takes messages of at most 1,048,576 bytes, not 1,048,577" in native.end()[1]


def test_a_client_is_granted_what_the_handler_has_received(native: Core) -> None:
    stream, _ = accepted(native, "slow", 0)
    branch = native.next()[1]
    message(native, stream, b"x" * 200_000, is_text=False)
    native.send(f.PING, 0, [1])
    assert native.next()[0] == "PONG"  # and no WINDOW
    native.send(f.RESUME, 0, [["elapsed"], [branch]])
    assert native.next()[:2] == ("WINDOW", stream)
    assert closed(native, stream) == (1000, "")


def test_what_came_before_the_end_is_received(native: Core) -> None:
    stream, _ = accepted(native, "collects", 0)
    branch = native.next()[1]
    message(native, stream, b"first")
    message(native, stream, b"last", is_text=False)
    native.send(f.CLOSE, stream, [1000, ""])
    native.send(f.RESUME, 0, [["elapsed"], [branch]])
    assert closed(native, stream) == (1000, "")
    assert "['first', b'last']" in native.end()[1]


def test_a_handler_that_never_receives_is_cancelled_when_the_client_closes(native: Core) -> None:
    stream, _ = accepted(native, "never_reads", 0)
    until(native, "begun")
    native.send(f.CLOSE, stream, [1000, ""])
    assert native.next()[:2] == ("CLOSE", stream)
    assert said(native).startswith("raised CancelledError")


@pytest.mark.parametrize("how", ["leaves", "closes"])
def test_one_that_has_received_goes_on_unless_the_connection_breaks(native: Core, how: str) -> None:
    """It may be storing what the client sent before it closed."""
    stream, _ = accepted(native, "reads_first", 0)
    message(native, stream, b"first")
    until(native, "first")
    if how == "closes":
        native.send(f.CLOSE, stream, [1000, ""])
        native.send(f.PING, 0, [1])
        assert native.next()[0] == "PONG"
        native.send(f.CANCEL, stream, ["operator"])
    else:
        native.send(f.CANCEL, stream, ["client_left"])
    assert native.next()[:2] == ("ERROR", stream)
    assert said(native).startswith("raised CancelledError")


def test_patience_ends(native: Core) -> None:
    stream = native.number()
    head = ["GET", "/", "case=reads_first", [], "", "ws", "1.1"]
    native.send(f.REQUEST, stream, [0, [], 0.05, b"", head])
    assert native.next()[0] == "RESPONSE+"
    message(native, stream, b"first")
    until(native, "first")
    native.send(f.CLOSE, stream, [1000, ""])
    assert native.next()[:2] == ("CLOSE", stream)
    assert said(native).startswith("raised CancelledError")


def test_the_end_is_raised_with_its_code(native: Core) -> None:
    stream, _ = accepted(native, "receives_after", 0)
    message(native, stream, b"a")
    native.send(f.CLOSE, stream, [1001, "gone"])
    assert closed(native, stream) == (1000, "")
    printed = native.end()[1]
    assert "closed 1001 gone" in printed
    assert "raised WebSocketClosed" in printed
    assert "Traceback" not in printed


def test_what_other_tasks_wait_for_ends_before_it_is_closed(native: Core) -> None:
    stream, _ = accepted(native, "two_tasks", 0)
    name, branch, _ = native.next()
    assert name == "PARK"
    message(native, stream, b"enough")
    assert native.next()[:2] == ("UNPARK", branch)
    native.send(f.RESUME, 0, [["unparked"], [branch]])
    assert closed(native, stream) == (1000, "")
    assert "the task ends" in native.end()[1]


async def takes_none(number: int) -> None: ...
async def takes_body(socket: WebSocket, body: dict[str, Any]) -> None: ...
def is_plain(socket: WebSocket) -> None: ...
async def generates(socket: WebSocket) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (takes_none, "takes no WebSocket: give it a parameter `socket: WebSocket`"),
        (takes_body, "a request for a WebSocket has no body"),
        (is_plain, "write `async def is_plain"),
        (generates, "instead of yield"),
    ],
)
def test_a_handler_that_is_none_is_refused(handler: Callable[..., Any], says: str) -> None:
    with pytest.raises(SignatureError, match=says):
        App().websocket("/")(handler)


def test_other_handlers_get_no_websocket() -> None:
    with pytest.raises(SignatureError, match=r"only a handler of app\.websocket gets a WebSocket"):
        App().get("/", is_plain)


def test_a_decorator_without_parentheses_says_what_to_write() -> None:
    with pytest.raises(SignatureError, match=r"write @app\.websocket\('/path'\)"):
        App().websocket(takes_none)  # type: ignore[arg-type]


# ASGI


def test_the_scope_of_a_websocket(asgi: Core) -> None:
    accepted(asgi, "tell", None, headers={"sec-websocket-protocol": "a, b"})
    assert until(asgi, "websocket")[-1] == ("websocket ws ['a', 'b'] False {'websocket.http.response': {}}")


@pytest.mark.parametrize(
    ("case", "status", "body"),
    [("deny", 403, b""), ("respond", 401, b"not you"), ("silent", 500, None), ("half", 500, None)],
)
def test_it_is_denied_by_a_response(asgi: Core, case: str, status: int, body: bytes | None) -> None:
    asked(asgi, case, None)
    name, _, response = asgi.next()
    assert response.status == status
    pieces = [response.body or b""]
    while name.endswith("+"):
        name, _, data = asgi.next()
        pieces.append(data)
    if body is not None:
        assert b"".join(pieces) == body


@pytest.mark.parametrize(
    ("case", "says", "code"),
    [
        ("silent", "the application returned without websocket.accept or websocket.close", 0),
        ("half", "the application returned without http.response.body", 0),
        ("early", "the application sent websocket.send before websocket.accept", 0),
        ("odd", "the application sent 'http.response.start', which is not a WebSocket message", 0),
        ("fails_early", "ValueError: on purpose", 0),
        ("twice", "the application sent websocket.accept after websocket.accept", 1011),
        ("empty", "the application sent websocket.send with neither text (str) nor bytes", 1011),
        ("badcode", "the code of websocket.close is a number from 1000 to 4999, not 5000", 1011),
    ],
)
def test_a_mistake_is_told(asgi: Core, case: str, says: str, code: int) -> None:
    if code:
        stream, _ = accepted(asgi, case, None)
        assert closed(asgi, stream) == (code, "")
    else:
        asked(asgi, case, None)
        assert asgi.next()[2].status == 500
    assert says in asgi.end()[1]


def test_what_the_application_sends_after_its_own_close_is_a_mistake(asgi: Core) -> None:
    stream, _ = accepted(asgi, "close", None)
    assert closed(asgi, stream) == (4000, "bye")
    printed = asgi.end()[1]
    assert "{'type': 'websocket.disconnect', 'code': 4000, 'reason': 'bye'}" in printed
    assert "the application sent websocket.close after it had closed or denied the WebSocket" in printed


@pytest.mark.parametrize("case", ["cancels", "stays"])
def test_an_application_is_cancelled_when_its_client_leaves_only_if_it_asks_for_that(asgi: Core, case: str) -> None:
    stream, _ = accepted(asgi, case, None)
    until(asgi, "begun")
    asgi.send(f.CANCEL, stream, ["client_left"])
    if case == "cancels":
        assert asgi.next()[:2] == ("ERROR", stream)
        assert said(asgi).startswith("raised CancelledError")
    else:
        assert said(asgi).startswith("hears {'type': 'websocket.disconnect', 'code': 1006")
        asgi.send(f.PING, 0, [1])
        assert asgi.next()[0] == "PONG"


def test_it_is_told_of_the_end_of_its_worker(asgi: Core) -> None:
    stream, _ = accepted(asgi, "shuts", None)
    asgi.send(f.DRAIN, 0, [30])
    assert closed(asgi, stream) == (1001, "")


def test_one_that_does_not_hear_of_it_is_closed_a_moment_before(asgi: Core) -> None:
    stream, _ = accepted(asgi, "stays", None)
    asgi.send(f.DRAIN, 0, [0.01])
    assert closed(asgi, stream) == (1012, "")


def test_other_requests_are_requests(asgi: Core) -> None:
    assert asgi.answer(None).body == b"http"
