"""WebSockets over HTTP/2 (RFC 8441): what only streams have. The other tests of WebSockets run over both versions."""

from __future__ import annotations

import json
import signal

import h2.errors
import pytest
from wsproto.events import Ping, Pong

from .conftest import Serve
from .harness.http2 import Http2
from .harness.server import Server
from .harness.tunnel import Tunnel
from .harness.until import until
from .harness.websocket import BINARY, TEXT, WebSocket, frame, tunnelled


@pytest.fixture(scope="module", params=["sockets_asgi", "sockets_native"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


# The handshake


@pytest.mark.parametrize(("app", "has_any"), [("sockets_asgi", True), ("raw_wsgi", False), ("basic", False)])
def test_the_server_says_whether_there_are_websockets(serve: Serve, app: str, has_any: bool) -> None:
    connection = serve(app, workers=1).connect2()
    connection.receive()
    assert bool(connection.connection.remote_settings.enable_connect_protocol) == has_any


def test_a_client_that_asks_nevertheless_is_refused(serve: Serve) -> None:
    connection = serve("raw_wsgi", workers=1).connect2()
    stream = connection.ask(
        "CONNECT", "/pieces", (":protocol", "websocket"), ("sec-websocket-version", "13"), end=False
    )
    assert _was_reset(connection, stream) == h2.errors.ErrorCodes.PROTOCOL_ERROR
    assert connection.get("/pieces").status == 200


@pytest.mark.parametrize(
    ("protocol", "version", "status"),
    [("connect-udp", "13", 501), ("WebSocket", "13", 501), ("websocket", "8", 400), ("websocket", None, 400)],
)
def test_what_is_no_handshake_is_refused(server: Server, protocol: str, version: str | None, status: int) -> None:
    connection = server.connect2()
    answer = Tunnel(connection, "/echo", protocol=protocol, version=version).answer()
    assert answer.status == status
    assert ("sec-websocket-version" in answer) == (status == 400)
    assert connection.get("/hola/you").text == "Hola you"


def test_a_connect_without_a_protocol_is_refused(server: Server) -> None:
    connection = server.connect2(strict=False)
    number = _head(connection, (":method", "CONNECT"), (":authority", "test"))
    assert connection.opening(number).status == 501
    assert connection.get("/hola/you").text == "Hola you"


def test_a_connect_with_a_body_is_refused(server: Server) -> None:
    connection = server.connect2(strict=False)
    head = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/echo")]
    told = [*head, (":authority", "test"), ("sec-websocket-version", "13"), ("content-length", "4")]
    assert connection.opening(_head(connection, *told)).status == 400
    assert connection.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize("missing", [":path", ":scheme"])
def test_a_head_that_is_incomplete_is_malformed(server: Server, missing: str) -> None:
    connection = server.connect2(strict=False)
    pseudo = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/echo")]
    told = [*pseudo, (":authority", "test"), ("sec-websocket-version", "13")]
    number = _head(connection, *[field for field in told if field[0] != missing])
    assert _was_reset(connection, number) == h2.errors.ErrorCodes.PROTOCOL_ERROR
    assert connection.get("/hola/you").text == "Hola you"


def _head(connection: Http2, *fields: tuple[str, str]) -> int:
    """Sends a head by hand; returns its stream."""
    number: int = connection.connection.get_next_available_stream_id()
    connection.expect(number)
    connection.connection.send_headers(number, fields, end_stream=False)
    connection.flush()
    return number


def _was_reset(connection: Http2, number: int) -> int:
    while (code := connection.streams[number].reset) is None:
        connection.receive()
    return code


def test_a_page_of_another_origin_is_refused_if_the_setting_says_so(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, websocket_origin=["self", "https://a.example"])
    connection = server.connect2()
    for origin, status in [("https://a.example", 200), ("http://test", 200), ("https://evil.example", 403)]:
        assert Tunnel(connection, "/echo", f"Origin: {origin}").opening().status == status, origin


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/deny/close", 403, b""),
        ("/deny/response", 401, b"not you"),
        ("/deny/kindly", 403, b"not you"),  # success would mean that it is accepted
        ("/deny/raise", 500, None),
    ],
)
def test_an_application_denies_by_a_response(asgi: Server, path: str, status: int, body: bytes | None) -> None:
    connection = asgi.connect2()
    answer = Tunnel(connection, path).answer()
    assert answer.status == status
    assert body is None or answer.body == body
    assert connection.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(("path", "status"), [("/told/7", 422), ("/nowhere", 404), ("/hola/x", 403)])
def test_a_native_application_answers_what_it_does_not_accept(native: Server, path: str, status: int) -> None:
    assert Tunnel(native.connect2(), path).answer().status == status


@pytest.mark.parametrize(("app", "path"), [("sockets_asgi", "/deny/kindly"), ("sockets_native", "/hola/x")])
def test_the_access_log_has_the_status_of_a_denial_that_its_client_got(serve: Serve, app: str, path: str) -> None:
    server = serve(app, workers=1, access_log="json")
    assert Tunnel(server.connect2(), path).answer().status == 403
    [line] = until("the line", lambda: server.printed().splitlines())
    entry = json.loads(line)
    assert (entry["path"], entry["status"], entry["protocol"]) == (path, 403, "HTTP/2")


