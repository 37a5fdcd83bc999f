"""WebSockets that no code holds: `channel(…).socket(on_message=…)`, with each kind of worker."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from .conftest import Kind, Serve
from .harness.server import Server
from .harness.until import until
from .harness.websocket import CLOSE, TEXT, Opener, frame, handshake
from .harness.websocket_window import FAR_REPEATS, Receiver

pytestmark = pytest.mark.also_in_perl

MANY = 200
LONG = 300_000
MESSAGE_MAX = 1_048_576

CROWD = 3_000
COST_MAX = 400
"""Bytes of the core's memory for each that waits."""


@pytest.fixture(scope="module")
def shared(kind: Kind, serve_for_all: Serve) -> Server:
    return serve_for_all("held_sockets", workers=2, environment=kind)


def until_held(server: Server, count: int) -> None:
    server.until(lambda status: status["waits"]["socket"]["count"] == count)


# What it costs


@pytest.mark.promise(8)
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_one_that_waits_costs_little_however_many_come_at_once(serve: Serve, kind: Kind, at_once: bool) -> None:
    """The benchmark measures it exactly, with 10,000: 256 bytes are promised."""
    server = serve("held_sockets", environment=kind)

    def hold(count: int) -> None:
        clients = []
        for _ in range(count):
            clients.append(server.connect())
            if not at_once:
                clients[-1].send(handshake("/rooms/crowd"))
                assert clients[-1].socket.recv(4096).startswith(b"HTTP/1.1 101")
        if at_once:
            for client in clients:
                client.send(handshake("/rooms/crowd"))
        until_held(server, count)

    hold(300)
    server.leave()
    until_held(server, 0)
    before = server.resident_bytes
    hold(CROWD)
    until(f"each takes at most {COST_MAX} bytes", lambda: server.resident_bytes - before <= COST_MAX * CROWD)


# What is published


