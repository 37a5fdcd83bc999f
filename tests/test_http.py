"""HTTP/1.1, HTTP/1.0 and HTTP/2 as clients use them."""

from __future__ import annotations

import hashlib
from email.utils import parsedate_to_datetime

import pytest

from .conftest import Serve
from .harness.client import chunked, request
from .harness.server import Server
from .harness.sse import parse
from .harness.until import BUSY

pytestmark = [pytest.mark.also_in_perl, pytest.mark.needs]

LARGE = pytest.mark.needs("data")
LONG = pytest.param("/bytes/100000", marks=LARGE)
AFTER = pytest.param("/after/0.01", marks=pytest.mark.needs("waits"))
MEGABYTE = bytes(range(256)) * 4096
HEAD_NAMES = {"content-type", "content-length", "date"}


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic")


# One connection, many requests


@pytest.mark.promise(1)
def test_a_connection_carries_one_request_after_another(server: Server) -> None:
    client = server.connect()
    assert [client.get(f"/hola/{number}").text for number in range(20)] == [f"Hola {number}" for number in range(20)]


@pytest.mark.promise(1)
@pytest.mark.needs("waits")
def test_pipelined_requests_are_answered_once_each_in_their_order(server: Server) -> None:
    client = server.connect()
    client.send(
        *(request("GET", target) for target in ("/after/0.1", "/constant", "/hola/a", "/after/0.01", "/status/404"))
    )
    answers = [client.answer() for _ in range(5)]
    assert [(answer.status, answer.text) for answer in answers] == [
        (200, "after 0.1"),
        (200, "constant"),
        (200, "Hola a"),
        (200, "after 0.01"),
        (404, ""),
    ]
    assert not client.is_readable()


def test_a_thousand_pipelined_requests_get_a_thousand_answers(server: Server) -> None:
    client = server.connect()
    client.send(b"".join(request("GET", f"/hola/{number}") for number in range(1000)))
    assert [client.answer().text for _ in range(1000)] == [f"Hola {number}" for number in range(1000)]


def test_requests_may_come_a_byte_at_a_time(server: Server) -> None:
    client = server.connect()
    for byte in request("POST", "/echo", body=b"slow"):
        client.send(bytes([byte]))
    assert client.answer().json()["body"] == "slow"


def test_empty_lines_before_a_request_are_read_over(server: Server) -> None:
    assert server.connect().send(b"\r\n\r\n", request("GET", "/hola/x")).answer().text == "Hola x"


def test_a_connection_closes_when_the_client_says_so_and_the_answer_tells_it(server: Server) -> None:
    client = server.connect()
    assert client.get("/hola/x", "Connection: close")["connection"] == "close"
    assert client.ends()


# Bodies


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 262_145, 3 << 20])
def test_a_body_of_any_size_reaches_the_handler_whole(server: Server, size: int) -> None:
    body = (MEGABYTE * 4)[:size]
    told = server.post("/digest", body).json()
    assert told == {"bytes": size, "sha256": hashlib.sha256(body).hexdigest()}


@pytest.mark.parametrize("pieces", [[b"a"], [b"one", b"", b"two"], [b"x" * 70_000, b"y"], [MEGABYTE[:5]] * 300])
def test_a_chunked_body_reaches_the_handler_whole(server: Server, pieces: list[bytes]) -> None:
    pieces = [piece for piece in pieces if piece]
    client = server.connect()
    client.send(request("POST", "/digest", "Transfer-Encoding: chunked"), chunked(*pieces))
    assert client.answer().json()["sha256"] == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert client.get("/hola/x").status == 200


def test_chunk_extensions_and_trailers_are_read_over(server: Server) -> None:
    client = server.connect()
    body = b"3;name=value\r\nabc\r\nA\r\n0123456789\r\n0;last\r\nX-Trailer: yes\r\nHost: evil\r\n\r\n"
    client.send(request("POST", "/echo", "Transfer-Encoding: chunked"), body)
    told = client.answer().json()
    assert told["body"] == "abc0123456789"
    assert "evil" not in str(told["headers"])
    assert client.get("/hola/x").status == 200


@pytest.mark.parametrize("size", [0, 1, 65_536, *(pytest.param(size, marks=LARGE) for size in (65_537, 10 << 20))])
def test_an_answer_of_any_size_arrives_whole(server: Server, size: int) -> None:
    answer = server.get(f"/bytes/{size}")
    assert (answer.status, answer["content-length"], len(answer.body)) == (200, str(size), size)


@pytest.mark.needs("data")
def test_a_streamed_answer_is_chunked_and_whole(server: Server) -> None:
    answer = server.get("/stream/100/1000")
    assert answer["transfer-encoding"] == "chunked"
    assert answer.body == b"".join(b"%c" % (97 + at % 26) * 1000 for at in range(100))


