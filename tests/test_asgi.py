"""ASGI applications: what the specification says of HTTP and of the lifespan, and what servers do besides."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client, Closed
from .harness.server import Server
from .harness.versions import VERSIONS, Ask, asking_over

STREAMS = 50


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("raw_asgi", workers=1)


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


# The request


def test_the_scope_tells_of_the_request(ask: Ask) -> None:
    told = ask("/scope?a=%20&b", fields=(("accept", "a"), ("accept", "c"), ("x-b", "b"))).json()
    assert (told["type"], told["method"], told["scheme"]) == ("'http'", "'GET'", "'http'")
    assert (told["path"], told["raw_path"], told["query_string"]) == ("'/scope'", "/scope", "a=%20&b")
    assert told["root_path"] == "''"
    assert told["http_version"] in ("'1.1'", "'2'")
    assert re.fullmatch(r"\('127\.0\.0\.1', [1-9]\d*\)", told["client"])
    assert "'version': '3.0'" in told["asgi"]
    assert told["state"] == ["count", "shared"]
    fields = [field for field in told["headers"] if field[0] in ("accept", "x-b")]
    assert fields == [["accept", "a"], ["accept", "c"], ["x-b", "b"]]
    assert [name for name, _ in told["headers"]].count("host") == 1


def test_client_and_server_are_the_ends_of_the_connection(server: Server) -> None:
    with server.connect() as client:
        told = client.send(b"GET /scope HTTP/1.1\r\nHost: example.com:1\r\n\r\n").answer().json()
        assert told["client"] == repr(client.socket.getsockname())
        assert told["server"] == repr(client.socket.getpeername())


@pytest.mark.parametrize("path", ["/scope", "/shop/scope"])
def test_the_root_path_is_a_part_of_the_path(serve: Serve, path: str) -> None:
    told = serve("raw_asgi", root_path="/shop/").get(path).json()
    assert (told["root_path"], told["path"], told["raw_path"]) == ("'/shop'", "'/shop/scope'", "/shop/scope")


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ("/hola/J%C3%BCrgen", "Hola J\u00fcrgen"),
        ("/hola/%e9", "Hola \ufffd"),
        ("/%68ola/a%20b", "Hola a b"),
        ("/hola/100%", "Hola 100%"),
    ],
)
def test_the_path_is_decoded(server: Server, sent: str, path: str) -> None:
    assert server.get(sent).text == path


def test_the_raw_path_is_as_it_was_sent(server: Server) -> None:
    told = server.get("/%73cope").json()
    assert (told["path"], told["raw_path"]) == ("'/scope'", "/%73cope")


def test_the_request_has_the_id_that_the_response_tells(server: Server) -> None:
    answer = server.get("/scope")
    assert answer.json()["parkade.request_id"] == repr(answer["x-request-id"])


def test_the_scheme_and_the_client_are_those_that_a_trusted_proxy_tells(serve: Serve) -> None:
    server = serve("raw_asgi", trust="127.0.0.1")
    told = server.get("/scope", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https").json()
    assert (told["client"], told["scheme"]) == ("('192.0.2.7', 0)", "'https'")


@pytest.mark.parametrize("body", [b"some bytes", bytes(range(256)) * 10_000], ids=["short", "long"])
def test_a_body_is_received(ask: Ask, body: bytes) -> None:
    assert ask("/echo", "POST", body).body == body


def test_a_chunked_body_is_received(server: Server) -> None:
    with server.connect() as client:
        client.send(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        assert client.answer().body == b"abcde"


def test_a_body_that_nobody_receives_is_no_obstacle(server: Server) -> None:
    with server.connect() as client:
        for length in (200_000, 400_000):
            answer = client.post("/unread", b"x" * length)
            assert answer.text == "unread"
        assert answer["connection"] == "close", "so long a rest is not read, so nothing can follow it"
    assert server.get("/hola/you").text == "Hola you"


def test_receive_tells_the_end_after_the_response(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    server.get("/unread")
    server.until_logged("after the response: http.disconnect")


# The response


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/hola/you", 200, b"Hola you"),
        ("/pieces", 200, b"one two"),
        ("/nothing", 204, b""),
        ("/nothing-with-body", 204, b""),
        ("/unchanged", 304, b""),
        ("/empty", 200, b""),
        ("/bare", 200, b"bare"),
        ("/long", 200, b"x" * 3_000_000),
        ("/length/5/5", 200, b"xxxxx"),
        ("/two-tasks", 200, b"x" * 900_000),
        ("/thread", 200, None),
        ("/wait", 200, b"waited"),
    ],
)
def test_a_response_is_sent(ask: Ask, target: str, status: int, body: bytes | None) -> None:
    answer = ask(target)
    assert answer.status == status
    assert body is None or answer.body == body


@pytest.mark.parametrize("length", [0, 1, 65_536, 1_000_000])
@pytest.mark.parametrize("path", ["/sent-file", "/sent-once"])
def test_a_file_is_sent_by_its_path(ask: Ask, tmp_path: Path, path: str, length: int) -> None:
    """It may be removed as soon as it is sent."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * length)
    answer = ask(f"{path}?{file}")
    assert (answer.status, answer.body) == (201 if path == "/sent-file" else 200, b"x" * length)
    assert ("'http.response.pathsend'" in ask("/scope").json()["extensions"]) is True


