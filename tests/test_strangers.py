"""Input of strangers: garbage, TLS, the wrong protocol, unusual targets. It is answered at once."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from .conftest import Serve
from .harness.client import Client, request
from .harness.http2 import Http2
from .harness.server import Server
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HELLO = bytes.fromhex("160301020001 0001fc0303") + b"\x5a" * 506
"""The beginning of a ClientHello."""
ALERT = bytes([21, 3, 1, 0, 2, 2, 70])
NEVER = "10m"
"""A timeout that no test waits for: no response can be due to it."""


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all(
        "edges", workers=1, header_timeout=NEVER, keep_alive=NEVER, access_log="json", admin="127.0.0.1:0"
    )


# Bytes that cannot begin a request


@pytest.mark.parametrize(
    "rubbish",
    [
        bytes(4_096),
        b"\xff" * 4_096,
        b"\0",
        b"\x80",
        b"\x16\x04",
        b"{}",
        b" GET / HTTP/1.1",
        b"/ HTTP/1.1",
        b"G\0T",
        b"A" * 33,
        b"SSH-2.0-OpenSSH_9.2p1-Debian-2+deb12u3\r\n",
        b"\r\n\r\n\0",
    ],
)
def test_what_begins_no_method_is_answered_at_once(server: Server, rubbish: bytes) -> None:
    with Client(server.address) as client:
        client.send(rubbish)
        answer = client.answer()
        assert (answer.status, answer["connection"], answer.json()["fault"]) == (400, "close", "client")
        assert client.ends()


def test_what_begins_no_method_is_answered_at_once_though_it_comes_a_byte_at_a_time(server: Server) -> None:
    with Client(server.address) as client:
        for byte in b"GET\0":
            client.send(bytes([byte]))
        assert client.answer().status == 400
        assert client.ends()


@pytest.mark.parametrize("before", [b"", b"\r\n", b"\r\n\r\n"])
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("get", 405), ("M-SEARCH", 405), ("x" * 32, 405)])
def test_any_token_is_a_method_and_empty_lines_may_come_before_it(
    server: Server, before: bytes, method: str, status: int
) -> None:
    with Client(server.address) as client:
        for piece in (before, request(method, "/who")[:2], request(method, "/who")[2:]):
            client.send(piece)
        assert client.answer().status == status


# TLS


@pytest.mark.parametrize("pieces", [[HELLO], [HELLO[:1], HELLO[1:]], [HELLO[:7], HELLO[7:]]])
@pytest.mark.parametrize("where", ["clients", "admin"])
def test_a_tls_handshake_gets_an_alert_of_tls(server: Server, where: str, pieces: list[bytes]) -> None:
    with Client(server.address if where == "clients" else admin_address(server)) as client:
        for piece in pieces:
            client.send_what_goes(piece)
        assert client.rest() == ALERT


@pytest.mark.parametrize("where", ["clients", "admin"])
def test_the_log_says_what_a_client_of_tls_did_and_what_to_do_and_not_each_time(serve: Serve, where: str) -> None:
    server = serve("edges", workers=1, admin="127.0.0.1:0")
    for _ in range(20):
        with Client(server.address if where == "clients" else admin_address(server)) as client:
            client.send(HELLO)
            assert client.rest() == ALERT
    line = server.until_logged(r".*TLS handshake.*").group()
    assert "WARN" in line
    assert "127.0.0.1" in line
    assert "http://" in line
    assert server.log().count("TLS handshake") == 1
    assert len(server.log().splitlines()) < 40


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl: apt-get install curl")
def test_curl_says_that_it_is_a_matter_of_tls(server: Server) -> None:
    host, port = server.address
    ended = subprocess.run(["curl", "-sS", f"https://{host}:{port}/who"], capture_output=True, text=True, timeout=20)
    assert ended.returncode == 35
    assert "alert protocol version" in ended.stderr


def admin_address(server: Server) -> tuple[str, int]:
    host, _, port = server.until_logged(r"the admin address is http://(\S+)").group(1).rpartition(":")
    return host, int(port)


# The preface of HTTP/2


@pytest.mark.parametrize("pieces", [[PREFACE], [PREFACE[:3], PREFACE[3:]], [PREFACE[:16], PREFACE[16:]]])
@pytest.mark.parametrize("before", ["a request", "an empty line"])
def test_the_preface_counts_only_as_the_first_bytes(server: Server, before: str, pieces: list[bytes]) -> None:
    with Client(server.address) as client:
        if before == "a request":
            assert client.get("/who").status == 200
        else:
            client.send(b"\r\n")
        for piece in pieces:
            client.send_what_goes(piece)
        answer = client.answer()
        assert (answer.status, answer["connection"]) == (400, "close")
        assert "preface" in answer.json()["detail"]
        assert client.ends()
    assert server.status()["connections"]["http2"] == 0


def test_the_preface_behind_a_request_in_one_piece_does_not_count_either(server: Server) -> None:
    with Client(server.address) as client:
        client.send(request("GET", "/who") + PREFACE)
        assert [client.answer().status for _ in range(2)] == [200, 400]
        assert client.ends()


def test_the_preface_may_come_a_byte_at_a_time(server: Server) -> None:
    with Client(server.address) as client:
        for byte in PREFACE + bytes.fromhex("000000040000000000"):
            client.send(bytes([byte]))
        assert client.socket.recv(9)[3] == 4, "SETTINGS"


# Targets


AS_THEY_CAME = ["|", "{x}", "^", "`", '"', "\\", "<>", "%", "%4", "%zz", "caf%E9", "%C3%A9", "[]", "%7C"]


@pytest.mark.parametrize("part", AS_THEY_CAME)
def test_what_browsers_send_reaches_the_application_as_it_came(server: Server, part: str) -> None:
    assert server.get(f"/seen?q={part}").json() == {"path": "/seen", "query": f"q={part}"}
    if part != "caf%E9":
        # A parameter never begins with a backslash.
        assert server.get(f"/seen/a{part}").json() == {"path": f"/seen/a{part}", "query": ""}


@pytest.mark.parametrize("part", AS_THEY_CAME)
def test_it_does_over_http_2(server: Server, part: str) -> None:
    """Except for a few that hyper accepts in no query or path (it resets the stream)."""
    with Http2(server.address, strict=False) as client:
        if part not in ('"', "<>"):
            assert client.get(f"/seen?q={part}").json() == {"path": "/seen", "query": f"q={part}"}
        if part not in ("`", "<>", "caf%E9"):
            assert client.get(f"/seen/a{part}").json() == {"path": f"/seen/a{part}", "query": ""}


@pytest.mark.parametrize("target", ["/caf%E9", "/waits/%E9", "/constant/%E9"])
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_what_is_no_utf_8_is_a_path_and_no_text(server: Server, version: str, target: str) -> None:
    """A parameter is text, so no parameter matches it: 404, not 400."""
    ask = server.get if version == "1.1" else server.connect2().get
    assert ask(target).status == 404
    assert ask("/named/%C3%A9").text == "é"


@pytest.mark.parametrize("target", ["/se en", "/seen\x01", "/seen\x7f", "/seen?\xe9", "/seen#x", "/seen?a#b", "/%00"])
def test_controls_spaces_raw_bytes_and_fragments_are_refused(server: Server, target: str) -> None:
    assert server.get(target).status in (400, 505)


# Responses that cannot be sent, and lengths


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("code", [1, 27, 127])
def test_a_control_character_in_a_field_is_the_applications_fault(server: Server, version: str, code: int) -> None:
    target = f"/control/{code}"

    def noted() -> list[int]:
        lines = map(json.loads, server.printed().splitlines())
        return [line["status"] for line in lines if line["path"] == target]

    before = len(noted())
    answer = server.get(target) if version == "1.1" else server.connect2().get(target)
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    until("the line of the access log", lambda: len(noted()) > before)
    assert noted()[before:] == [500]


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_tab_in_a_field_is_none(server: Server, version: str) -> None:
    ask = server.get if version == "1.1" else server.connect2().get
    assert ask("/control/9")["x-a"] == "a\tb"


@pytest.mark.parametrize("target", ["/announced", "/announced-stream"])
def test_head_is_told_the_length_that_was_announced(server: Server, target: str) -> None:
    length = "12345" if target == "/announced" else "5"
    assert server.connect().ask("HEAD", target).answer(head=True)["content-length"] == length
    client = server.connect2()
    answer = client.answer(client.ask("HEAD", target))
    assert (answer["content-length"], answer.body) == (length, b"")


def test_the_case_of_a_host_says_nothing(server: Server) -> None:
    with Http2(server.address, strict=False) as client:
        answer = client.answer(client.ask("GET", "/who", ("host", "EXAMPLE.org"), authority="example.ORG"))
        assert answer.status == 200
        assert client.answer(client.ask("GET", "/who", ("host", "other.org"), authority="example.org")).status == 400
