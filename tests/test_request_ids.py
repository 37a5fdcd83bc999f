"""Every request has an id, which its client, its application and both logs are told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Kind, Serve
from .harness.server import Server
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01"
GENERATED = re.compile("[0-9a-f]{32}")


@pytest.fixture(scope="module")
def shared(kind: Kind, serve_for_all: Serve) -> Server:
    return serve_for_all("failing", environment=kind, log_format="json", workers=2)


TARGETS = [
    "/hola/x",
    "/id",
    "/nowhere",
    "/gone/it",
    "/raise/x",
    "/raise-later",
    "/query",
    "/id/later",
    "/channel?name=x",
]


@pytest.mark.parametrize("target", TARGETS)
def test_each_answer_has_an_id_of_its_own(server: Server, target: str) -> None:
    ids = {server.get(target)["x-request-id"] for _ in range(3)}
    over_http_2 = server.connect2()
    ids |= {over_http_2.get(target)["x-request-id"] for _ in range(3)}
    assert len(ids) == 6
    assert all(GENERATED.fullmatch(id) for id in ids), ids


def test_the_application_knows_it(server: Server) -> None:
    for target in ("/id", "/id/later"):
        answer = server.get(target)
        assert answer.text == answer["x-request-id"]
    assert server.get("/id/own")["x-request-id"] == "own", "an application may choose another"


def test_a_trace_is_the_id_and_a_stranger_chooses_none(server: Server) -> None:
    assert server.get("/id", TRACEPARENT).text == TRACE
    assert server.get("/id", "X-Request-Id: forged")["x-request-id"] != "forged"
    assert GENERATED.fullmatch(server.get("/id", "traceparent: nonsense").text)


def test_a_trusted_proxy_chooses_it(serve: Serve, kind: Kind) -> None:
    server = serve("failing", environment=kind, trust="127.0.0.1")
    for target in ("/id", "/id/later"):
        answer = server.get(target, "X-Request-Id: mine-1", TRACEPARENT)
        assert (answer.text, answer["x-request-id"]) == ("mine-1", "mine-1")
    assert server.get("/channel?name=x", "X-Request-Id: mine-2")["x-request-id"] == "mine-2"
    assert server.get("/id", "X-Request-Id: a b", TRACEPARENT).text == TRACE


def test_clients_that_get_the_same_message_have_their_own(server: Server) -> None:
    waiting = [server.connect().ask("GET", "/id/never") for _ in range(3)]
    events = server.connect2()
    stream = events.ask("GET", "/id/never")
    server.until(lambda status: status["lives"]["parked"] == 4)
    server.publish("ids", b"news" * 10_000)
    answers = [client.answer() for client in waiting] + [events.answer(stream)]
    assert {answer.body for answer in answers} == {b"news" * 10_000}
    assert len({answer["x-request-id"] for answer in answers}) == 4


def test_both_logs_know_it(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    file = tmp_path / "access"
    server = serve("failing", environment=kind, log_format="json", access_log="json", access_log_file=file)
    for target, text in (("/raise/boom", "boom"), ("/raise-later", "later"), ("/log/30?text=told", "told")):
        for fields in ((), (TRACEPARENT,)):
            answer = server.get(target, "Referer: http://x/", *fields)
            id = answer["x-request-id"]
            assert (id == TRACE) is bool(fields)
            until(
                "the record",
                lambda id=id, text=text: any(_is_about(line, id, text) for line in server.log().splitlines()),
            )
            # Both requests of a trace have its id.
            until("the line", lambda id=id, target=target: _lines(file, id, target))
            line, *_ = _lines(file, id, target)
            assert (line["path"], line["protocol"], line["referrer"]) == (target, "HTTP/1.1", "http://x/")
    id = server.get("/query")["x-request-id"]
    server.until_logged(rf"GET /query \({id}\)")
    id = server.get("/die")["x-request-id"]
    server.until_logged(rf"a worker died: exit status 3.*GET /die \({id}\)|GET /die \({id}\).*a worker died")


def _lines(file: Path, id: str, target: str) -> list[dict[str, Any]]:
    """The lines of the access log about this request."""
    text = file.read_text()
    told = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [line for line in told if (line["request_id"], line["path"]) == (id, target)]


def _is_about(line: str, id: str, text: str) -> bool:
    record = json.loads(line)
    return text in record["message"] and record.get("request_id") == id


def test_the_combined_format_is_that_of_other_servers(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "access"
    server = serve("failing", access_log="combined", access_log_file=file)
    server.get("/hola/x?a=1", "User-Agent: curl/8", "Referer: http://x/")
    until("the line", lambda: "/hola" in file.read_text())
    date = r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]"
    line = rf'127\.0\.0\.1 - - {date} "GET /hola/x\?a=1 HTTP/1\.1" 200 6 "http://x/" "curl/8"\n'
    assert re.fullmatch(line, file.read_text())
