"""What applications of WSGI call, return and read, call by call: each test says what its application does."""

from __future__ import annotations

import io
import re
import socket
from urllib.parse import quote

import pytest

from .apps.reading import read
from .conftest import Serve
from .harness.client import Closed, chunked, request
from .harness.server import Server
from .harness.versions import VERSIONS, Ask, asking_over


@pytest.fixture(scope="module", params=[1, 3], ids=["alone", "threads"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all("scripted_wsgi", workers=1, threads=request.param, body_limit="1MiB", stream_limit="4MiB")


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


def doing(*steps: str) -> str:
    """The target at which the application does these one after the other, and returns the last."""
    return "/?" + quote(f"({', '.join(steps)},)[-1]")


# The response


@pytest.mark.parametrize(
    ("steps", "status", "body"),
    [
        (["start()", "[b'a', b'', b'b']"], 200, b"ab"),
        (["start()", "(b'a', b'b')"], 200, b"ab"),
        (["start()", "iter([b'a', b'b'])"], 200, b"ab"),
        (["start()", "{b'a': 1}"], 200, b"a"),
        (["start()", "Indexed()"], 200, None),
        (["start()", "[]"], 200, b""),
        (["start()", "[b'']"], 200, b""),
        (["start()", "then(lambda: b'', lambda: b'a')"], 200, b"a"),
        (["then(lambda: start() and b'', lambda: b'a')"], 200, b"a"),
        (["then(lambda: start('202 Later') and b'a')"], 202, b"a"),
        (["start('200')", "[b'a']"], 200, b"a"),
        (["start('200 ')", "[b'a']"], 200, b"a"),
        (["start('299 Own words')", "[b'a']"], 299, b"a"),
        (["start('441 None')", "[b'a']"], 441, b"a"),
        (["start('204 No Content')", "[b'a', b'b']"], 204, b""),
        (["start('304 Not Modified')", "[b'a', b'b']"], 304, b""),
        (["start()(b'a')", "[b'b']"], 200, b"ab"),
        (["write := start()", "write(b'a')", "write(b'')", "write(b'b')", "[]"], 200, b"ab"),
        (["start()", "start('503 No', (), failed())", "[b'a']"], 503, b"a"),
        (["start('503 No', (), failed())", "[b'a']"], 503, b"a"),
        (["start('200 OK', (), None)", "[b'a']"], 200, b"a"),
        (["start()", "then(lambda: b'', lambda: start('503 No', (), failed()) and b'a')"], 503, b"a"),
        (["start('200 OK', [('Content-Length', '3')])", "[b'a', b'bc']"], 200, b"abc"),
        (["start('200 OK', [('Transfer-Encoding', 'chunked')])", "[b'a', b'b']"], 200, b"ab"),
        (["start('200 OK', [(Text('X-A'), Text('b'))])", "[b'a']"], 200, b"a"),
        (["start()", "Closing([b'a', b'b'])"], 200, b"ab"),
        (["start()", "Closing([])"], 200, b""),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_response_may_be_made_so(ask: Ask, steps: list[str], status: int, body: bytes | None) -> None:
    answer = ask(doing(*steps))
    assert answer.status == status
    assert body is None or answer.body == body


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (["[b'a']"], "did not call start_response"),
        (["start()", "None"], "NoneType"),
        (["start()", "7"], "int"),
        (["start()", "'text'"], "a piece of the body is str, not bytes"),
        (["start()", "[None]"], "a piece of the body is NoneType, not bytes"),
        (["start()", "[bytearray(b'a')]"], "a piece of the body is bytearray, not bytes"),
        (["start()", "b'a'"], "a piece of the body is int, not bytes"),
        (["start()", "start()"], "a second time"),
        (["start(200)"], "the status is a str such as '200 OK', not int"),
        (["start(b'200 OK')"], "the status is a str such as '200 OK', not bytes"),
        (["start(None)"], "the status is a str such as '200 OK', not NoneType"),
        (["start('')"], "the status is a number and a reason"),
        (["start('OK')"], "the status is a number and a reason"),
        (["start('20')"], "from 200 to 599, not 20"),
        (["start('2000 OK')"], "the status is a number and a reason"),
        (["start('200OK')"], "the status is a number and a reason"),
        (["start(' 200 OK')"], "the status is a number and a reason"),
        (["start('100 Continue')"], "from 200 to 599, not 100"),
        (["start('103 Early Hints')"], "from 200 to 599, not 103"),
        (["start('600 More')"], "from 200 to 599, not 600"),
        (["start('200 OK', [('X-A', b'b')])"], "must be str"),
        (["start('200 OK', [(b'X-A', 'b')])"], "must be str"),
        (["start('200 OK', [('X-A', None)])"], "must be str"),
        (["start('200 OK', [('X-A', 7)])"], "must be str"),
        (["start('200 OK', [('X-A',)])"], "ValueError"),
        (["start('200 OK', None)"], "TypeError"),
        (["start('200 OK', [('X-A', '\\u20ac')])"], "beyond ISO-8859-1"),
        (["start()('text')"], "a piece of the body is str, not bytes"),
        (["fail('error')"], "on purpose"),
        (["fail('exit')"], "on purpose"),
        (["start()", "fail('error')"], "on purpose"),
        (["start()", "then(lambda: fail('error'))"], "on purpose"),
        (["start()", "Closing(then(lambda: fail('error')))"], "on purpose"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_mistake_is_500_and_logged(ask: Ask, server: Server, steps: list[str], why: str) -> None:
    before = len(server.log())
    answer = ask(doing(*steps, *(["[b'a']"] if "start(" in steps[-1] else [])))
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(rf"(?s)^.{{{before}}}.*ERROR GET /: [^\n]*({re.escape(why)})")


@pytest.mark.parametrize("kind", ["cancelled", "generator", "stop", "base"])
def test_whatever_else_is_raised_is_no_response_either(server: Server, kind: str) -> None:
    assert server.get(doing(f"fail('{kind}')")).status in (500, 502)
    server.still_serves()


@pytest.mark.parametrize(
    "field",
    [
        r"('X-A', 'b\r\nX-C: d')",
        r"('X-A', 'b\nX-C: d')",
        r"('X-A', 'b\rX-C: d')",
        r"('X-A', 'b\0')",
        r"('X-A\r\nX-C', 'd')",
        r"('X-A: b\r\nX-C', 'd')",
        "('X A', 'b')",
        "('X-A:', 'b')",
        "('', 'b')",
        "(':status', '201')",
        r"('X-\u00e9', 'b')",
        r"('X-\u20ac', 'b')",
        "('Content-Length', '-1')",
        "('Content-Length', '1, 1')",
        "('Content-Length', 'one')",
        "('Content-Length', '')",
    ],
)
@pytest.mark.parametrize("body", ["[b'a']", "iter([b'a', b''])", "[]"])
def test_a_field_that_cannot_be_is_500(ask: Ask, field: str, body: str) -> None:
    answer = ask(doing(f"start('200 OK', [{field}])", body))
    assert answer.status == 500
    assert not [name for name, _ in answer.fields if name in ("x-c", "x-a")]


def test_a_reason_is_not_sent(server: Server) -> None:
    with socket.create_connection(server.address) as client:
        client.sendall(request("GET", doing("start('500 Oops')", "[b'a']")))
        assert client.recv(65_536).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")


def test_a_reason_cannot_forge_fields(server: Server) -> None:
    with server.connect() as client:
        answer = client.get(doing(r"start('200 OK\r\nX-C: d')", "[b'a']"))
        assert answer.status in (200, 500)
        assert "x-c" not in answer
        assert client.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(
    "steps",
    [
        ["start()", "then(lambda: b'a', lambda: fail('error'))"],
        ["start()", "then(lambda: b'a', lambda: start('503 No', (), failed()))"],
        ["start()", "then(lambda: b'a', lambda: start())"],
        ["start()", "then(lambda: b'a', lambda: 'text')"],
        ["start()(b'a')", "fail('error')"],
        ["start('200 OK', [('Content-Length', '3')])", "then(lambda: b'a', lambda: b'b')"],
    ],
    ids=lambda value: " ".join(value)[:60],
)
def test_what_fails_in_the_middle_never_looks_whole(server: Server, steps: list[str]) -> None:
    with server.connect().ask("GET", doing(*steps)) as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))


def test_what_is_more_than_was_announced_reaches_nobody(server: Server) -> None:
    for pieces in ("[b'a', b'b']", "then(lambda: b'a', lambda: b'b')"):
        with server.connect() as client:
            answer = client.get(doing("start('200 OK', [('Content-Length', '1')])", pieces))
            assert answer.body == b"a"
            assert client.ends() or client.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("Closing([b'a'])", 200),
        ("Closing([])", 200),
        ("Closing(iter([b'a' * 100_000] * 3))", 200),
        ("Closing(['text'])", 500),
        ("Closing(then(lambda: fail('error')))", 500),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_body_is_closed_once_whatever_becomes_of_it(server: Server, method: str, body: str, status: int) -> None:
    before = server.log().count("closed")
    with server.connect() as client:
        assert client.ask(method, doing("start()", body)).answer(head=method == "HEAD").status == status
    server.until_logged("INFO closed", times=before + 1)
    server.still_serves()
    assert server.log().count("INFO closed") == before + 1


@pytest.mark.parametrize("pieces", ["[b'a']", "[]", "iter([b'a' * 50_000] * 3)"])
def test_a_body_that_fails_when_it_is_closed_is_whole_nevertheless(ask: Ask, server: Server, pieces: str) -> None:
    before = len(server.log())
    answer = ask(doing("start()", f"Closing({pieces}, True)"))
    assert (answer.status, set(answer.text)) == (200, set("a" if "a" in pieces else ""))
    server.until_logged(rf"(?s)^.{{{before}}}.*ERROR GET /: [^\n]*while it was closed")


def test_a_body_that_has_no_place_disturbs_no_later_response(server: Server) -> None:
    with server.connect() as client:
        for target in (doing("start()", "[b'a', b'b']"), doing("start('204 No')", "[b'a']")):
            client.ask("HEAD", target).answer(head=True)
            assert client.get("/hola/you").text == "Hola you"
        for status in ("204 No", "304 No"):
            assert client.get(doing(f"start('{status}')", "iter([b'a', b'b'])")).body == b""
            assert client.get("/hola/you").text == "Hola you"


def test_what_is_printed_as_an_error_is_in_the_log(server: Server) -> None:
    error = "environ['wsgi.errors']"
    said = [f"{error}.write('one ')", f"{error}.writelines(['two', ' three\\n'])", f"{error}.flush()"]
    assert server.get(doing(*said, "start()", "[b'a']")).text == "a"
    server.until_logged("one two three")


# The body of the request

LINES = b"first\nsecond line\n\nno end" + b"x" * 30
STEPS = [
    "read()",
    "read(-1); read()",
    "read(None); read(1)",
    "read(0); read(5); read(1); read(); read()",
    "read(1_000_000_000); read(1)",
    "readline(); readline(); readline(); readline(); readline()",
    "readline(3); readline(3); readline(-1); readline(0); readline()",
    "readline(None); read(2); readline()",
    "readlines(); read()",
    "readlines(1); readline(); readlines()",
    "readlines(7); readlines(None)",
    "readlines(-1)",
    "__next__(); __next__(); read(3); readline(); readlines()",
    "__iter__().__next__(); read()",
]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("body", [b"", LINES, LINES * 3_000, b"\n" * 70_000, b"z" * 200_000], ids=len)
def test_the_input_reads_like_a_file(ask: Ask, body: bytes, steps: str) -> None:
    if body.count(b"\n") < 2 and "__next__" in steps:
        return
    answer = ask("/read?" + quote(steps), "POST", body)
    assert (answer.status, answer.body) == (200, b"|".join(read(io.BytesIO(body), steps)))


@pytest.mark.parametrize("steps", STEPS[:-2])
@pytest.mark.parametrize("sizes", [[1] * 30, [7, 70_000, 1], [200_000]], ids=str)
def test_chunks_are_not_seen_in_the_input(server: Server, sizes: list[int], steps: str) -> None:
    whole, pieces = LINES * 5_000, []
    for size in sizes:
        pieces.append(whole[:size])
        whole = whole[size:]
    with server.connect() as client:
        client.send(request("POST", "/read?" + quote(steps), "Transfer-Encoding: chunked"), chunked(*pieces))
        assert client.answer().body == b"|".join(read(io.BytesIO(b"".join(pieces)), steps))
        assert client.get("/hola/you").text == "Hola you"


def test_a_request_without_a_body_has_an_empty_input(ask: Ask) -> None:
    assert ask("/read?" + quote("read(); readline(); readlines(); read(5)")).body == b"||"
