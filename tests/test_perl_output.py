"""What code in Perl prints is in the log with the id of its request, and its handles behave as anywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import perl
from .harness.client import Answer
from .harness.server import Server
from .harness.until import until

pytestmark = [
    pytest.mark.skipif(not perl.has("JSON::PP"), reason="there is no Perl"),
    pytest.mark.usefixtures("perl_loop"),
]

WAYS = (
    "print",
    "stdout",
    "printf",
    "say",
    "method",
    "syswrite",
    "errors",
    "logger",
    "pieces",
    "own_warnings",
    "default_warnings",
    "restored",
    "localised",
    "guard",
    "after",
    "delay",
    "fork",
)
"""The pages of the application that print the rest of their path once."""


@pytest.fixture(scope="module")
def shared(perl_loop: None, serve_for_all: Serve) -> Server:
    return serve_for_all(perl.app("printing.psgi"), workers=1, job_workers=1, log_format="json")


def records(server: Server, text: str) -> list[dict[str, Any]]:
    """The records with exactly this text; waits for the first."""

    def found() -> list[dict[str, Any]]:
        return [told for told in map(json.loads, server.log().splitlines()) if told["message"] == text]

    return until("the record", found)


def id_of(answer: Answer) -> str:
    return answer["x-request-id"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_printed_has_the_id_of_its_request(server: Server, way: str) -> None:
    answers = [server.get(f"/{way}/{way}{at}") for at in (1, 2)]
    for at, answer in enumerate(answers, 1):
        (record,) = records(server, f"{way}{at}")
        assert (record["level"], record["request_id"]) == ("INFO", id_of(answer))
        assert record["worker"] == 1


def test_a_body_prints_for_its_request_whenever_it_is_read(server: Server) -> None:
    slow = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/body/slow")
    head = slow.opening()
    quick = server.get("/body/quick")
    assert len(b"".join(slow.pieces(head))) == 300_000
    for name, answer in (("slow", head), ("quick", quick)):
        found = [*records(server, f"a piece of {name}"), *records(server, f"the end of {name}")]
        assert len(found) == 5
        assert {record["request_id"] for record in found} == {id_of(answer)}


def test_of_several_requests_that_are_held_it_is_the_one_whose_code_runs(server: Server) -> None:
    held = [server.connect().ask("GET", f"/hold/{name}") for name in ("one", "two", "three")]
    for name in ("one", "two", "three"):
        records(server, f"{name} is held")
    held.pop().close()
    (left,) = records(server, "three has left")
    releasing = server.get("/release")
    for name, client in zip(("one", "two"), held, strict=True):
        (record,) = records(server, f"{name} is held")
        assert record["request_id"] == id_of(client.answer())
        (record,) = records(server, f"{name} is released")
        assert record["request_id"] == id_of(releasing)
    (record,) = records(server, "three is held")
    assert record["request_id"] == left["request_id"]


def test_an_error_and_what_is_printed_with_it_have_the_same_id(server: Server) -> None:
    answer = server.get("/dies/late")
    (record,) = records(server, "late is destroyed")
    (error,) = records(server, "GET /dies/late: of late")
    assert {record["request_id"], error["request_id"]} == {id_of(answer)}


def test_a_job_prints_with_its_id(server: Server) -> None:
    job = server.get("/enqueue/from-a-job").text
    (record,) = records(server, "from-a-job")
    assert (record["level"], record["job"]) == ("INFO", f"prints ({job})")


def test_programs_write_to_the_log_itself(server: Server) -> None:
    answer = server.get("/child/started")
    (child,) = records(server, "started of a child")
    assert "request_id" not in child
    (printed,) = records(server, "started")
    assert printed["request_id"] == id_of(answer)
    server.get("/fork/forked")
    assert "request_id" not in records(server, "of another program")[0]


def test_an_application_may_have_its_own_file(serve: Serve) -> None:
    server = serve(perl.app("printing.psgi"), workers=1, job_workers=0, log_format="json")
    file = Path(server.gates) / "own"
    assert server.get("/file/own").text == "2"
    assert file.read_text() == "printed\nwarned\nof a child\n"
    server.get("/print/more")
    assert file.read_text().endswith("more\n")
    assert server.get("/raises/wrong").status == 500
    (error,) = records(server, "GET /raises/wrong: wrong")
    assert error["level"] == "ERROR", "what the server itself says of the application stays in the log"
    assert "\x1e" not in file.read_text(), "no record gets into the file"


def test_what_is_not_printed_is_not_logged(server: Server) -> None:
    before = len(server.log().splitlines())
    for _ in range(20):
        server.get("/quiet")
    server.get("/print/last")
    records(server, "last")
    assert len(server.log().splitlines()) == before + 1