@pytest.mark.needs("data")
def test_a_streamed_answer_of_many_megabytes_arrives_whole(server: Server) -> None:
    assert len(server.get("/stream/200/100000").body) == 20_000_000


@pytest.mark.needs("data")
def test_the_pieces_of_a_streamed_answer_come_when_they_are_made(server: Server) -> None:
    gate = server.new_gate()
    client = server.connect().ask("GET", f"/gated-stream/{gate}")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"before"
    assert not client.is_readable()
    server.open_gate(gate)
    assert list(pieces) == [b"behind"]


def test_a_client_that_expects_100_continue_is_told_to_go_on(server: Server) -> None:
    client = server.connect()
    client.send(request("POST", "/echo", "Content-Length: 4", "Expect: 100-continue"))
    interim = client.answer()
    assert (interim.status, interim.body) == (100, b"")
    assert client.send(b"body").answer().json()["body"] == "body"
    assert client.get("/hola/x").status == 200


def test_a_client_of_http2_that_expects_100_continue_is_told_to_go_on(server: Server) -> None:
    with server.connect2() as client:
        stream = client.ask("POST", "/echo", ("content-length", "4"), ("expect", "100-continue"), end=False)
        assert client.interim(stream).status == 100
        client.send(stream, b"body")
        assert client.answer(stream).json()["body"] == "body"
        empty = client.ask("POST", "/echo", ("expect", "100-continue"))
        assert client.answer(empty).status == 200
        assert client.streams[empty].interim == [], "its body has come"


def test_a_chunked_body_may_be_expected_too(server: Server) -> None:
    client = server.connect()
    client.send(request("POST", "/echo", "Transfer-Encoding: chunked", "Expect: 100-Continue"))
    assert client.answer().status == 100
    assert client.send(chunked(b"body")).answer().json()["body"] == "body"


def test_no_100_is_sent_to_who_sends_the_body_at_once(server: Server) -> None:
    answer = server.connect().ask("POST", "/echo", "Expect: 100-continue", body=b"there").answer()
    assert (answer.status, answer.json()["body"]) == (200, "there")


# HEAD, fields of the response


@pytest.mark.parametrize("target", ["/hola/x", "/constant", "/bytes/5", LONG, AFTER, "/nowhere"])
def test_head_is_answered_like_get_without_the_body(server: Server, target: str) -> None:
    client = server.connect()
    got = client.get(target)
    head = client.ask("HEAD", target).answer(head=True)
    assert head.status == got.status
    assert [field for field in head.fields if field[0] in HEAD_NAMES - {"date"}] == [
        field for field in got.fields if field[0] in HEAD_NAMES - {"date"}
    ]
    assert client.get("/hola/behind").text == "Hola behind", "the connection goes on"


@pytest.mark.needs("data")
def test_head_of_a_streamed_answer_has_no_body(server: Server) -> None:
    client = server.connect()
    assert client.ask("HEAD", "/stream/3/10").answer(head=True).status == 200
    assert client.get("/hola/behind").text == "Hola behind"
    server.until_zero()


@pytest.mark.parametrize(
    "target", ["/hola/x", "/constant", AFTER, "/nowhere", pytest.param("/stream/2/2", marks=LARGE)]
)
def test_every_answer_has_one_date(server: Server, target: str) -> None:
    date = parsedate_to_datetime(server.get(target)["date"])
    now = parsedate_to_datetime(server.get("/constant")["date"])
    assert abs((now - date).total_seconds()) <= BUSY


def test_a_date_of_the_applications_own_stays(server: Server) -> None:
    assert server.get("/dated")["date"] == "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize("code", [204, 304])
def test_what_has_no_body_has_no_framing(server: Server, code: int) -> None:
    client = server.connect()
    answer = client.get(f"/status/{code}")
    assert (answer.status, answer.body) == (code, b"")
    assert "content-length" not in answer
    assert "transfer-encoding" not in answer
    assert client.get("/hola/x").status == 200


@pytest.mark.parametrize("target", ["/status/205", "/bodiless/205", pytest.param("/bodiless-stream/205", marks=LARGE)])
def test_a_205_has_no_body_and_says_so(server: Server, target: str) -> None:
    client = server.connect()
    answer = client.get(target)
    assert (answer.status, answer["content-length"], answer.body) == (205, "0", b"")
    assert "transfer-encoding" not in answer
    assert client.get("/hola/x").text == "Hola x"


@pytest.mark.parametrize("code", [204, 205, 304])
@pytest.mark.parametrize("target", ["/bodiless", pytest.param("/bodiless-stream", marks=LARGE)])
def test_what_has_no_body_has_none_in_http_2(server: Server, target: str, code: int) -> None:
    client = server.connect2()
    answer = client.get(f"{target}/{code}")
    assert (answer.status, answer.body) == (code, b"")