def test_messages_may_come_before_it_is_accepted(server: Server) -> None:
    client = Tunnel(server.connect2(), "/echo").send(frame(TEXT, b"early"), frame(BINARY, b"bird"))
    socket = WebSocket(client, client.opening())
    assert [socket.receive(), socket.receive()] == ["early", b"bird"]


# Many on one connection


def test_websockets_and_requests_share_a_connection(server: Server) -> None:
    connection = server.connect2()
    sockets = [tunnelled(connection, "/echo") for _ in range(100)]
    for number, socket in enumerate(sockets):
        socket.send(f"{number}")
    assert connection.get("/hola/you").text == "Hola you"
    assert [socket.receive() for socket in sockets] == [str(number) for number in range(100)]
    assert server.status()["lives"]["running"] == 100
    for socket in sockets[:50]:
        assert socket.close()[0] == 1000
    assert sockets[50].send("still").receive() == "still"
    connection.close()
    server.until_zero()


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_stream_that_its_client_ends_without_a_close_is_one_that_has_left(asgi: Server, how: str) -> None:
    count = asgi.log().count("disconnected 1006")
    connection = asgi.connect2()
    leaving, staying = tunnelled(connection, "/echo"), tunnelled(connection, "/echo")
    assert leaving.send("a").receive() == "a"
    getattr(leaving.client, how)()
    asgi.until_logged("disconnected 1006", times=count + 1)
    assert staying.send("b").receive() == "b"
    assert staying.close()[0] == 1000
    asgi.until_zero()


def test_one_that_resets_while_nobody_receives_is_noticed(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1)
    client = tunnelled(server.connect2(), "/deaf/cancel").client
    assert client.fill(frame(BINARY, bytes(10_000)), 0.5), "the application receives nothing"
    client.reset()
    server.until_logged("deaf was cancelled")
    server.until_zero()


def test_one_that_nobody_reads_does_not_hold_up_the_others(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1)
    before = server.resident_bytes
    connection = server.connect2()
    # So that the window of the connection is larger than that of a stream.
    connection.connection.increment_flow_control_window(1 << 20)
    flooded, quick = tunnelled(connection, "/flood"), tunnelled(connection, "/echo")
    server.until_logged("sent 1")
    for number in range(20):
        assert quick.send(str(number)).receive() == str(number)
    assert server.resident_bytes - before < 4 << 20
    assert flooded.receive() == bytes(50_000)
    flooded.client.reset()
    server.until_logged("flood ends: OSError")
    assert quick.close()[0] == 1000


# Clients that are silent, slow, or say too much


def test_a_client_that_reads_nothing_is_disconnected(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, stall_timeout="600ms")
    connection = server.connect2()
    flooded, other = tunnelled(connection, "/flood"), tunnelled(connection, "/echo")
    server.until_logged("flood ends: OSError")
    # Until then the window of the connection is full of what this client has not read.
    assert _was_reset(connection, flooded.client.number) == h2.errors.ErrorCodes.CANCEL  # type: ignore[union-attr]
    assert other.send("here").receive() == "here"
    assert other.close()[0] == 1000


def test_what_a_closed_one_does_not_read_is_dropped_in_time(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, stall_timeout="600ms")
    client = tunnelled(server.connect2(), "/push/10x20000")
    client.receive()
    client.client.send(frame(TEXT, b"done"))
    server.until(lambda status: status["lives"]["running"] == 0)
    number, connection = client.client.number, client.client.connection  # type: ignore[union-attr]
    assert _was_reset(connection, number) == h2.errors.ErrorCodes.CANCEL
    assert connection.get("/hola/you").text == "Hola you"


def test_a_client_that_answers_no_ping_is_dead(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, websocket_ping="1s", websocket_pong_timeout="1s")
    connection = server.connect2()
    dead, alive = tunnelled(connection, "/echo"), tunnelled(connection, "/echo")
    for _ in range(3):
        ping = alive.next()
        assert isinstance(ping, Ping)
        alive.say(Pong(payload=ping.payload))
    assert isinstance(dead.next(), Ping)
    server.until_logged("disconnected 1006")
    assert alive.send("here").receive() == "here"


def test_a_client_that_says_too_much_is_heard_later(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, websocket_rate=5)
    client = tunnelled(server.connect2(), "/echo")
    client.raw(*[frame(TEXT, b"%d" % number) for number in range(12)])
    assert [client.receive() for _ in range(12)] == [str(number) for number in range(12)]
    assert client.close()[0] == 1000


# Stops


def test_a_stop_says_goodbye_to_the_connection_and_closes_its_websockets(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, grace="10s")
    connection = server.connect2()
    told, other = tunnelled(connection, "/until-shutdown"), tunnelled(connection, "/echo")
    assert told.receive() == "begun"
    server.signal(signal.SIGTERM)
    connection.until_goaway()
    assert told.receive() == "told"
    assert told.closed() == (1001, "restarting")
    assert other.closed()[0] == 1001
    assert server.ended() == 0