@pytest.mark.parametrize("deflate", [False, True], ids=["plain", "compressed"])
def test_what_is_published_is_sent_to_all(server: Server, deflate: bool, opened: Opener) -> None:
    clients = [opened(server, "/rooms/all", deflate=deflate) for _ in range(5)]
    until_held(server, 5)
    for size in (0, 1, 125, 126, 65_536, 500_000):
        text = "a word " * (size // 7) + "x" * (size % 7)
        server.publish("all", text.encode())
        assert [client.receive() == text for client in clients] == [True] * 5, size
    server.publish("all", b"\x00\xff", content_type="application/octet-stream")
    assert {client.receive() for client in clients} == {b"\x00\xff"}
    server.publish("all", b'{"a": 1}', content_type="application/json")
    assert {client.receive() for client in clients} == {'{"a": 1}'}
    assert {client.close() for client in clients} == {(1000, "")}


def test_compressed_and_plain_clients_get_the_same(server: Server, opened: Opener) -> None:
    clients = [opened(server, "/rooms/mixed", deflate=deflate) for deflate in (False, True)]
    until_held(server, 2)
    for number in range(20):
        server.publish("mixed", f"{number} again and again".encode() * 100)
    for client in clients:
        assert [client.receive().partition(" ")[0] for _ in range(20)] == [str(n) for n in range(20)]


def test_each_client_gets_what_fits_its_window(server: Server, opened: Opener) -> None:
    offers = ["; server_max_window_bits=9", "", "; server_max_window_bits=12", "; server_max_window_bits=9"]
    field = "Sec-WebSocket-Extensions: permessage-deflate"
    clients = [opened(server, "/rooms/windows", field + offer) for offer in offers]
    until_held(server, len(clients))
    receivers = [Receiver("server_no_context_takeover", bits) for bits in (9, 15, 12, 9)]
    for message in FAR_REPEATS:
        server.publish("windows", message, content_type="application/octet-stream")
        for client, receiver in zip(clients, receivers, strict=True):
            assert receiver.next(client) == message
    assert {client.close() for client in clients} == {(1000, "")}


def test_what_one_says_reaches_everybody(server: Server, opened: Opener) -> None:
    clients = [opened(server, "/rooms/talk") for _ in range(4)]
    until_held(server, 4)
    for number, client in enumerate(clients):
        client.send(f"from {number}")
    for client in clients:
        assert sorted(str(client.receive()) for _ in range(4)) == [f"from {number}" for number in range(4)]


# What clients say


@pytest.mark.parametrize("deflate", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    "message",
    ["", "hola", "J\u00fcrgen \U0001f600", b"", b"\x00\xff", "x" * 65_536, "y" * 65_537, b"z" * LONG],
    ids=len,
)
def test_an_answer_goes_to_the_client_that_has_said_something(
    server: Server, message: str | bytes, deflate: bool, opened: Opener
) -> None:
    client, other = opened(server, "/echo", deflate=deflate), opened(server, "/echo")
    assert client.send(message).receive() == message
    assert other.send("mine").receive() == "mine"
    assert client.close() == (1000, "")


def test_a_message_may_be_as_long_as_the_limit_and_no_longer(kind: Kind, serve: Serve, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, environment=kind, websocket_limit="1MiB")
    client = opened(server, "/echo")
    message = os.urandom(MESSAGE_MAX)
    assert client.send(message).receive() == message
    client.raw(frame(TEXT, b"x" * (MESSAGE_MAX + 1)))
    assert client.closed()[0] == 1009


def test_messages_of_one_client_are_dealt_with_in_their_order(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.raw(*(frame(TEXT, str(number).encode()) for number in range(MANY)))
    assert [client.receive() for _ in range(MANY)] == [str(number) for number in range(MANY)]


def test_messages_may_come_with_the_request(server: Server) -> None:
    client = server.connect().send(handshake("/echo"), frame(TEXT, b"early"), frame(TEXT, b"bird"))
    assert client.opening().status == 101
    assert client.exactly(7) == b"\x81\x05early"
    assert client.exactly(6) == b"\x81\x04bird"


def test_what_was_said_before_a_close_is_dealt_with(server: Server, opened: Opener) -> None:
    client = opened(server, "/echo")
    client.raw(frame(TEXT, b"last"), frame(CLOSE, b"\x03\xe8"))
    assert client.receive() == "last"
    assert client.closed(answers=False) == (1000, "")
    assert client.client.ends()


def test_a_message_is_read_as_the_function_wants_it(server: Server, opened: Opener) -> None:
    client = opened(server, "/bids")
    assert client.send('{"amount": 21}').receive() == '{"doubled":42}'
    client.send('{"amount": "x"}')
    code, reason = client.closed()
    assert (code, "amount" in reason) == (1007, True)
    client = opened(server, "/does").send(b"binary")
    assert client.closed()[0] == 1007


def test_a_function_may_wait_and_have_the_request(server: Server, opened: Opener) -> None:
    client = opened(server, "/does")
    assert client.send("wait").receive() == "waited"
    assert client.send("call me").receive() == "later me"
    assert client.send("path").receive() == "/does"
    assert client.send("nothing").send("status").send("wait").receive() == "waited"


# Sub-protocols


@pytest.mark.parametrize(
    ("fields", "agreed"),
    [
        (["Sec-WebSocket-Protocol: chat"], ["chat"]),
        (["Sec-WebSocket-Protocol: mqtt,chat , chat.v2"], ["chat.v2"]),
        (["Sec-WebSocket-Protocol: mqtt", "Sec-WebSocket-Protocol: chat"], ["chat"]),
        (["Sec-WebSocket-Protocol: chat.v", "Sec-WebSocket-Protocol: Chat"], []),
        (["Sec-WebSocket-Protocol: ,"], []),
        ([], []),
    ],
)
def test_the_first_sub_protocol_that_the_client_offers_is_agreed(
    server: Server, fields: list[str], agreed: list[str], opened: Opener
) -> None:
    client = opened(server, "/agreed", *fields)
    assert client.opening.all("sec-websocket-protocol") == agreed
    client.send("hola")
    assert client.receive() == "hola"


def test_none_is_agreed_where_the_function_names_none(server: Server, opened: Opener) -> None:
    assert opened(server, "/echo", "Sec-WebSocket-Protocol: chat").opening.all("sec-websocket-protocol") == []


# How it ends


def test_a_function_can_close_it(server: Server, kind: Kind, opened: Opener) -> None:
    assert opened(server, "/does").send("close 4001").closed() == (4001, "because")
    reason = "" if "LANGUAGE" in kind else "not you"  # a response has no text that the core could take
    assert opened(server, "/does").send("refuse").closed() == (1008, reason)


def test_a_fault_closes_it_and_is_logged(server: Server, kind: Kind, opened: Opener) -> None:
    client = opened(server, "/does", "x-request-id: faulty-socket").send("fail")
    assert client.closed()[0] == 1011
    if "LANGUAGE" in kind:
        server.until_logged("main::does, called for a message of a WebSocket: in the middle")
    else:
        server.until_logged("held_sockets:do, called for a message of a WebSocket: ValueError: in the middle")
        server.until_logged('raise ValueError\\("in the middle"\\)')
    assert opened(server, "/does").send("stream").closed()[0] == 1011
    server.until_logged("what is called for a message of a WebSocket returned a stream")


def test_a_client_that_leaves_is_forgotten(server: Server, opened: Opener) -> None:
    clients = [opened(server, "/rooms/leaving") for _ in range(10)]
    until_held(server, 10)
    for client in clients[:5]:
        client.client.reset()
    for client in clients[5:]:
        client.client.close()
    server.until_zero()


def test_a_client_that_leaves_cancels_what_is_called_for_it(server: Server, opened: Opener) -> None:
    gate = server.new_gate()
    client = opened(server, f"/gate/{gate}").send("first").send("second")
    server.until_begun(gate)
    client.client.close()
    server.until(lambda status: status["waits"]["socket"]["count"] == 0 and not status["lives"]["running"])
    server.open_gate(gate)
    server.until_zero()
    assert server.log().count(f"holds at {gate}") == 1


def test_published_messages_do_not_wait_for_what_is_called(server: Server, opened: Opener) -> None:
    gate = server.new_gate()
    client = opened(server, f"/gate/{gate}").send("slow")
    server.until_begun(gate)
    server.publish("gate", b"meanwhile")
    assert client.receive() == "meanwhile"
    server.open_gate(gate)
    assert client.receive() == "passed slow"


def test_requests_that_ask_for_none_are_told_so(server: Server) -> None:
    denied = server.get("/rooms/7")
    assert (denied.status, denied["upgrade"], denied["connection"]) == (426, "websocket", "upgrade")
    client = server.connect().send(handshake("/denied"))
    assert client.opening().status == 403
    assert server.get("/wrong").status == 500
    server.until_logged("socket\\(\\) answers only a request for a WebSocket")


# Workers and servers that come and go

IN_PYTHON = """
import os
from parkade import App, channel
app = App(concurrent="CONCURRENT" in os.environ)
@app.websocket("/ws")
def ws():
    return channel("news").socket(said)
def said(message: str) -> str:
    return f"{message} VERSION"
"""

IN_PERL = r"""
use Parkade;
websocket '/ws' => sub { channel('news')->socket(\&said) };
sub said { my ($message) = @_; return "$message VERSION" }
1;
"""


def test_a_reload_does_not_disturb_it_and_the_next_message_meets_the_new_code(
    serve: Serve, kind: Kind, tmp_path: Path, opened: Opener
) -> None:
    in_perl = "LANGUAGE" in kind
    code = IN_PERL if in_perl else IN_PYTHON
    file = tmp_path / ("versions.pl" if in_perl else "versions.py")
    file.write_text(code.replace("VERSION", "one"))
    server = serve(file, workers=1, environment=kind)
    client = opened(server, "/ws")
    assert client.send("code").receive() == "code one"
    for version in ("two", "three"):
        file.write_text(code.replace("VERSION", version))
        server.reload()
        server.publish("news", version.encode())
        assert client.receive() == version
        assert client.send("code").receive() == f"code {version}"
    file.write_text(re.sub(r"\bsaid\b", "told", code))
    server.reload()
    assert client.send("code").closed()[0] == 1011


def test_a_stop_closes_it_with_1001_after_what_was_said(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, grace="30s", environment=kind)
    idle, gate = opened(server, "/echo"), server.new_gate()
    busy = opened(server, f"/gate/{gate}").send("last")
    server.until_begun(gate)
    server.signal(signal.SIGTERM)
    assert idle.closed()[0] == 1001
    server.open_gate(gate)
    assert busy.receive() == "passed last"
    assert busy.closed()[0] == 1001
    assert server.ended() == 0


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_a_stop_deals_with_all_that_its_client_has_sent(
    serve: Serve, kind: Kind, opened: Opener, at_once: bool
) -> None:
    server = serve("held_sockets", workers=1, grace="30s", environment=kind)
    gate = server.new_gate()
    client = opened(server, f"/gate/{gate}")
    said = [f"m{number}" for number in range(5)]
    if at_once:
        client.raw(*(frame(TEXT, text.encode()) for text in said))
    else:
        for text in said:
            client.send(text)
    server.until_begun(gate)
    server.signal(signal.SIGTERM)
    server.until_logged("shutting down")
    server.open_gate(gate)
    assert [client.receive() for _ in said] == [f"passed {text}" for text in said]
    assert client.closed()[0] == 1001
    assert server.ended() == 0


def test_a_worker_that_is_killed_closes_only_what_it_was_called_for(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, environment=kind)
    idle, gate = opened(server, "/echo"), server.new_gate()
    busy = opened(server, f"/gate/{gate}").send("lost")
    server.until_begun(gate)
    [worker] = server.worker_pids()
    os.kill(worker, signal.SIGKILL)
    assert busy.closed()[0] == 1012
    server.ready(1)
    assert idle.send("again").receive() == "again"


def test_what_is_called_has_the_deadline_of_its_route(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, deadline="3s", environment=kind)
    client, gate = opened(server, "/echo"), server.new_gate()
    assert opened(server, f"/gate/{gate}").send("slow").closed()[0] == 1011
    server.open_gate(gate)
    assert client.send("still").receive() == "still"


def test_a_client_that_says_too_much_is_slowed_down(serve: Serve, kind: Kind, opened: Opener) -> None:
    server = serve("held_sockets", workers=1, websocket_rate=5, environment=kind)
    client = opened(server, "/echo")
    client.raw(*(frame(TEXT, str(number).encode()) for number in range(12)))
    assert [client.receive() for _ in range(12)] == [str(number) for number in range(12)]


def test_a_client_that_does_not_read_is_disconnected_and_others_are_not(serve: Serve, kind: Kind) -> None:
    server = serve("held_sockets", workers=1, environment=kind)
    slow = Opener("1.1")(server, "/rooms/slow", receive_buffer=4096, segment=1460)
    quick = Opener("1.1")(server, "/rooms/slow")
    until_held(server, 2)

    def is_alone() -> bool:
        server.publish("slow", b"x" * 100_000)
        assert quick.receive() == "x" * 100_000
        return bool(server.status()["waits"]["socket"]["count"] == 1)

    until("the slow one is gone", is_alone, seconds=60)
    assert slow.client.is_readable(), "what it was sent before"