@pytest.mark.needs("routes")
def test_the_core_says_in_json_whose_fault_it_is(server: Server) -> None:
    answer = server.get("/nowhere")
    assert answer["content-type"] == "application/problem+json"
    told = answer.json()
    assert (answer.status, told["status"], told["fault"]) == (404, 404, "client")


@pytest.mark.needs("routes")
def test_another_method_is_405_with_those_that_there_are(server: Server) -> None:
    answer = server.post("/hola/x")
    assert answer.status == 405
    assert set(answer["allow"].split(", ")) >= {"GET", "HEAD"}


# Fields and targets of the request


def test_names_with_an_underscore_never_reach_the_application(server: Server) -> None:
    told = server.get("/echo", "X_Real_Ip: forged", "X-Real-IP: true", "Content_Length: 5").json()
    names = [name.lower() for name, _ in told["headers"]]
    assert "x-real-ip" in names
    assert not [name for name in names if "_" in name]


@pytest.mark.python_only("fields are a hash in Perl")
def test_fields_come_in_their_order_with_their_repetitions(server: Server) -> None:
    told = server.get("/echo", "X-A: 1", "X-B: 2", "x-a:   3  ", "X-Empty:").json()
    assert [pair for pair in told["headers"] if pair[0].lower().startswith("x-")] == [
        ["x-a", "1"],
        ["x-b", "2"],
        ["x-a", "3"],
        ["x-empty", ""],
    ]


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/echo?a=b&c=%20d", "/echo", "a=b&c=%20d"),
        ("/echo?", "/echo", ""),
        ("/echo?a?b", "/echo", "a?b"),
        ("http://test/echo?x", "/echo", "x"),
        ("/%65cho", "/%65cho", ""),
    ],
)
def test_a_target_is_taken_apart(server: Server, target: str, path: str, query: str) -> None:
    told = server.get(target).json()
    assert (told["path"], told["query"]) == (path, query)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("/echo/a/b", "a/b"),
        ("/echo/a%2Fb", "a/b"),
        ("/echo/%C3%B1%20", "ñ "),
        ("/echo/a%2525", "a%25"),
        ("/echo/..x", "..x"),
        ("/echo/a//", "a//"),
        ("/echo/%252e%252e/x", "%2e%2e/x"),
    ],
)
def test_a_path_is_decoded_once(server: Server, target: str, told: str) -> None:
    assert server.get(target).text == told


@pytest.mark.parametrize(
    "target",
    [
        "/echo/../x",
        "/echo/../../etc/passwd",
        "/echo/%2e%2e/x",
        "/echo/.%2E%2fx",
        "/echo/a%2f..%2f..%2fb",
        "/echo/..\\x",
        "/echo/x%5c..",
        "/echo/.",
    ],
)
def test_a_path_that_leads_upwards_is_refused(server: Server, target: str) -> None:
    assert server.get(target).status == 400
    assert server.connect2().get(target).status == 400


@pytest.mark.parametrize("target", ["/echo//etc/passwd", "/echo/%2Fetc/passwd", "/echo/%5cetc", "/echo//"])
@pytest.mark.needs("routes")
def test_no_parameter_begins_with_a_slash(server: Server, target: str) -> None:
    assert server.get(target).status == 404


# HTTP/1.0


def test_http_1_0_closes_behind_the_answer(server: Server) -> None:
    client = server.connect().send(b"GET /hola/old HTTP/1.0\r\n\r\n")
    answer = client.answer()
    assert (answer.text, answer["connection"]) == ("Hola old", "close")
    assert client.ends()


def test_http_1_0_may_keep_its_connection(server: Server) -> None:
    client = server.connect()
    for _ in range(2):
        answer = client.send(b"GET /hola/old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").answer()
        assert (answer.text, answer["connection"]) == ("Hola old", "keep-alive")


