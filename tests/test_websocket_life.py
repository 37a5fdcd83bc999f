"""WebSockets while clients, workers and servers come and go, or are slow; and those of frameworks."""

from __future__ import annotations

import json
import os
import signal

import pytest
from wsproto.events import Ping

from .conftest import Serve
from .harness import processes
from .harness.server import Server
from .harness.sse import Events
from .harness.until import until
from .harness.websocket import BINARY, Opener, WebSocket, frame, handshake

CLIENTS = 50


@pytest.fixture(scope="module", params=["sockets_asgi", "sockets_native"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


# Clients and workers that go


@pytest.mark.parametrize("how", ["close", "reset"])
def test_an_application_is_told_when_its_client_vanishes(serve: Serve, how: str, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    clients = [opened(server, "/echo") for _ in range(10)]
    for client in clients:
        getattr(client.client, how)()
    server.until_logged("disconnected 1006", times=10)
    server.still_serves()


def test_an_application_that_waits_for_something_else_goes_on_unless_it_asks_to_be_cancelled(
    serve: Serve, opened: Opener
) -> None:
    server = serve("sockets_asgi", workers=1, deadline="2s")
    opened(server, "/deaf/cancel").client.reset()
    server.until_logged("deaf was cancelled")
    opened(server, "/deaf/notify").client.reset()
    server.until_logged("deaf was cancelled", times=2)  # after the deadline
    server.still_serves()


def test_a_native_handler_that_never_receives_ends_with_its_client(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_native", workers=1)
    client = opened(server, "/ticks")
    assert client.receive() == "first"
    client.close()
    server.until_logged("ticks were cancelled")
    client = opened(server, "/ticks")
    assert client.receive() == "first"
    client.client.reset()
    server.until_logged("ticks were cancelled", times=2)
    server.still_serves()


def test_a_wait_ends_when_the_client_leaves(asgi: Server, opened: Opener) -> None:
    client = opened(asgi, "/wait/leaving")
    asgi.until(lambda status: status["waits"]["next"]["count"] == 1)
    client.client.reset()
    asgi.until_zero()


def test_a_message_of_a_channel_is_sent(asgi: Server, opened: Opener) -> None:
    client = opened(asgi, "/wait/news")
    asgi.until(lambda status: status["waits"]["next"]["count"] == 1)
    asgi.publish("news", b"fresh")
    assert client.receive() == "fresh"
    assert client.closed() == (1000, "")


def test_what_one_says_in_a_room_is_sent_to_all(native: Server, opened: Opener) -> None:
    clients = [opened(native, "/rooms/7") for _ in range(5)]
    assert [client.receive() for client in clients] == ["welcome"] * 5
    for number in range(20):
        clients[number % 5].send(f"message {number}")
    for client in clients:
        told = [client.receive() for _ in range(20)]
        assert sorted(told) == sorted(f"message {number}" for number in range(20))
    for client in clients:
        assert client.close() == (1000, "")
    native.until_zero()


def test_a_worker_that_is_killed_closes_its_sockets_with_1012(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    clients = [opened(server, "/echo") for _ in range(10)]
    [worker] = server.worker_pids()
    os.kill(worker, signal.SIGKILL)
    assert {client.closed()[0] for client in clients} == {1012}
    server.ready(1)
    assert opened(server, "/echo").send("again").receive() == "again"


def test_a_busy_application_costs_no_client_its_connection(serve: Serve, opened: Opener) -> None:
    """The core pings, and reads the pongs."""
    server = serve("sockets_asgi", workers=1, websocket_ping="200ms")
    gate = server.new_gate()
    client = opened(server, f"/busy/{gate}").send("begin")
    for _ in range(5):
        ping = client.next()
        assert isinstance(ping, Ping)
        client.say(ping.response())
    server.open_gate(gate)
    assert client.receive() == "busy no longer"
    assert client.close() == (1000, "")


def test_one_client_after_the_other_finds_the_worker_ready(server: Server, opened: Opener) -> None:
    for number in range(20):
        client = opened(server, "/echo")
        assert client.send(f"message {number}").receive() == f"message {number}"
        client.client.close()
    server.until_zero()


# Stops and reloads


def test_a_stop_tells_applications_and_closes_the_others(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1, grace="40s")
    told = [opened(server, "/until-shutdown") for _ in range(5)]
    assert {client.receive() for client in told} == {"begun"}
    others = [opened(server, "/echo") for _ in range(5)]
    server.signal(signal.SIGTERM)
    for client in told:
        assert client.receive() == "told"
        assert client.closed() == (1001, "restarting")
    assert others[0].send("still").receive() == "still"
    assert {client.closed()[0] for client in others} == {1001}
    assert server.ended() == 0


def test_sockets_and_streams_during_reloads_and_a_stop(serve: Serve, opened: Opener) -> None:
    """Each is told first, and then closed in order. What does not listen stays with the old worker for the grace."""
    server = serve("sockets_asgi", workers=1, grace="30s")
    for _ in range(20 if opened.version == "1.1" else 4):
        sockets = [opened(server, "/until-shutdown") for _ in range(CLIENTS)]
        streams = [server.events("/events") for _ in range(CLIENTS)]
        assert {client.receive() for client in sockets} == {"begun"}
        assert {stream.next().data for stream in streams} == {"begun"}
        server.reload()
        _were_told(sockets, streams)
    sockets = [opened(server, "/until-shutdown") for _ in range(CLIENTS)]
    streams = [server.events("/events") for _ in range(CLIENTS)]
    assert {client.receive() for client in sockets} == {"begun"}
    server.signal(signal.SIGTERM)
    _were_told(sockets, streams[:0])
    assert {tuple(event.data for event in stream.rest()) for stream in streams} == {("begun", "told")}
    assert server.ended() == 0


def _were_told(sockets: list[WebSocket], streams: list[Events]) -> None:
    for client in sockets:
        assert client.receive() == "told"
        assert client.closed() == (1001, "restarting")
    for stream in streams:
        assert [event.data for event in stream.rest()] == ["told"]


def test_a_socket_that_does_not_listen_goes_on_during_a_reload(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_native", workers=1, grace="30s")
    client = opened(server, "/echo")
    server.signal(signal.SIGHUP)
    until("a new worker is ready", lambda: len(server.workers("ready", "busy")) > 0)
    for number in range(20):
        assert client.send(str(number)).receive() == str(number)
    assert opened(server, "/echo").send("new").receive() == "new"
    assert client.close()[0] == 1000


# Those who are slow


def test_an_application_that_sends_without_end_waits_for_its_client(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    before = server.resident_bytes
    client = opened(server, "/flood", receive_buffer=4096, segment=1460)
    server.until_logged("sent 1")
    [worker] = server.worker_pids()
    first = processes.resident_bytes(worker)
    assert client.receive() == bytes(50_000)
    assert server.get("/hola/you").text == "Hola you"
    assert "sent 100" not in server.log()
    assert server.resident_bytes - before < 4 << 20
    assert processes.resident_bytes(worker) - first < 8 << 20
    for _ in range(100):
        client.receive()
    server.until_logged("sent 100")
    client.client.reset()
    server.until_logged("flood ends: OSError")
    server.still_serves()


def test_a_client_that_sends_without_end_waits_for_the_application(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    client = opened(server, "/lazy/gate")
    server.until_logged("accepted")
    [worker] = server.worker_pids()
    before, of_worker = server.resident_bytes, processes.resident_bytes(worker)
    assert client.client.fill(frame(BINARY, bytes(10_000)), 0.5), "nobody receives it, and all is taken nevertheless"
    assert server.get("/hola/you").text == "Hola you"
    assert server.resident_bytes - before < 4 << 20
    assert processes.resident_bytes(worker) - of_worker < 4 << 20
    server.open_gate("gate")
    client.client.reset()
    server.until_zero()


def test_nothing_is_lost_by_who_is_slow_at_both_ends(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    client = opened(server, "/push/200x20000", receive_buffer=4096, segment=1460)
    for number in range(200):
        data = client.receive()
        assert isinstance(data, bytes)
        assert (int.from_bytes(data[:4], "big"), len(data)) == (number, 20_000)
    assert client.close()[0] == 1000


def test_a_large_stream_of_messages_passes_with_flat_memory(serve: Serve, opened: Opener) -> None:
    server = serve("sockets_asgi", workers=1)
    client = opened(server, "/lazy/open")
    server.open_gate("open")
    before, piece = server.resident_bytes, frame(BINARY, bytes(100_000))
    for _ in range(400):
        client.raw(piece)
    assert client.raw(frame(BINARY)).receive() == "40000000"
    assert processes.peak_bytes(server.pid) - before < 6 << 20


def test_tasks_that_send_and_receive_at_the_same_time(asgi: Server, opened: Opener) -> None:
    client = opened(asgi, "/both")
    for number in range(200):
        client.send(f"{number}")
    assert [client.receive() for _ in range(200)] == [str(number) for number in range(200)]
    assert client.close()[0] == 1000
    asgi.until_zero()


def test_many_sockets_share_a_worker(server: Server, opened: Opener) -> None:
    clients = [opened(server, "/echo") for _ in range(200)]
    for client in clients:
        client.send("a")
    assert {client.receive() for client in clients} == {"a"}
    for client in clients:
        client.send(b"b")
    assert {client.receive() for client in clients} == {b"b"}
    assert server.status()["lives"]["running"] == 200


# Who asks


def test_a_page_of_another_origin_is_refused_if_the_setting_says_so(serve: Serve) -> None:
    server = serve("sockets_asgi", workers=1, websocket_origin=["https://a.example", "https://*.b.example"])
    for origin, status in [
        ("https://a.example", 101),
        ("https://x.b.example", 101),
        ("https://evil.example", 403),
        ("null", 403),
        (None, 101),  # no browser
    ]:
        with server.connect() as client:
            assert client.send(handshake("/echo", origin=origin)).opening().status == status, origin


# Frameworks

FRAMEWORKS = ["fastapi_site", "starlette_site", "litestar_site", "quart_site"]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def site(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, workers=1)


@pytest.mark.parametrize("message", ["hola", "\U0001f600", "x" * 100_000])
def test_a_framework_echoes(site: Server, message: str, opened: Opener) -> None:
    client = opened(site, "/socket/echo")
    for _ in range(3):
        assert client.send(message).receive() == f"echo {message}"
    assert client.close()[0] == 1000
    site.until_logged("the socket ends")
    site.until_zero()


def test_a_framework_agrees_on_a_sub_protocol_and_closes(site: Server, opened: Opener) -> None:
    client = opened(site, "/socket/chat", "Sec-WebSocket-Protocol: mqtt, chat")
    assert client.opening["sec-websocket-protocol"] == "chat"
    assert json.loads(client.receive()) == {"hello": "you"}
    assert client.closed()[0] == 4000


def test_a_framework_denies(site: Server) -> None:
    with site.connect() as client:
        assert client.send(handshake("/socket/denied")).answer().status in (401, 403)


def test_a_framework_is_told_that_a_client_vanished(site: Server, opened: Opener) -> None:
    count = len(site.log().split("the socket ends")) - 1
    client = opened(site, "/socket/echo")
    assert client.send("a").receive() == "echo a"
    client.client.reset()
    site.until_logged("the socket ends", times=count + 1)
    site.until_zero()
