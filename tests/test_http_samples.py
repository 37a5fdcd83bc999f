"""Single requests that the tests of Gunicorn have, and that no other file here sends."""

from __future__ import annotations

import json

import pytest

from .conftest import Serve
from .harness.client import Client, request
from .harness.server import Server

CHUNKED = b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"


def _coded(*codings: str) -> bytes:
    """A request with so many fields of this name."""
    fields = "".join(f"Transfer-Encoding: {coding}\r\n" for coding in codings)
    return f"POST /echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n".encode()


@pytest.fixture(scope="module")
def server(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", access_log="json", workers=1)


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b"5\r\nhello\r\n 0\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n-0\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0_0\r\n\r\n",
        CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b" ;foo=bar\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b";foo=bar\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5;ext=val\rue\r\nhello\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: identity, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: identity, \x0bchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 0 1\r\n\r\nx",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\x07b\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\x7fb\r\n\r\n",
        b"GET\xff /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /echo HTTP/1.1\xff\r\nHost: test\r\n\r\n",
        b"GET /echo HTTP/0.9\r\n\r\n",
        b"GET test:80 HTTP/1.1\r\nHost: test\r\n\r\n",
        b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n",
        b"GET http://user:secret@test/echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 65535 80\r\nGET /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"PROXY UNKNOWN\r\nGET /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\1\x7f\0\0\1\0\x50\0\x50GET /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0 \r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n6_0\r\n world\r\n0\r\n\r\n",
        CHUNKED + b"5\n;\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5 ;name=value\r\nhello\r\n0\r\n\r\n",
        _coded("identity, chunked, identity, chunked"),
        _coded("identity", "chunked", "identity", "chunked"),
        _coded("chunked", "gzip"),
        _coded("gzip", "chunked"),
        _coded("gzip"),
        _coded("chunked;q=1"),
        _coded("chunked,"),
        b"GET\n/echo\nHTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET HTTP/1.1\r\nHost: test\r\n\r\n",
        b"bla:rgh /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET: /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET\0 /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET\0POST /echo HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /echo FTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /echo HTTP/111\r\nHost: test\r\n\r\n",
        b"GET /echo HTTP/" + b"1" * 99 + b".1\r\nHost: test\r\n\r\n",
        b"GET /echo HTTP/0.99\r\nHost: test\r\n\r\n",
        b"GET s://]echo/: HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /\xe9cho HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /\xc3\xa9cho%20k HTTP/1.0\r\n\r\n",
        b"GET /echo?\xe9 HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /echo\0 HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /echo?page=1#posts HTTP/1.1\r\nHost: test\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length\xdf: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /echo HTTP/1.1\r\nHost: test\r\nX: a\nContent-Length: 26\r\nGET / HTTP/1.1\nHost: x\r\n\r\n",
    ],
)
def test_a_sample_that_could_be_read_in_two_ways_is_refused(server: Server, raw: bytes) -> None:
    with Client(server.address) as client:
        answer = client.send(raw, request("GET", "/hola/smuggled")).answer()
        assert answer.status in {400, 501, 505}, f"{answer.status} {answer.text}"
        assert answer["connection"] == "close"
        assert client.ends(), "the connection goes on"
    server.cleared()
    assert "smuggled" not in server.printed()


@pytest.mark.parametrize(
    "framing",
    [
        b'5;foo="bar baz"\r\nhello\r\n0\r\n\r\n',
        b"0005\r\nhello\r\n000\r\n\r\n",
        b"5\r\nhello\r\n0\r\nContent-Length: 99\r\n\r\n",
        b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"5\r\nhello\r\n0\r\nHost: other\r\n\r\n",
        b"5\r\nhello\r\n0\r\nVary: *\r\nContent-Type: text/other\r\n\r\n",
        b"5; one; two=2\r\nhello\r\n0; three\r\n\r\n",
        b"5;\r\nhello\r\n0\r\n\r\n",
        b"5;=x\r\nhello\r\n0\r\n\r\n",
        b'5;open="\r\nhello\r\n0\r\n\r\n',
        b"2\r\nhe\r\n3\r\nllo\r\n00000\r\n\r\n",
    ],
)
def test_what_surrounds_chunks_changes_neither_body_nor_fields(server: Server, framing: bytes) -> None:
    with Client(server.address) as client:
        told = client.send(CHUNKED, framing).answer().json()
        assert told["body"] == "hello"
        assert sorted(name.lower() for name, _ in told["headers"]) == ["host", "transfer-encoding"]
        assert "99" not in json.dumps(told["headers"])
        assert "other" not in json.dumps(told["headers"])
        assert client.get("/hola/x").text == "Hola x", "the next request begins elsewhere"