@pytest.mark.parametrize(("file", "why"), [("/nowhere/x", "FileNotFoundError"), ("x", "is an absolute path")])
def test_a_file_that_cannot_be_sent_is_500(ask: Ask, server: Server, file: str, why: str) -> None:
    assert ask(f"/sent-file?{file}").status == 500
    server.until_logged(f"GET /sent-file: .*{why}")


def test_a_response_has_its_fields(ask: Ask) -> None:
    answer = ask("/fields")
    assert (answer.status, answer.text) == (201, "fields")
    assert [value for name, value in answer.fields if name.lower() == "set-cookie"] == ["a=1", "b=2"]


def test_text_of_fields_is_their_bytes(server: Server) -> None:
    assert server.get("/named")["x-name"] == "J\xfcrgen"


@pytest.mark.parametrize("target", ["/hola/you", "/pieces", "/length/5/0", "/length/5/5", "/empty"])
def test_head_has_no_body(ask: Ask, target: str) -> None:
    answer = ask(target, "HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_a_piece_is_sent_before_the_next_is_made(server: Server) -> None:
    gate = server.new_gate()
    with server.connect().ask("GET", f"/held/{gate}") as client:
        pieces = client.pieces(client.opening())
        assert next(pieces) == b"one "
        server.open_gate(gate)
        assert b"".join(pieces) == b"two"


def test_requests_wait_at_the_same_time(server: Server) -> None:
    gate = server.new_gate()
    clients = server.waiting(f"/held/{gate}", STREAMS)
    for client in clients:
        assert next(client.pieces(client.opening())) == b"one "
    assert server.get("/hola/you").text == "Hola you"
    server.open_gate(gate)


def test_each_request_has_its_own_context(server: Server) -> None:
    assert [server.get(f"/context/{name}").text for name in "ab"] == ["nobody a", "nobody b"]


def test_a_slow_reader_holds_up_its_own_response_alone(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, stall_timeout="1s")
    slow = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless")
    slow.opening()
    assert server.get("/hola/you").status == 200
    server.until_logged("the endless response ends")
    server.still_serves()


# Mistakes


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/raises", "ValueError: at once"),
        ("/raises/started", "ValueError: after the start"),
        ("/exits", "SystemExit: of a request"),
        ("/silent", "the application returned without a response"),
        ("/unfinished", "the application returned without http.response.body, after http.response.start"),
        ("/twice", "the application sent http.response.start a second time"),
        ("/unstarted", "the application sent http.response.body before http.response.start"),
        ("/strange", "the application sent 'websocket.accept', which is not a message of a response"),
        ("/text", "the body of a message is str, not bytes"),
        ("/text-field", "a header is two byte strings, not 'x-a': 'b'"),
        ("/status/fine", "the status is a number, not 'fine'"),
        ("/status/101", "the status is a number from 200 to 599, not 101"),
    ],
)
def test_a_mistake_is_500_and_logged(ask: Ask, server: Server, target: str, why: str) -> None:
    answer = ask(target)
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(rf"GET {target}: .*{re.escape(why)}")


@pytest.mark.parametrize("target", ["/length/5/6", "/length/5/4", "/line-end"])
def test_a_response_that_cannot_be_sent_is_500(ask: Ask, server: Server, target: str) -> None:
    assert ask(target).status == 500
    server.until_logged("the application returned a response that cannot be sent")


