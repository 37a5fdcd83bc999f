"""What applications of ASGI send to WebSockets, message by message, and what clients send at the handshake."""

from __future__ import annotations

import re

import pytest
from wsproto.events import CloseConnection

from .conftest import Serve
from .harness.client import Answer
from .harness.server import Server
from .harness.tunnel import Tunnel
from .harness.websocket import CLOSE, Opener, frame, handshake
from .test_asgi_messages import saying


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("scripted_asgi", workers=1)


def refused(server: Server, opened: Opener, target: str, *fields: str) -> Answer:
    """The response to a handshake that does not succeed."""
    if opened.version == "1.1":
        with server.connect() as client:
            return client.send(handshake(target, *fields)).answer()
    with server.connect2() as client2:
        return Tunnel(client2, target, *fields).answer()


# What may be sent


@pytest.mark.parametrize(
    ("messages", "received"),
    [
        (["accept()", "text('a')", "data(b'b')"], ["a", b"b"]),
        (["accept()", "{'type': 'websocket.send', 'text': 'a', 'bytes': None}"], ["a"]),
        (["accept()", "{'type': 'websocket.send', 'text': None, 'bytes': b'a'}"], [b"a"]),
        (["accept()", "text('')", "data(b'')"], ["", b""]),
        (["accept()", "text(Text('a'))", "data(Bytes(b'b'))"], ["a", b"b"]),
        (["accept()", "data(bytearray(b'a'))", "data(memoryview(b'b'))"], [b"a", b"b"]),
        (["accept(subprotocol=None, headers=None)", "text('a')"], ["a"]),
        (["accept(headers=[])", "text('a')"], ["a"]),
        (["accept(headers=iter([(b'x-a', b'b')]))", "text('a')"], ["a"]),
        (["accept()", *["text('a' * 200_000)"] * 3], ["a" * 200_000] * 3),
    ],
    ids=lambda value: str(value)[:60],
)
def test_messages_may_be_said_so(
    server: Server, opened: Opener, messages: list[str], received: list[str | bytes]
) -> None:
    client = opened(server, saying(*messages, "close()"))
    assert [client.receive() for _ in received] == received
    assert client.closed()[0] == 1000


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        ("close()", 1000, ""),
        ("close(code=None)", 1000, ""),
        ("close(code=1000, reason=None)", 1000, ""),
        ("close(code=1001, reason='going')", 1001, "going"),
        *((f"close(code={code})", code, "") for code in (1002, 1003, *range(1007, 1014))),
        ("close(code=3000, reason='\\u00fc')", 3000, "\u00fc"),
        ("close(code=4999, reason='x' * 123)", 4999, "x" * 123),
    ],
)
def test_an_application_may_close_so(server: Server, opened: Opener, said: str, code: int, reason: str) -> None:
    client = opened(server, saying("accept()", said))
    assert client.closed() == (code, reason)
    server.until_zero()


@pytest.mark.parametrize("code", [1005, 1006, 1015, 2999])
def test_a_code_that_no_frame_may_have_closes_without_one(server: Server, opened: Opener, code: int) -> None:
    """An application that passes on how another connection ended sends such codes."""
    assert opened(server, saying("accept()", f"close(code={code}, reason='why')")).closed()[0] == 1005


@pytest.mark.parametrize("code", [*range(1000, 1004), *range(1007, 1014), 3000, 4999])
def test_a_client_may_close_with_these_codes(server: Server, opened: Opener, code: int) -> None:
    before = server.log().count("received {'type': 'websocket.disconnect'")
    client = opened(server, saying("accept()", "RECEIVE", "RECEIVE"))
    assert client.close(code, "why")[0] == code
    told = rf"received \{{'type': 'websocket.disconnect', 'code': {code}, 'reason': 'why'\}}"
    server.until_logged(r"received \{'type': 'websocket.disconnect'", times=before + 2)
    assert re.search(told, server.log()), "and as often as it receives"


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])
def test_a_client_may_not_close_with_others(server: Server, opened: Opener, code: int) -> None:
    client = opened(server, saying("accept()", "RECEIVE"))
    client.raw(frame(CLOSE, code.to_bytes(2, "big")))
    event = client.next()
    assert isinstance(event, CloseConnection)
    assert event.code == 1002


