"""WebSockets: of ASGI applications, and of Parkade's own interface. Most cases are for both."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest
from wsproto.events import CloseConnection, Ping, Pong

from .conftest import Serve
from .harness import processes
from .harness.server import Server
from .harness.until import until
from .harness.websocket import BINARY, CLOSE, CONTINUED, PING, TEXT, Opener, frame, handshake

CLIENTS = 50
MESSAGE_MAX = 1_048_576
APPS = ["sockets_asgi", "sockets_native"]

WITH_STATE = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        scope["state"] |= {"shared": ["first"], "own": "own"}
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    state = scope["state"]
    text = f"shared {state['shared']} {state['own']}"
    state["shared"].append("next")
    state["own"] = "another"
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": text})
"""


@pytest.fixture(scope="module", params=APPS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


# Messages


@pytest.mark.parametrize("deflate", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    "message",
    ["", "hola", "J\u00fcrgen \U0001f600", b"", b"\x00\xff", "x" * 125, "x" * 126, b"y" * 65_535, b"z" * 65_536],
    ids=lambda message: f"{type(message).__name__}-{len(message)}",
)
def test_a_message_comes_back(server: Server, message: str | bytes, deflate: bool, opened: Opener) -> None:
    client = opened(server, "/echo", deflate=deflate)
    assert client.send(message).receive() == message
    assert client.close()[0] == 1000


def test_a_message_may_fill_a_frame_of_the_worker(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    message = os.urandom(MESSAGE_MAX)
    assert client.send(message).receive() == message
    text = "\u00e9" * (MESSAGE_MAX // 2)
    assert client.send(text).receive() == text


def test_what_is_compressed_is_shorter_on_the_wire(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo", deflate=True)
    assert "permessage-deflate" in client.opening["sec-websocket-extensions"]
    message = b"again " * 20_000
    assert client.send(message).receive() == message


def test_messages_come_back_in_their_order(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    for number in range(500):
        client.send(str(number))
    assert [client.receive() for _ in range(500)] == [str(number) for number in range(500)]


def test_messages_may_come_with_the_request(server: Server) -> None:
    client = server.connect().send(handshake("/echo"), frame(TEXT, b"early"), frame(BINARY, b"bird"))
    assert client.opening().status == 101
    assert client.exactly(7) == b"\x81\x05early"
    assert client.exactly(6) == b"\x82\x04bird"


def test_fragments_are_one_message_and_pings_may_come_between(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    pieces = [frame(TEXT, b"on", final=False), frame(PING, b"?"), frame(CONTINUED, b"", final=False)]
    client.raw(*pieces, frame(CONTINUED, b"e", final=True))
    pong = client.next()
    assert isinstance(pong, Pong)
    assert bytes(pong.payload) == b"?"
    assert client.receive() == "one"


def test_a_character_may_be_divided_between_fragments_and_bytes(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    data = "\U0001f600".encode()
    for byte in frame(TEXT, data[:1], final=False) + frame(CONTINUED, data[1:3], final=False):
        client.raw(bytes([byte]))
    assert client.raw(frame(CONTINUED, data[3:])).receive() == "\U0001f600"


def test_a_ping_is_answered_and_a_pong_is_not(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.say(Pong(payload=b"unasked"))
    client.say(Ping(payload=b"x" * 125))
    pong = client.next()
    assert isinstance(pong, Pong)
    assert bytes(pong.payload) == b"x" * 125
    assert client.send("still here").receive() == "still here"


# The end


@pytest.mark.parametrize(
    ("code", "reason"),
    [(1000, ""), (1001, "going"), (3000, "x" * 123), (4999, "\u00e9")],
    ids=lambda value: str(value)[:9],
)
def test_a_client_closes_with_a_code_and_gets_it_back(server: Server, code: int, reason: str, opened: Opener) -> None:
    client = opened(server, "/echo")
    assert client.send("a").receive() == "a"
    assert client.close(code, reason)[0] == code
    server.until_zero()


def test_the_application_is_told_how_its_client_closed(asgi: Server, opened: Opener) -> None:
    opened(asgi, "/echo").close(4321, "enough")
    asgi.until_logged("disconnected 4321 enough")
    client = opened(asgi, "/echo")
    client.raw(frame(CLOSE))
    asgi.until_logged("disconnected 1005")
    client = opened(asgi, "/echo")
    client.client.reset()
    asgi.until_logged("disconnected 1006")


@pytest.mark.parametrize(
    ("path", "code", "reason"), [("/close/1000", 1000, "because"), ("/close/4000", 4000, "because")]
)
def test_the_application_closes_with_a_code_and_a_reason(
    server: Server, path: str, code: int, reason: str, opened: Opener
) -> None:
    client = opened(server, path)
    assert client.send("go").closed() == (code, reason)


@pytest.mark.parametrize(("path", "code"), [("/close/0", 1011), ("/close/1", 1000)])
def test_an_application_that_fails_or_returns_closes(asgi: Server, path: str, code: int, opened: Opener) -> None:
    assert opened(asgi, path).send("go").closed() == (code, "")
    if code == 1011:
        asgi.until_logged("ValueError: in the middle")


def test_a_handler_that_fails_closes_with_1011_and_is_logged(native: Server, opened: Opener) -> None:
    assert opened(native, "/fails").send("go").closed() == (1011, "")
    native.until_logged("ValueError: in the middle")


def test_a_client_that_does_not_answer_a_close_is_cut_off(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    client = opened(server, "/close/1000")
    client.send("go").closed(answers=False)
    assert client.client.ends(60)
    server.still_serves()


def test_what_came_before_a_close_is_read_by_who_is_late(asgi: Server, opened: Opener) -> None:
    gate = asgi.new_gate()
    client = opened(asgi, f"/late/{gate}")
    for text in ("one", "two", "three"):
        client.send(text)
    client.raw(frame(CLOSE, (1000).to_bytes(2, "big")))
    asgi.open_gate(gate)
    asgi.until_logged(r"(?s)received late one.*received late two.*received late three.*then 1000")


def test_an_application_that_sends_after_its_close_gets_an_error(asgi: Server, opened: Opener) -> None:
    assert opened(asgi, "/closed").closed() == (1000, "")
    asgi.until_logged(r"after the close: \w+")


def test_what_follows_a_close_is_not_read(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.raw(frame(CLOSE, b"\x03\xe8"), frame(TEXT, b"late"))
    event = client.next()
    assert isinstance(event, CloseConnection)
    assert event.code == 1000


# What breaks the rules

FAULTS: dict[str, tuple[int, list[bytes]]] = {
    "no mask": (1002, [frame(TEXT, b"a", masked=False)]),
    "a reserved bit": (1002, [frame(TEXT, b"a", reserved=4)]),
    "a kind that is unknown": (1002, [frame(3, b"a")]),
    "a control frame that is unknown": (1002, [frame(11, b"a")]),
    "a long ping": (1002, [frame(PING, b"x" * 126)]),
    "a ping in fragments": (1002, [frame(PING, b"x", final=False)]),
    "a continuation of nothing": (1002, [frame(CONTINUED, b"x")]),
    "a message within another": (1002, [frame(TEXT, b"a", final=False), frame(TEXT, b"b")]),
    "a close of one byte": (1002, [frame(CLOSE, b"\x03")]),
    "a close with a code for programs": (1002, [frame(CLOSE, b"\x03\xee")]),
    "a length beyond 2^63": (1002, [b"\x82\xff" + b"\xff" * 8 + b"mask"]),
    "text that is not UTF-8": (1007, [frame(TEXT, b"\xff")]),
    "half a character": (1007, [frame(TEXT, b"\xc3")]),
    "a surrogate": (1007, [frame(TEXT, b"\xed\xa0\x80")]),
    "a wrong byte in a fragment": (1007, [frame(TEXT, b"a\xc3", final=False), frame(CONTINUED, b"a")]),
    "a reason that is not UTF-8": (1007, [frame(CLOSE, b"\x03\xe8\xff")]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_that_breaks_the_rules_is_told_by_the_code(server: Server, fault: str, opened: Opener) -> None:
    code, frames = FAULTS[fault]
    client = opened(server, "/echo")
    client.raw(*frames)
    assert client.closed(answers=False)[0] == code
    server.still_serves()


def test_a_message_is_refused_before_its_bytes_come(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.raw(b"\x82\xff" + (1 << 40).to_bytes(8, "big") + b"mask")
    assert client.closed(answers=False)[0] == 1009


def test_a_message_that_is_small_only_while_compressed_is_refused(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, websocket_limit="1MiB")
    client = opened(server, "/echo", deflate=True)
    before = server.resident_bytes
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = squeezed.compress(bytes(64 << 20)) + squeezed.flush(zlib.Z_SYNC_FLUSH)
    client.raw(frame(BINARY, bomb[:-4], reserved=4))
    assert client.closed(answers=False)[0] == 1009
    assert processes.peak_bytes(server.pid) - before < 8 << 20


def test_compressed_nonsense_is_1007_or_1002(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo", deflate=True)
    client.raw(frame(TEXT, b"\xff\xff\xff\xff", reserved=4))
    assert client.closed(answers=False)[0] in (1002, 1007)


# The handshake


@pytest.mark.parametrize(
    ("offered", "wanted", "agreed"),
    [("a, b", "b", "b"), ("a", "", None), ("", "", None)],
)
def test_a_sub_protocol_is_agreed_upon(
    asgi: Server, offered: str, wanted: str, agreed: str | None, opened: Opener
) -> None:
    fields = [f"Sec-WebSocket-Protocol: {offered}"] if offered else []
    opening = opened(asgi, f"/subprotocol/{wanted}", *fields).opening
    assert opening.all("sec-websocket-protocol") == ([agreed] if agreed else [])
    assert opening["x-a"] == "1"
    assert opening.all("set-cookie") == ["a=1", "b=2"]
    assert "x-request-id" in opening


def test_a_native_handler_gets_parameters_and_agrees_on_a_sub_protocol(native: Server, opened: Opener) -> None:
    client = opened(native, "/told/7?name=Ada", "Sec-WebSocket-Protocol: mqtt, chat")
    assert client.opening["sec-websocket-protocol"] == "chat"
    assert client.opening["x-a"] == "1"
    assert json.loads(client.receive()) == {"number": 7, "name": "Ada", "agreed": "chat", "path": "/told/7"}
    assert client.closed() == (1000, "")


def test_the_scope_is_that_of_a_websocket(asgi: Server, opened: Opener) -> None:
    told = opened(asgi, "/scope?a=%20", "Sec-WebSocket-Protocol: a", "Sec-WebSocket-Protocol: b").receive()
    assert told == (
        f"['websocket', 'ws', '/scope', b'/scope', b'a=%20', '{opened.version}', '', ['a', 'b'], '127.0.0.1', False, "
        "{'websocket.http.response': {}}]"
    )


def test_behind_a_proxy_with_tls_the_scheme_is_wss(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, trust="127.0.0.1")
    told = opened(server, "/scope", "X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7").receive()
    assert "['websocket', 'wss', '/scope'" in told
    assert "'192.0.2.7'" in told


def test_the_access_log_says_101(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, access_log="json")
    assert opened(server, "/echo").close()[0] == 1000
    [line] = until("the line", lambda: server.printed().splitlines())
    entry = json.loads(line)
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", "/echo", 101)


def test_an_encoded_slash_is_in_the_raw_path(asgi: Server, opened: Opener) -> None:
    told = opened(asgi, "/scope/one%2Ftwo").receive()
    assert "'/scope/one/two', b'/scope/one%2Ftwo'" in told


def test_the_state_of_the_lifespan_is_in_the_scope(serve: Serve, opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "with_state.py").write_text(WITH_STATE)
    server = serve(f"{tmp_path}/with_state.py:app", workers=1)
    assert [opened(server, "/").receive() for _ in range(2)] == ["shared ['first'] own", "shared ['first', 'next'] own"]


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/deny/close", 403, b""),
        ("/deny/response", 401, b"not you"),
        ("/deny/raise", 500, None),
        ("/deny/silent", 500, None),
    ],
)
def test_an_application_denies_by_a_response(asgi: Server, path: str, status: int, body: bytes | None) -> None:
    with asgi.connect() as client:
        answer = client.send(handshake(path)).answer()
        assert answer.status == status
        assert body is None or answer.body == body
        assert client.get("/hola/you").text == "Hola you"  # on the same connection


@pytest.mark.parametrize(
    ("path", "status"),
    [("/echo?stranger=1", 403), ("/told/7", 422), ("/told/x?name=a", 404), ("/nowhere", 404), ("/hola/x", 200)],
)
def test_a_native_application_answers_what_it_does_not_accept(native: Server, path: str, status: int) -> None:
    with native.connect() as client:
        assert client.send(handshake(path)).answer().status == status


def test_a_request_without_an_upgrade_is_told_that_it_needs_one(native: Server) -> None:
    assert native.get("/echo").status == 426


@pytest.mark.parametrize(
    "replaced",
    [
        {"upgrade": None},
        {"upgrade": "h2c"},
        {"connection": None},
        {"connection": "keep-alive"},
        {"sec_websocket_key": None},
    ],
    ids=lambda replaced: "-".join(map(str, *replaced.items())),
)
def test_what_is_no_handshake_is_no_websocket(asgi: Server, replaced: dict[str, str | None]) -> None:
    with asgi.connect() as client:
        answer = client.send(handshake("/echo", **replaced)).answer()
        assert answer.status in (200, 400)
        assert answer.status == 400 or answer.text == "http /echo"


@pytest.mark.parametrize("connection", ["keep-alive, Upgrade", "upgrade"])
def test_the_fields_of_the_handshake_are_lists(server: Server, connection: str) -> None:
    with server.connect() as client:
        assert client.send(handshake("/echo", connection=connection, upgrade="WebSocket")).opening().status == 101


@pytest.mark.parametrize(
    ("app", "path"), [("raw_wsgi", "/pieces"), ("basic", "/hola/x"), ("sockets_native", "/hola/x")]
)
def test_who_has_no_websockets_answers_the_request(serve: Serve, app: str, path: str) -> None:
    server = serve(app, workers=1)
    usual = server.get(path)
    with server.connect() as client:
        for _ in range(2):  # on the same connection
            answer = client.send(handshake(path)).answer()
            assert (answer.status, answer.body) == (usual.status, usual.body) != (404, usual.body)
            assert "upgrade" not in answer