@pytest.mark.parametrize("target", ["/broken", "/unended", "/streamed-length/5/4", "/streamed-length/5/6"])
def test_what_is_broken_off_is_seen_by_its_client(server: Server, target: str) -> None:
    with server.connect().ask("GET", target) as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/too-much", "the application sent http.response.body after the end of its response"),
        ("/raises-after-response", "ValueError: after the response"),
    ],
)
def test_a_mistake_after_the_response_is_logged(server: Server, target: str, why: str) -> None:
    assert server.get(target).text == "sent"
    server.until_logged(rf"GET {target}: .*{why}")


# The client leaves


def test_receive_tells_that_the_client_has_left_before_the_first_byte(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect().ask("POST", "/left/waiting", body=b"body"):
        server.until_logged("/left/waiting begins")
    server.until_logged("receive says that the client has left")
    server.until_logged("send raises OSError")
    server.until_zero()
    assert "ERROR" not in server.log()


def test_receive_tells_that_the_client_has_left_while_streaming(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect().ask("GET", "/left/streaming") as client:
        assert next(client.pieces(client.opening())) == b"one "
    server.until_logged("receive says that the client has left")
    server.until_logged("send raises OSError")
    server.until_zero()
    assert "ERROR" not in server.log()


def test_a_send_that_waits_for_its_client_ends_when_that_leaves(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect(receive_buffer=4096, segment=1460).ask("GET", "/left/full") as client:
        client.opening()
    server.until_logged("send says that the client has left")
    server.still_serves()


def test_an_application_that_computes_goes_on_without_its_client(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect().ask("GET", "/left/computing?work"):
        server.until_logged("/left/computing begins")
    server.until(lambda status: status["lives"]["running"] == 0)
    server.open_gate("work")
    server.until_logged("computed for nobody")
    server.until_logged("send raises OSError")
    server.still_serves()


def test_an_application_may_ask_to_be_cancelled(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect().ask("GET", "/cancellable"):
        server.until_logged("cancellable begins")
    server.until_logged("the application was cancelled")
    server.still_serves()
    assert "ERROR" not in server.log()


def test_a_setting_has_applications_cancelled_when_their_clients_leave(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, on_disconnect="cancel")
    with server.connect().ask("GET", "/left/computing?work"):
        server.until_logged("/left/computing begins")
    server.until_logged("/left/computing was cancelled")
    server.still_serves()
    assert "ERROR" not in server.log()


def test_a_wait_ends_when_the_client_leaves(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    with server.connect().ask("GET", "/wait/long"):
        server.until_parked(1)
    server.until_logged("the wait was cancelled")
    server.still_serves()
    assert "ERROR" not in server.log()


def test_the_deadline_cancels(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, deadline="300ms")
    assert server.get("/deadline").status == 504
    server.until_logged("the deadline has passed")
    server.still_serves()


@pytest.mark.parametrize("target", ["/held/gate", "/held/gate?after-a-wait"])
def test_the_deadline_is_for_the_beginning_of_a_response(serve: Serve, target: str) -> None:
    server = serve("raw_asgi", workers=1, deadline="500ms")
    with server.connect().ask("GET", target) as client:
        pieces = client.pieces(client.opening())
        assert next(pieces) == b"one "
        assert server.get("/deadline").status == 504  # which began later
        server.open_gate("gate")
        assert b"".join(pieces) == b"two"


def test_the_deadline_cancels_also_what_goes_on_without_its_client(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, deadline="1s", kill_grace="10s")
    with server.connect().ask("GET", "/left/computing?never"):
        server.until_logged("/left/computing begins")
    server.until_zero()
    assert "computed for nobody" not in server.log()


# The lifespan


def test_requests_share_what_the_lifespan_made(serve: Serve) -> None:
    """Each has a copy of the state itself."""
    server = serve("raw_asgi", workers=1)
    assert server.get("/state").json() == {"shared": ["from the start", "by a request"], "count": 1}
    assert server.get("/state").json()["count"] == 1
    server.stop()
    assert "the lifespan ends" in server.log()


@pytest.mark.parametrize("how", ["unknown", "returns"])
def test_an_application_need_not_have_a_lifespan(serve: Serve, how: str) -> None:
    server = serve("raw_asgi", workers=1, environment={"LIFESPAN": how})
    assert server.get("/hola/you").text == "Hola you"
    server.until_logged(r"an ASGI application runs on (uvloop|asyncio)\S*, without a lifespan")
    assert server.stop() == 0
    assert "ERROR" not in server.log()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("failed", "there is no database"),
        ("failed and raises", "there is no database"),
        ("raises", "ValueError: in the middle of the start"),
    ],
)
def test_an_application_that_does_not_start_is_not_served(serve: Serve, how: str, why: str) -> None:
    server = serve("raw_asgi", is_ready=False, environment={"LIFESPAN": how})
    assert server.fails() == 1
    assert why in server.log()
    assert "never retrieved" not in server.log()


@pytest.mark.parametrize(
    ("how", "why"), [("stop fails", "something is left"), ("stop raises", "ValueError: in the middle of the stop")]
)
def test_a_failure_of_the_shutdown_is_logged(serve: Serve, how: str, why: str) -> None:
    server = serve("raw_asgi", workers=1, environment={"LIFESPAN": how})
    assert server.stop() == 0
    assert why in server.log()


def test_a_lifespan_that_dies_is_logged(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, environment={"LIFESPAN": "dies"})
    server.open_gate("dies")
    server.until_logged("the lifespan of the application: ValueError: in the middle of the day")
    server.still_serves()
    assert server.stop() == 0


def test_developers_see_the_traceback(serve: Serve) -> None:
    server = serve("raw_asgi", command="dev", workers=None, job_workers=None, grace=None)
    answer = server.get("/raises", "Accept: text/html")
    assert answer.status == 500
    assert "ValueError" in answer.text
    assert "raw_asgi.py" in answer.text


def test_work_after_the_response_is_done_before_the_lifespan_ends(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1)
    assert server.get("/after-response/work").text == "sent"
    server.signal(signal.SIGTERM)
    server.open_gate("work")
    assert server.ended() == 0
    assert "the work after the response is done" in server.log()
    assert server.log().index("the work after the response is done") < server.log().index("the lifespan ends")


# Stops and reloads


def test_a_stop_lets_a_response_finish(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, grace="10s")
    client = server.connect().ask("GET", "/held/stop")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"one "
    server.signal(signal.SIGTERM)
    server.open_gate("stop")
    assert b"".join(pieces) == b"two"


def test_streams_are_told_of_a_stop_and_end_themselves(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, grace="20s")
    streams = [_begun(client) for client in server.waiting("/stream-until-shutdown", STREAMS)]
    server.signal(signal.SIGTERM)
    assert {b"".join(pieces) for pieces in streams} == {b"and ended"}
    assert server.ended() == 0


def test_streams_go_on_during_reloads(serve: Serve) -> None:
    server = serve("raw_asgi", workers=1, grace="20s")
    told, untold = [], []
    for _ in range(3):
        told += [_begun(client) for client in server.waiting("/stream-until-shutdown", STREAMS)]
        untold += [_begun(client) for client in server.waiting("/held/gate", STREAMS)]
        server.reload()
    assert {b"".join(pieces) for pieces in told} == {b"and ended"}
    server.open_gate("gate")
    assert {b"".join(pieces) for pieces in untold} == {b"two"}
    server.still_serves()


def _begun(client: Client):  # type: ignore[no-untyped-def]
    pieces = client.pieces(client.opening())
    assert next(pieces) in (b"begun ", b"one ")
    return pieces


# Which application


@pytest.mark.parametrize(
    "source",
    [
        "app = respond",
        "application = respond",
        "class App:\n    async def __call__(self, *three): await respond(*three)\napp = App()",
        "class App:\n    async def main(self, scope, receive, send): await respond(scope, receive, send)\n"
        "app = App().main",
        "def app(scope, receive, send): return respond(scope, receive, send)",
        "from functools import partial\n"
        "async def late(name, scope, receive, send): await respond(scope, receive, send)\n"
        "app = partial(late, 'a')",
        "class app:\n"
        "    def __init__(self, scope, receive, send): self.coming = respond(scope, receive, send)\n"
        "    def __await__(self): return self.coming.__await__()",
    ],
    ids=["function", "application", "object", "method", "plain function", "partial", "awaitable class"],
)
def test_what_takes_three_and_is_awaited_is_an_application(serve: Serve, tmp_path: Path, source: str) -> None:
    (tmp_path / "site_of_test.py").write_text(
        "async def respond(scope, receive, send):\n"
        "    assert scope['type'] == 'http'\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': b'Hola you'})\n" + source
    )
    server = serve(tmp_path / "site_of_test.py")
    assert server.get("/").text == "Hola you"


def test_an_asgi_2_application_is_refused_in_words(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text(
        "class App:\n    def __init__(self, scope): ...\n    async def __call__(self, receive, send): ...\napp = App\n"
    )
    server = serve(tmp_path / "double.py", is_ready=False)
    server.until_logged("takes only a scope, as in ASGI 2: Parkade runs ASGI 3")