@pytest.mark.needs("data")
def test_http_1_0_gets_a_streamed_answer_until_the_end_of_the_connection(server: Server) -> None:
    client = server.connect().send(b"GET /stream/3/2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    answer = client.answer()
    assert (answer.body, answer["connection"]) == (b"aabbcc", "close")
    assert "transfer-encoding" not in answer


def test_http_1_0_is_not_told_to_continue(server: Server) -> None:
    client = server.connect()
    client.send(b"POST /echo HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert not client.is_readable(0.1)
    assert client.send(b"hi").answer().json()["body"] == "hi"


@pytest.mark.needs("waits")
def test_http_1_0_waits_like_any_other(server: Server) -> None:
    client = server.connect().send(b"GET /next/old HTTP/1.0\r\n\r\n")
    server.until_parked(1)
    server.publish("old", b"message")
    assert client.answer().body == b"message"
    assert client.ends()


# HTTP/2, by prior knowledge, on the same port


def test_http_2_gets_and_posts(server: Server) -> None:
    client = server.connect2()
    answer = client.get("/hola/two")
    assert (answer.status, answer.text) == (200, "Hola two")
    assert parsedate_to_datetime(answer["date"])
    told = client.answer(client.ask("POST", "/echo", ("x-a", "b"), ("x_c", "d"), body=b"body")).json()
    assert (told["method"], told["version"], told["body"], told["scheme"]) == ("POST", "2", "body", "http")
    assert ["x-a", "b"] in told["headers"]
    assert ["host", "test"] in told["headers"]
    assert "x_c" not in str(told["headers"])


@pytest.mark.needs("routes", "waits")
def test_http_2_answers_every_kind_of_route(server: Server) -> None:
    client = server.connect2()
    targets = ["/constant", "/standing-timer", "/after/0.01", "/after-then/0.01", "/status/204", "/nowhere", "/raise"]
    assert [client.get(target).status for target in targets] == [200, 200, 200, 200, 204, 404, 500]
    head = client.answer(client.ask("HEAD", "/bytes/5"))
    assert (head.status, head.body, head["content-length"]) == (200, b"", "5")


@pytest.mark.parametrize("size", [65_535, 3 << 20])
@pytest.mark.needs("data")
def test_http_2_carries_large_bodies_both_ways(server: Server, size: int) -> None:
    client = server.connect2()
    body = (MEGABYTE * 4)[:size]
    assert client.answer(client.ask("POST", "/digest", body=body)).json()["sha256"] == hashlib.sha256(body).hexdigest()
    assert len(client.get(f"/bytes/{size}").body) == size
    assert len(client.get(f"/stream/{size // 50_000}/50000").body) == size // 50_000 * 50_000


@pytest.mark.needs("data")
def test_http_2_streams_pieces_as_they_are_made(server: Server) -> None:
    gate = server.new_gate()
    client = server.connect2()
    stream = client.ask("GET", f"/gated-stream/{gate}")
    assert client.piece(stream) == b"before"
    server.open_gate(gate)
    assert client.piece(stream) == b"behind"
    assert client.piece(stream) == b""


@pytest.mark.needs("waits", "publish")
def test_http_2_gets_server_sent_events(server: Server) -> None:
    client = server.connect2()
    stream = client.ask("GET", "/events/two")
    assert client.opening(stream)["content-type"] == "text/event-stream"
    server.until(lambda status: status["waits"].get("stream", {}).get("count") == 1)
    for number in range(3):
        server.publish("two", b"%d" % number)
    events = (event for event in parse(iter(lambda: client.piece(stream), b"")) if event.data is not None)
    assert [next(events).data for _ in range(3)] == ["0", "1", "2"]
    client.reset(stream)
    server.until_zero()


@pytest.mark.needs("waits", "publish")
def test_http_2_streams_wait_beside_each_other(server: Server) -> None:
    client = server.connect2()
    waiting = [client.ask("GET", "/next/beside") for _ in range(50)]
    server.until_parked(50)
    assert client.get("/hola/beside").text == "Hola beside"
    server.publish("beside", b"all")
    assert {client.answer(stream).body for stream in waiting} == {b"all"}
    server.until_zero()


@pytest.mark.needs("waits")
def test_a_stream_that_is_reset_is_forgotten_and_its_neighbour_is_not(server: Server) -> None:
    client = server.connect2()
    gone, stays = client.ask("GET", "/next/neighbour"), client.ask("GET", "/next/neighbour")
    server.until_parked(2)
    client.reset(gone)
    server.until_parked(1)
    server.publish("neighbour", b"for one")
    assert client.answer(stays).body == b"for one"


def test_a_body_of_http_2_may_come_in_pieces(server: Server) -> None:
    client = server.connect2()
    stream = client.ask("POST", "/echo", end=False)
    client.send(stream, b"one ", end=False)
    client.send(stream, b"two")
    assert client.answer(stream).json()["body"] == "one two"


def test_the_preface_may_come_a_byte_at_a_time(server: Server) -> None:
    from .harness.http2 import Http2

    class Dribble(Http2):
        def flush(self) -> None:
            for byte in self.connection.data_to_send():
                self.socket.sendall(bytes([byte]))

    with Dribble(server.address) as client:
        assert client.get("/hola/slow").text == "Hola slow"


def test_both_protocols_are_counted(server: Server) -> None:
    one, two = server.connect(), server.connect2()
    one.get("/constant")
    two.get("/constant")
    server.until(lambda status: status["connections"]["http1"] >= 1 and status["connections"]["http2"] >= 1)