def test_the_size_of_a_chunk_may_have_letters_of_either_case(server: Server) -> None:
    for size in (b"1F", b"1f"):
        with Client(server.address) as client:
            answer = client.send(CHUNKED, size, b"\r\n", b"x" * 31, b"\r\n0\r\n\r\n").answer()
            assert answer.json()["body"] == "x" * 31


def test_a_chunked_body_without_its_last_line_is_waited_for(server: Server) -> None:
    with Client(server.address) as client:
        client.send(CHUNKED, b"5\r\nhello\r\n0\r\n")
        assert not client.is_readable(0.1)
        assert client.send(b"\r\n").answer().json()["body"] == "hello"


@pytest.mark.parametrize("field", ["Transfer_Encoding: chunked", "Content_Length: -1E23", "Content_Length: 900"])
def test_an_underscore_never_frames_a_body(server: Server, field: str) -> None:
    with Client(server.address) as client:
        told = client.send(request("POST", "/echo", field, body=b"tricked")).answer().json()
        assert told["body"] == "tricked"
        assert not [name for name, _ in told["headers"] if "_" in name]
        assert client.get("/hola/x").text == "Hola x", "the next request begins elsewhere"


@pytest.mark.parametrize("target", ["https://test/echo?q=1", "http://[::1]:8080/echo?q=1"])
def test_an_absolute_target_is_taken_apart(server: Server, target: str) -> None:
    host = target.split("/")[2]
    with Client(server.address) as client:
        told = client.send(request("GET", target, host=host)).answer().json()
        assert (told["path"], told["query"]) == ("/echo", "q=1")


@pytest.mark.parametrize("method", ["-BLARGH", "get"])
def test_a_method_that_nobody_has_is_405_though_it_is_strange(server: Server, method: str) -> None:
    with Client(server.address) as client:
        assert client.send(request(method, "/hola/x")).answer().status == 405


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"GET /echo HTTP/1.1\r\nHost: 0.0.0.0=5000\r\n\r\n", {"headers": [["host", "0.0.0.0=5000"]]}),
        (b"GET /echo HTTP/1.0\r\n\r\n", {"headers": [], "version": "1.0"}),
        (
            b"GET /echo HTTP/1.0\r\nIf-Match: a\r\nIf-Match: b\r\n\r\n",
            {"headers": [["if-match", "a"], ["if-match", "b"]]},
        ),
        (b"GET /echo HTTP/1.0\r\naaaaaaaaa:+++++\r\n\r\n", {"headers": [["aaaaaaaaa", "+++++"]]}),
        (
            b"GET /echo HTTP/1.0\r\nX.Custom|Pipe!#$%&'*+^`~: ok\r\n\r\n",
            {"headers": [["x.custom|pipe!#$%&'*+^`~", "ok"]]},
        ),
        (b"PUT /echo?a=b HTTP/1.0\r\ncONTENT-Length: 4\r\n\r\nbody", {"method": "PUT", "query": "a=b", "body": "body"}),
        (b"GET /echo HTTP/1.0\r\nContent-Length: 16\r\n\r\nGET / HTTP/1.1\r\n", {"body": "GET / HTTP/1.1\r\n"}),
        (b'GET /echo?a="b" HTTP/1.0\r\n\r\n', {"query": 'a="b"'}),
        (b"GET /echo?{a}|^`<>\\ HTTP/1.0\r\n\r\n", {"query": "{a}|^`<>\\"}),
        (b"GET /echo?a=%00 HTTP/1.0\r\n\r\n", {"query": "a=%00"}),
        (b"GET /echo? HTTP/1.0\r\n\r\n", {"query": ""}),
        (b"GET /echo?" + b"q" * 8_000 + b" HTTP/1.0\r\n\r\n", {"query": "q" * 8_000}),
        (b"GET /echo HTTP/1.0\r\nX: " + b"v" * 8_190 + b"\r\n\r\n", {"headers": [["x", "v" * 8_190]]}),
        (_coded("\tchunked "), {"body": "hello"}),
        (_coded("CHUNKED"), {"body": "hello"}),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else "",
)
def test_a_strange_request_reaches_the_application_as_it_is(
    server: Server, raw: bytes, told: dict[str, object]
) -> None:
    with Client(server.address) as client:
        answer = client.send(raw).answer().json()
    assert {name: answer[name] for name in told} == told


