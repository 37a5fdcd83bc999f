"""What applications of ASGI send, message by message: each test says what its application says."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from .conftest import Serve
from .harness.client import Broken, Closed
from .harness.server import Server
from .harness.versions import VERSIONS, Ask, asking_over


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("scripted_asgi", workers=1)


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


def saying(*messages: str) -> str:
    """The target at which the application sends these."""
    return "/?" + quote(f"[{', '.join(messages)}]")


# What may be sent


@pytest.mark.parametrize(
    ("messages", "status", "body"),
    [
        (["start()", "body(bytearray(b'a'))"], 200, b"a"),
        (["start()", "body(memoryview(b'abc')[::2])"], 200, b"ac"),
        (["start()", "body(Bytes(b'a'))"], 200, b"a"),
        (["start()", "body(b'', 1)", "body(b'a', 'yes')", "body(b'b', None)"], 200, b"ab"),
        (["start()", "{'type': 'http.response.body', 'more_body': True}", "body(b'a')"], 200, b"a"),
        (["start()", "{'type': 'http.response.body'}"], 200, b""),
        (["start()", "{'type': 'http.response.body', 'body': b'a', 'more': 1, b'x': None}"], 200, b"a"),
        (["start(headers=())", "body(b'a')"], 200, b"a"),
        (["{'type': 'http.response.start', 'status': 200}", "body(b'a')"], 200, b"a"),
        (["start(headers=iter(TEXT))", "body(b'a')"], 200, b"a"),
        (["start(headers=[[b'x-a', b'b']])", "body(b'a')"], 200, b"a"),
        (["start(headers=[(bytearray(b'x-a'), memoryview(b'b'))])", "body(b'a')"], 200, b"a"),
        (["start(headers=[(b'x-a', b'')])", "body(b'a')"], 200, b"a"),
        (["start(headers=[(b'Content-LENGTH', b'1')])", "body(b'a')"], 200, b"a"),
        (["start(headers=[(b'content-length', b'3')])", "body(b'a', 1)", "body(b'bc')"], 200, b"abc"),
        (["start(headers=[(b'transfer-encoding', b'chunked')])", "body(b'a', 1)", "body(b'b')"], 200, b"ab"),
        (["start(299)", "body(b'a')"], 299, b"a"),
        (["start(441)", "body(b'a')"], 441, b"a"),
        (["start(599)", "body(b'a')"], 599, b"a"),
        (["start(204)", "body(b'a', 1)", "body(b'b')"], 204, b""),
        (["start(304)", "body(b'a', 1)", "body(b'b')"], 304, b""),
        (["start(304, [(b'content-length', b'7')])", "body()"], 304, b""),
        (["start(304, [(b'transfer-encoding', b'chunked')])", "body()"], 304, b""),
        (["start(204, [(b'content-length', b'0')])", "body()"], 204, b""),
        (
            ["start()", "{'reused': b'a' * 9}", "body(b'b')"],
            200,
            b"a" * 9 + b"b",
        ),
        (["start()", "{'reused': b'a' * 99_999}", "{'reused': b'b'}", "body()"], 200, b"a" * 99_999 + b"b"),
    ],
    ids=lambda value: " ".join(value)[-60:] if isinstance(value, list) else "",
)
def test_a_response_may_be_said_so(ask: Ask, server: Server, messages: list[str], status: int, body: bytes) -> None:
    answer = ask(saying(*messages))
    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize(
    "messages",
    [
        ["start()", "body(b'not this')"],
        ["start()", "body(b'not', 1)", "body(b'this')"],
        ["start(headers=[(b'content-length', b'8')])", "body(b'not this')"],
        ["start(headers=[(b'content-length', b'8')])", "body()"],
        ["start(204)", "body(b'not this')"],
        ["start(204)", "body(b'not', 1)", "body(b'this')"],
        ["start(304)", "body(b'not', 1)", "body(b'this')"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_body_that_has_no_place_disturbs_no_later_response(server: Server, method: str, messages: list[str]) -> None:
    if method == "GET" and "headers=" in " ".join(messages):
        pytest.skip("this body has its place")
    with server.connect() as client:
        for _ in range(2):
            answer = client.ask(method, saying(*messages)).answer(head=method == "HEAD")
            assert answer.status in (200, 204, 304)
        assert client.get("/hola/you").text == "Hola you"


# What may not


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (["start(100)"], "the status is a number from 200 to 599, not 100"),
        (["start(103)"], "the status is a number from 200 to 599, not 103"),
        (["start(199)"], "the status is a number from 200 to 599, not 199"),
        (["start(600)"], "the status is a number from 200 to 599, not 600"),
        (["start(-200)"], "the status is a number from 200 to 599, not -200"),
        (["start(10 ** 30)"], "the status is a number from 200 to 599"),
        (["start(None)"], "the status is a number, not None"),
        (["start('200')"], "the status is a number, not '200'"),
        (["start(200.0)"], "the status is a number, not 200.0"),
        (["{'type': 'http.response.start'}"], "status"),
        (["{}"], "type"),
        (["{'type': None}"], "not a message of a response"),
        (["{'type': b'http.response.start'}"], "not a message of a response"),
        (["{'type': 'http.response.Start'}"], "not a message of a response"),
        (["{'type': 'http.disconnect'}"], "not a message of a response"),
        (["None"], "NoneType"),
        (["body(b'a')"], "before http.response.start"),
        (["start()", "start()"], "a second time"),
        (["start()", "body('a')"], "the body of a message is str, not bytes"),
        (["start()", "body(None)"], "the body of a message is NoneType, not bytes"),
        (["start()", "body(7)"], "the body of a message is int, not bytes"),
        (["start()", "body([b'a'])"], "the body of a message is list, not bytes"),
        (["start(headers=[(b'x-a', 'b')])"], "a header is two byte strings"),
        (["start(headers=[('x-a', b'b')])"], "a header is two byte strings"),
        (["start(headers=[(b'x-a', None)])"], "a header is two byte strings"),
        (["start(headers=[(b'x-a', 7)])"], "a header is two byte strings"),
        (["start(headers=[(b'x-a',)])"], "ValueError|header"),
        (["start(headers=7)"], "TypeError|header"),
        (["start(headers={b'x-a': b'b'})"], "ValueError|header"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_message_that_cannot_be_is_500_and_logged(ask: Ask, server: Server, messages: list[str], why: str) -> None:
    before = len(server.log())
    answer = ask(saying(*messages))
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(rf"(?s)^.{{{before}}}.*ERROR GET /: [^\n]*({why})")


@pytest.mark.parametrize(
    "field",
    [
        r"(b'x-a', b'b\r\nx-c: d')",
        r"(b'x-a', b'b\nx-c: d')",
        r"(b'x-a', b'b\rx-c: d')",
        r"(b'x-a', b'b\0')",
        r"(b'x-a\r\nx-c', b'd')",
        r"(b'x-a: b\r\nx-c', b'd')",
        "(b'x a', b'b')",
        "(b'x-a:', b'b')",
        "(b'', b'b')",
        "(b':status', b'201')",
        "(b':path', b'/')",
        r"(b'x-\xe9', b'b')",
        "(b'content-length', b'-1')",
        "(b'content-length', b'1, 1')",
        "(b'content-length', b'0x1')",
        "(b'content-length', b'one')",
        "(b'content-length', b'')",
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_field_that_cannot_be_is_500(ask: Ask, server: Server, field: str, streamed: bool) -> None:
    body = ["body(b'a', 1)", "body()"] if streamed else ["body(b'a')"]
    answer = ask(saying(f"start(headers=[{field}])", *body))
    assert answer.status == 500
    assert not [name for name, _ in answer.fields if name in ("x-c", "x-a")]
    assert server.get("/hola/you").status == 200


@pytest.mark.parametrize("second", ["1", "2"])
def test_two_lengths_are_never_both_sent(server: Server, second: str) -> None:
    fields = f"start(headers=[(b'content-length', b'1'), (b'Content-Length', b'{second}')])"
    with server.connect() as client:
        answer = client.get(saying(fields, "body(b'a')"))
        assert len(answer.all("content-length")) == 1
        assert client.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize("kind", ["error", "cancelled", "group", "base", "timeout", "stop"])
def test_whatever_is_raised_costs_its_request_alone(ask: Ask, server: Server, kind: str) -> None:
    pids = server.worker_pids()
    assert ask(saying(f"fail('{kind}')")).status == 500
    assert ask(saying("start()", f"fail('{kind}')")).status == 500
    server.until_logged(r"ERROR GET /: .*on purpose")
    assert server.worker_pids() == pids


@pytest.mark.parametrize("kind", ["error", "cancelled", "group"])
def test_whatever_is_raised_in_the_middle_breaks_the_response_off(server: Server, kind: str) -> None:
    target = saying("start()", "body(b'a', 1)", f"fail('{kind}')")
    with server.connect().ask("GET", target) as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.still_serves()


HINT = "{{'type': 'http.response.early_hint', 'links': {}}}"
TRAILERS = "{{'type': 'http.response.trailers', 'headers': {}}}"
FILE = "{{'type': 'http.response.pathsend', 'path': {}}}"


@pytest.mark.parametrize("links", ["[7]", "['a']", "None", "7", "'a'", "b'a'"])
def test_hints_that_are_no_bytes_are_500(ask: Ask, links: str) -> None:
    assert ask(saying(HINT.format(links), "start()", "body(b'a')")).status == 500


@pytest.mark.parametrize("links", ["[b'</a>']", "[Bytes(b'</a>'), bytearray(b'</b>')]", "iter([b'</a>'])", "[]"])
def test_hints_may_be_said_so(server: Server, links: str) -> None:
    with server.connect() as client:
        client.ask("GET", saying(HINT.format(links), "start()", "body(b'a')"))
        first = client.opening()
        if first.status == 103:
            assert first.all("link")[:1] == ([] if links == "[]" else ["</a>"])
            first = client.opening()
        assert first.status == 200
        assert b"".join(client.pieces(first)) == b"a"
        assert client.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(
    "trailers",
    [
        "None",
        "7",
        "[(b'x-a', 7)]",
        "[('x-a', 'b')]",
        r"[(b'x-a', b'b\r\nx-c: d')]",
        r"[(b'x-a\r\nx-c', b'd')]",
        "[(b'', b'')]",
        "[(b':status', b'200')]",
        "[(b'content-length', b'1')]",
        "[(b'transfer-encoding', b'chunked')]",
    ],
)
def test_trailers_that_cannot_be_break_the_response_off(server: Server, trailers: str) -> None:
    target = saying("start(trailers=True)", "body(b'a')", TRAILERS.format(trailers))
    with server.connect().ask("GET", target, "TE: trailers", "Connection: TE") as client:
        opened = client.opening()
        with pytest.raises((Closed, ConnectionError)):
            list(client.pieces(opened))
    with server.connect2() as client2, pytest.raises(Broken):
        client2.get(target, ("te", "trailers"))
    server.still_serves()


@pytest.mark.parametrize("path", ["7", "None", "b'/etc/passwd'", "''", "'/'", "'passwd'", r"'\0'", r"'\ud800'"])
def test_a_path_that_is_none_is_500(ask: Ask, path: str) -> None:
    assert ask(saying("start()", FILE.format(path))).status == 500


# After the response


def test_the_next_request_does_not_wait_for_work_after_the_response(server: Server) -> None:
    gates = [server.new_gate() for _ in range(3)]
    with server.connect() as client:
        for gate in gates:
            assert client.get(saying("start()", "body(b'a')", f"hold('{gate}')")).text == "a"
        assert client.get("/hola/you").text == "Hola you"
    with server.connect2() as client2:
        assert client2.get(saying("start()", "body(b'a')", f"hold('{gates[0]}')")).text == "a"
    for gate in gates:
        server.open_gate(gate)
    server.until_logged("goes on", times=4)


def test_a_connection_that_is_to_close_does_not_wait_for_work_after_the_response(server: Server) -> None:
    gate = server.new_gate()
    with server.connect() as client:
        assert client.get(saying("start()", "body(b'a')", f"hold('{gate}')"), "Connection: close").text == "a"
        assert client.ends()
    server.open_gate(gate)


@pytest.mark.parametrize("last", ["body(b'b')", "start()", "{'type': 'http.response.trailers', 'headers': []}"])
def test_what_is_sent_after_the_end_reaches_nobody(server: Server, last: str) -> None:
    with server.connect() as client:
        assert client.get(saying("start()", "body(b'a')", last)).text == "a"
        assert client.get("/hola/you").text == "Hola you"
    server.until_logged("after the end of its response")


def test_receive_after_the_response_tells_the_end_as_often_as_it_is_asked(server: Server) -> None:
    before = server.log().count("received {'type': 'http.disconnect'}")
    assert server.get(saying("start()", "RECEIVE", "body(b'a')", "RECEIVE", "RECEIVE")).text == "a"
    server.until_logged(r"received \{'type': 'http.disconnect'\}", times=before + 2)


# The lifespan

COMPLETE = "{'type': 'lifespan.startup.complete'}"
OVER = "{'type': 'lifespan.shutdown.complete'}"


@pytest.mark.parametrize(
    "script",
    [
        ["RECEIVE", COMPLETE, "RECEIVE", OVER],
        ["RECEIVE", COMPLETE, "RECEIVE"],
        ["RECEIVE", COMPLETE],
        [COMPLETE],
        [COMPLETE, "RECEIVE", "RECEIVE", OVER],
        [],
        ["RECEIVE"],
        ["fail('error')"],
        ["fail('group')"],
        ["start()"],
        ["RECEIVE", "start()", "body()"],
    ],
    ids=" ".join,
)
def test_a_lifespan_may_go_so(serve: Serve, script: list[str]) -> None:
    server = serve("scripted_asgi", workers=1, environment={"LIFESPAN": f"[{', '.join(script)}]"})
    assert server.get("/hola/you").text == "Hola you"
    assert server.stop() == 0
    assert "ERROR" not in server.log()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (["RECEIVE", "{'type': 'lifespan.startup.failed'}"], "lifespan|start"),
        (["RECEIVE", "{'type': 'lifespan.startup.failed', 'message': ''}"], "lifespan|start"),
        (["RECEIVE", "{'type': 'lifespan.startup.failed', 'message': 'no disk'}"], "no disk"),
        (["RECEIVE", "fail('error')"], "on purpose"),
        (["RECEIVE", "fail('group')"], "the inner one"),
        (["RECEIVE", "{'type': 'lifspan.startup.complete'}"], "lifspan.startup.complete"),
        (["RECEIVE", "{'type': 'lifespan.shutdown.complete'}"], "when it was asked for lifespan.startup.complete"),
        (["RECEIVE", "{}"], "KeyError"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_lifespan_that_does_not_begin_ends_the_server_with_the_reason(
    serve: Serve, script: list[str], why: str
) -> None:
    server = serve("scripted_asgi", is_ready=False, environment={"LIFESPAN": f"[{', '.join(script)}]"})
    assert server.fails() != 0
    assert re.search(why, server.log())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (["{'type': 'lifespan.shutdown.failed', 'message': 'a rest'}"], "a rest"),
        (["fail('error')"], "on purpose"),
        (["{'type': 'lifespan.startup.complete'}"], "when it was asked for lifespan.shutdown.complete"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_lifespan_that_does_not_end_well_is_logged(serve: Serve, script: list[str], why: str) -> None:
    told = ", ".join(["RECEIVE", COMPLETE, "RECEIVE", *script])
    server = serve("scripted_asgi", workers=1, environment={"LIFESPAN": f"[{told}]"})
    server.stop()
    assert re.search(f"ERROR .*{why}", server.log())