# What may not


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("accept()", "accept"),
        ("start()", "http.response.start"),
        ("deny()", "websocket.http.response.start"),
        ("denial()", "websocket.http.response.body"),
        ("{}", "type"),
        ("{'type': None}", "None"),
        ("{'type': 'websocket.receive'}", "websocket.receive"),
        ("{'type': 'websocket.send'}", "text"),
        ("{'type': 'websocket.send', 'text': None, 'bytes': None}", "text"),
        ("text(b'a')", "neither text"),
        ("text(7)", "neither text"),
        ("data('a')", "neither text"),
        ("text('\\ud800')", "surrogate|UTF-8|utf-8"),
        ("close(code=0)", "0"),
        ("close(code=999)", "999"),
        ("close(code=5000)", "5000"),
        ("close(code=70_000)", "70000"),
        ("close(code='1000')", "1000"),
        ("close(reason=b'why')", "reason"),
        ("close(reason='x' * 124)", "reason"),
        ("fail('error')", "on purpose"),
        ("fail('group')", "on purpose"),
        ("fail('cancelled')", "the application failed: "),
    ],
)
def test_a_mistake_closes_with_1011_and_is_logged(server: Server, opened: Opener, message: str, why: str) -> None:
    before = len(server.log())
    assert opened(server, saying("accept()", message)).closed()[0] == 1011
    server.until_logged(rf"(?s)^.{{{before}}}.*ERROR [^\n]*({why})")
    server.still_serves()


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (["text('a')"], "websocket.send"),
        (["start()"], "http.response.start"),
        (["denial()"], "http.response.body"),
        (["{}"], "type"),
        (["deny()", "accept()"], "websocket.accept"),
        (["deny()", "deny()"], "a second time|websocket.http.response.start"),
        (["deny()", "text('a')"], "websocket.send"),
        (["deny('201 Created')"], "201 Created"),
        (["deny(101)"], "101"),
        (["deny(headers=[('x-a', b'b')])"], "x-a"),
        (["deny()", "denial('text')"], "str"),
        (["deny()"], "returned|denial|body"),
        (["accept(headers=[(b'x-a', 'b')])"], "x-a"),
        (["accept(subprotocol=7)"], "the subprotocol of websocket.accept is a token, as text, not 7"),
        (["accept(subprotocol=b'a')"], "the subprotocol of websocket.accept is a token, as text, not b'a'"),
        (["accept(subprotocol=['a'])"], "the subprotocol of websocket.accept is a token"),
        (["fail('error')"], "on purpose"),
        (["fail('cancelled')"], "the application failed: "),
        (["[]"], "list"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_mistake_before_the_acceptance_is_500(server: Server, opened: Opener, messages: list[str], why: str) -> None:
    before = len(server.log())
    assert refused(server, opened, saying(*messages)).status == 500
    server.until_logged(rf"(?s)^.{{{before}}}.*ERROR [^\n]*({why})")
    server.still_serves()


def test_a_denial_that_is_never_finished_is_broken_off_and_logged(server: Server, opened: Opener) -> None:
    with pytest.raises(AssertionError):  # it ends too early
        refused(server, opened, saying("deny(401)", "denial(b'a', 1)"))
    server.until_logged("ERROR [^\n]*the application returned before the end of its response")
    server.still_serves()


@pytest.mark.parametrize(
    "said",
    [
        r"headers=[(b'x-a', b'b\r\nx-c: d')]",
        r"headers=[(b'x-a', b'b\0')]",
        r"headers=[(b'x-a\r\nx-c', b'd')]",
        r"headers=[(b'x a', b'b')]",
        r"headers=[(b'', b'b')]",
        r"headers=[(b':status', b'200')]",
        r"subprotocol='a\r\nx-c: d'",
        r"subprotocol='a b'",
        r"subprotocol=''",
        r"subprotocol='a, b'",
        r"subprotocol='\u00fc'",
    ],
)
def test_an_acceptance_that_cannot_be_is_500(server: Server, opened: Opener, said: str) -> None:
    answer = refused(server, opened, saying(f"accept({said})", "RECEIVE"), "Sec-WebSocket-Protocol: a")
    assert answer.status == 500
    assert "x-c" not in answer
    server.still_serves()


# The handshake


@pytest.mark.parametrize("version", ["12", "8", "013", "thirteen", "13, 8", None])
def test_a_handshake_of_another_version_is_told_which_there_is(
    server: Server, opened: Opener, version: str | None
) -> None:
    target = saying("accept()")
    if opened.version == "1.1":
        with server.connect() as client:
            answer = client.send(handshake(target, sec_websocket_version=version)).answer()
    else:
        with server.connect2() as client2:
            answer = Tunnel(client2, target, version=version).answer()
    assert (answer.status, answer["sec-websocket-version"]) == (400, "13")


@pytest.mark.parametrize(
    "key",
    ["", "short", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZSBhbmQgbW9yZQ==", "!!!!!!!!!!!!!!!!!!!!!!=="],
)
def test_a_handshake_without_a_key_of_16_bytes_is_refused(server: Server, key: str) -> None:
    with server.connect() as client:
        assert client.send(handshake(saying("accept()"), sec_websocket_key=key)).answer().status == 400


@pytest.mark.parametrize(
    ("first", "second"), [("GET", "HTTP/1.0"), ("POST", "HTTP/1.1"), ("HEAD", "HTTP/1.1"), ("get", "HTTP/1.1")]
)
def test_another_method_or_version_opens_no_websocket(server: Server, first: str, second: str) -> None:
    raw = handshake(saying("start()", "body(b'a')")).replace(b"GET ", f"{first} ".encode(), 1)
    with server.connect() as client:
        answer = client.send(raw.replace(b"HTTP/1.1", second.encode(), 1)).answer(head=first == "HEAD")
        assert answer.status in (200, 400)


@pytest.mark.parametrize(
    ("messages", "status", "body"),
    [
        (["close()"], 403, None),
        (["close(code=4000, reason='why')"], 403, None),
        (["deny(403)", "denial()"], 403, b""),
        (["deny(409)", "denial(b'a', 1)", "denial(b'b')"], 409, b"ab"),
        (["deny(404, [])", "denial(b'a' * 60_000)"], 404, b"a" * 60_000),
        (["deny(307, [(b'location', b'https://test/a')])", "denial()"], 307, b""),
        (["deny(401, [(b'content-length', b'2')])", "denial(b'no')"], 401, b"no"),
        (["deny(304, [])", "denial()"], 304, b""),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_denial_may_be_said_so(
    server: Server, opened: Opener, messages: list[str], status: int, body: bytes | None
) -> None:
    answer = refused(server, opened, saying(*messages))
    assert answer.status == status
    assert body is None or answer.body == body


@pytest.mark.parametrize(
    ("offered", "chosen"), [("a", "a"), ("a,b", "b"), ("a , b", "b"), ("a, b.c_d~1", "b.c_d~1"), ("A, a", "a")]
)
def test_a_sub_protocol_is_one_of_those_that_were_offered(
    server: Server, opened: Opener, offered: str, chosen: str
) -> None:
    client = opened(server, saying(f"accept(subprotocol='{chosen}')"), f"Sec-WebSocket-Protocol: {offered}")
    assert client.opening["sec-websocket-protocol"] == chosen


def test_nothing_reaches_a_client_that_has_closed_and_nobody_is_blamed(server: Server, opened: Opener) -> None:
    """The application can send until it has received the end: what it sends raises no error that would be logged."""
    gate = server.new_gate()
    before = server.log().count("ERROR")
    client = opened(server, saying("accept()", f"hold('{gate}')", "text('late')", "text('later')"))
    assert client.close()[0] == 1000
    server.open_gate(gate)
    server.until_logged("goes on")
    server.still_serves()
    assert server.log().count("ERROR") == before