@pytest.mark.parametrize(
    ("version", "connection", "goes_on"),
    [
        ("1.0", None, False),
        ("1.0", "Keep-Alive", True),
        ("1.0", "close", False),
        ("1.1", None, True),
        ("1.1", "keep-alive", True),
        ("1.1", "Close", False),
        ("1.1", "x, CLOSE", False),
        ("1.1", "closed", True),
    ],
)
def test_version_and_connection_say_whether_a_second_request_is_read(
    server: Server, version: str, connection: str | None, goes_on: bool
) -> None:
    field = f"Connection: {connection}\r\n" if connection else ""
    with Client(server.address) as client:
        client.send(
            f"GET /hola/first HTTP/{version}\r\nHost: test\r\n{field}\r\n".encode(), request("GET", "/hola/second")
        )
        assert client.answer().text == "Hola first"
        assert client.answer().text == "Hola second" if goes_on else client.ends()


@pytest.mark.parametrize(
    ("version", "fields", "body", "first"),
    [
        ("1.1", ["Expect: 100-continue", "Content-Length: 4"], b"", 100),
        ("1.1", ["Expect: 100-CONTINUE", "Content-Length: 4"], b"", 100),
        ("1.1", ["Expect: 100-continue", "Transfer-Encoding: chunked"], b"", 100),
        ("1.1", ["Expect: 100-continue", "Content-Length: 4"], b"body", 200),
        ("1.1", ["Expect: 100-continue", "Content-Length: 4"], b"bo", None),
        ("1.1", ["Expect: 100-continue", "Transfer-Encoding: chunked"], b"0\r\n\r\n", 200),
        ("1.1", ["Expect: 100-continue", "Content-Length: 0"], b"", 200),
        ("1.1", ["Expect: 100-continue"], b"", 200),
        ("1.0", ["Expect: 100-continue", "Content-Length: 4"], b"", None),
        ("1.1", ["Expect: 100-continue, 100-continue", "Content-Length: 4"], b"", 417),
        ("1.1", ["Expect: 200-ok", "Content-Length: 4"], b"", 417),
        ("1.1", ["Expect:", "Content-Length: 4"], b"", 417),
    ],
)
def test_who_expects_to_be_told_to_continue_is_told_so_if_a_body_is_to_come(
    server: Server, version: str, fields: list[str], body: bytes, first: int | None
) -> None:
    with Client(server.address) as client:
        head = "\r\n".join([f"POST /echo HTTP/{version}", "Host: test", *fields, "", ""]).encode()
        client.send(head, body)
        if first is None:
            assert not client.is_readable(0.2)
        else:
            assert client.opening().status == first


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_empty_lines_before_any_request_are_read_over(server: Server, lines: int) -> None:
    with Client(server.address) as client:
        for name in ("one", "two"):
            assert client.send(b"\r\n" * lines, request("GET", f"/hola/{name}")).answer().text == f"Hola {name}"
