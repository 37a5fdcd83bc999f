"""WSGI applications: what PEP 3333 says, and Flask and Django unchanged."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client, Closed
from .harness.server import Server
from .harness.until import until
from .harness.versions import VERSIONS, Ask, asking_over


@pytest.fixture(scope="module", params=[1, 4], ids=["alone", "threads"])
def threads(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, threads: int) -> Server:
    return serve_for_all("raw_wsgi", workers=1, threads=threads)


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


# The request


def test_the_environment_tells_of_the_request(ask: Ask, server: Server, threads: int) -> None:
    fields = (("accept", "a"), ("accept", "b"), ("cookie", "c=1"), ("cookie", "d=2"))
    told = ask("/environ?a=%20&b", fields=fields).json()
    assert (told["REQUEST_METHOD"], told["SCRIPT_NAME"], told["PATH_INFO"]) == ("GET", "", "/environ")
    assert (told["QUERY_STRING"], told["REQUEST_URI"]) == ("a=%20&b", "/environ?a=%20&b")
    assert (told["HTTP_ACCEPT"], told["HTTP_COOKIE"]) == ("a,b", "c=1; d=2")
    assert told["REMOTE_ADDR"] == "127.0.0.1"
    assert told["SERVER_PROTOCOL"] in ("HTTP/1.1", "HTTP/2.0")
    assert (told["SERVER_NAME"], told["SERVER_PORT"]) == ("127.0.0.1", str(server.address[1]))
    assert int(told["REMOTE_PORT"]) > 0
    assert (told["wsgi.url_scheme"], told["wsgi.version"]) == ("http", [1, 0])
    assert (told["wsgi.multithread"], told["wsgi.multiprocess"]) == (threads > 1, True)
    assert told["wsgi.run_once"] is False
    assert "CONTENT_LENGTH" not in told


def test_a_path_is_decoded_to_bytes(ask: Ask) -> None:
    answer = ask("/caf%C3%A9/%e9%2Fx")
    assert (answer.status, answer.text) == (404, "there is no such path")


def test_the_path_is_text_of_its_bytes(server: Server) -> None:
    told = server.get("/%65nviron").json()
    assert (told["PATH_INFO"], told["REQUEST_URI"]) == ("/environ", "/%65nviron")


def test_a_field_that_would_pass_for_another_is_left_out(ask: Ask) -> None:
    told = ask("/environ", fields=(("x_forwarded_for", "1.1.1.1"), ("proxy", "http://evil"))).json()
    assert [name for name in told if "FORWARDED" in name or "PROXY" in name] == []


def test_a_body_is_read(ask: Ask) -> None:
    assert ask("/echo", "POST", b"some bytes").body == b"some bytes"
    assert ask("/lines", "POST", b"a\nbcd\ne").body == b"a\n|bc|d\n|e"


def test_a_long_body_is_read_and_sent(ask: Ask) -> None:
    body = bytes(range(256)) * 10_000
    assert ask("/echo", "POST", body).body == body


def test_a_chunked_body_has_a_length(server: Server) -> None:
    with server.connect() as client:
        client.send(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        assert client.answer().body == b"abcde"


def test_the_scheme_and_the_client_are_those_that_a_trusted_proxy_tells(serve: Serve) -> None:
    server = serve("raw_wsgi", trust="127.0.0.1")
    told = server.get("/environ", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https").json()
    assert (told["REMOTE_ADDR"], told["wsgi.url_scheme"]) == ("192.0.2.7", "https")
    assert "REMOTE_PORT" not in told
    assert server.get("/environ", "X-Forwarded-For: [2001:db8::1]:4711").json()["REMOTE_PORT"] == "4711"


def test_the_port_of_the_client_is_that_of_its_connection(server: Server) -> None:
    with server.connect() as client:
        told = client.send(b"GET /environ HTTP/1.1\r\nHost: example.com:1\r\n\r\n").answer().json()
        assert (told["REMOTE_ADDR"], int(told["REMOTE_PORT"])) == client.socket.getsockname()


def test_the_server_at_a_unix_socket_is_the_one_that_was_asked_for(serve: Serve, short_folder: Path) -> None:
    serve("raw_wsgi", bind=f"unix:{short_folder}/s")
    with Client(f"{short_folder}/s") as client:
        told = client.send(b"GET /environ HTTP/1.1\r\nHost: example.com:81\r\n\r\n").answer().json()
    assert (told["SERVER_NAME"], told["SERVER_PORT"]) == ("example.com", "81")
    assert "REMOTE_PORT" not in told


@pytest.mark.parametrize("path", ["/environ", "/shop/environ"])
def test_the_root_path_is_the_script_name(serve: Serve, path: str) -> None:
    told = serve("raw_wsgi", root_path="/shop").get(path).json()
    assert (told["SCRIPT_NAME"], told["PATH_INFO"], told["REQUEST_URI"]) == ("/shop", "/environ", path)


# The response


def test_a_response_has_its_status_and_its_fields(ask: Ask) -> None:
    answer = ask("/fields")
    assert (answer.status, answer.text) == (201, "fields")
    assert [value for name, value in answer.fields if name == "set-cookie"] == ["a=1", "b=2"]


def test_text_of_fields_is_their_bytes(server: Server) -> None:
    assert server.get("/environ", "X-A: J\xfc").json()["HTTP_X_A"] == "J\xfc"
    assert server.get("/named")["x-name"] == "J\xfcrgen"


def test_fields_may_be_text_of_a_class_of_their_own(server: Server) -> None:
    answer = server.get("/own-text")
    assert (answer.status, answer["x-name"]) == (200, "safe")


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/nothing", 204, b""),
        ("/empty", 200, b""),
        ("/pieces", 200, b"one two"),
        ("/file", 200, b"x" * 200_000),
        ("/replaced", 503, b"replaced"),
        ("/lazy", 202, b"late but in time"),
        ("/length/5/5", 200, b"xxxxx"),
        ("/tab", 200, b"tab"),
    ],
)
def test_a_body_of_any_kind_is_sent(ask: Ask, target: str, status: int, body: bytes) -> None:
    answer = ask(target)
    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize("target", ["/hola/you", "/pieces", "/empty"])
def test_head_has_no_body(ask: Ask, target: str) -> None:
    answer = ask(target, "HEAD")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(("path", "first", "rest"), [("held", b"one ", b"two"), ("written", b"written, ", b"returned")])
def test_a_piece_is_sent_before_the_next_is_made(server: Server, path: str, first: bytes, rest: bytes) -> None:
    with server.connect().ask("GET", f"/{path}/{path}") as client:
        pieces = client.pieces(client.opening())
        assert next(pieces) == first
        server.open_gate(path)
        assert b"".join(pieces) == rest


def test_a_body_is_closed_also_if_its_client_leaves(server: Server) -> None:
    before = server.log().count("the body is closed")
    with server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless") as client:
        client.opening()
    until("the body is closed", lambda: server.log().count("the body is closed") == before + 1)
    server.still_serves()


def test_others_are_served_after_a_client_that_does_not_read(serve: Serve) -> None:
    """One request at a time: the next one waits until the client is given up."""
    server = serve("raw_wsgi", workers=1, stall_timeout="1s")
    slow = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless")
    slow.opening()
    assert server.get("/hola/you").status == 200
    server.until_logged("the body is closed")


def test_what_is_broken_off_is_seen_by_its_client(server: Server) -> None:
    with server.connect().ask("GET", "/broken") as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.until_logged("GET /broken: ValueError: in the middle")
    server.until_logged("the body is closed")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/raises", "ValueError: at once"),
        ("/unstarted", "the application did not call start_response before its body"),
        ("/text", "a piece of the body is str, not bytes"),
        ("/twice", "start_response was called a second time, without exc_info"),
        ("/status", "the status is a number and a reason, such as '200 OK', not 'fine'"),
        ("/informational", "the status is a number from 200 to 599, not 101"),
    ],
)
def test_a_mistake_is_500_and_logged(ask: Ask, server: Server, target: str, why: str) -> None:
    answer = ask(target)
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(rf"GET {target}: .*{re.escape(why)}")


def test_a_header_that_would_begin_another_is_500(ask: Ask, server: Server) -> None:
    answer = ask("/split")
    assert answer.status == 500
    assert "forged" not in str(answer.fields)
    server.until_logged("the application returned a response that cannot be sent")


@pytest.mark.parametrize("target", ["/length/5/4", "/length/5/6"])
def test_a_body_of_another_length_is_never_taken_for_the_whole(server: Server, target: str) -> None:
    with server.connect().ask("GET", target) as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.still_serves()


def test_http_1_0_needs_no_host(server: Server) -> None:
    with server.connect() as client:
        told = client.send(b"GET /environ HTTP/1.0\r\n\r\n").answer().json()
    assert (told["SERVER_PROTOCOL"], "HTTP_HOST" in told) == ("HTTP/1.0", False)
    assert (told["SERVER_NAME"], told["SERVER_PORT"]) == ("127.0.0.1", str(server.address[1]))


def test_a_response_that_has_begun_cannot_be_replaced(server: Server) -> None:
    with server.connect().ask("GET", "/late") as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.until_logged("GET /late: ValueError: too late")


def test_a_stop_lets_a_response_finish(serve: Serve, threads: int) -> None:
    server = serve("raw_wsgi", workers=1, threads=threads, grace="10s")
    client = server.connect().ask("GET", "/held/stop")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"one "
    server.signal(signal.SIGTERM)
    server.open_gate("stop")
    assert b"".join(pieces) == b"two"


# Which application


def test_what_cannot_be_called_is_refused_in_words(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("app = {}\n")
    server = serve(tmp_path / "nothing.py", is_ready=False)
    server.until_logged("is a dict, neither a parkade.App nor an application of ASGI or WSGI")


# Flask and Django


def test_flask(serve: Serve, threads: int) -> None:
    server = serve("flask_site", workers=1, threads=threads)
    client = server.connect()
    assert client.get("/hola/you").text == "Hola you"
    form = ("Content-Type: application/x-www-form-urlencoded",)
    cookie = client.post("/login", b"name=Ana", *form)["set-cookie"].partition(";")[0]
    assert client.get("/whoami", f"Cookie: {cookie}").text == "Ana"
    assert client.get("/whoami").text == "None"
    assert client.get("/count/3").text == "/count/3 0\n/count/3 1\n/count/3 2\n"
    assert (client.get("/nowhere").status, client.get("/broken").status) == (404, 500)
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n' + b"y" * 100_000
    upload = client.post("/upload", part + b"\r\n--x--\r\n", "Content-Type: multipart/form-data; boundary=x")
    assert upload.json() == {"name": "a.bin", "bytes": 100_000}
    server.still_serves()


def test_django(serve: Serve, threads: int) -> None:
    server = serve("django_site", workers=1, threads=threads)
    client = server.connect()
    assert client.get("/hola/J%C3%BCrgen").text == "Hola J\u00fcrgen"
    first = client.get("/visits")
    assert first.json() == {"visits": 1}
    cookie = first["set-cookie"].partition(";")[0]
    assert client.get("/visits", f"Cookie: {cookie}").json() == {"visits": 2}
    assert client.get("/told?a=1").json()["url"] == f"http://{client.host}/told?a=1"
    rows = client.get("/rows?count=20000").text.split()
    assert (len(rows), rows[-1]) == (20_000, "20000")
    assert client.get("/nowhere").status == 404
    server.still_serves()


def test_two_slow_readers_of_one_worker_get_their_own_rows(serve: Serve, threads: int) -> None:
    """Django closes its connection to the database with each response: two at a time would disturb each other."""
    server = serve("django_site", workers=1, threads=threads, deadline="300s", stall_timeout="300s")
    clients: list[Client] = [
        server.connect(receive_buffer=4096, segment=1460).ask("GET", "/rows?count=50000") for _ in range(2)
    ]
    for client in clients:
        assert client.answer().text.split()[-1] == "50000"
