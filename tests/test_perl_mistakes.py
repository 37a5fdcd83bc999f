"""What an application in Perl gives, and no core takes: an exception with a plain reason, and no worker that ends."""

from __future__ import annotations

import re

import pytest

from .conftest import Serve
from .harness import perl
from .harness.server import Server

pytestmark = pytest.mark.skipif(not perl.has("JSON::PP"), reason="there is no Perl")


def check_that_no_worker_ended(server: Server, pids: list[int]) -> None:
    assert server.worker_pids() == pids
    assert "violated the protocol" not in server.log()


def test_a_mistake_is_500_and_its_worker_goes_on(serve: Serve) -> None:
    server = serve(perl.app("mistakes.pl"), workers=1).ready(job_workers=1)
    pids = server.worker_pids()
    mistakes = server.get("/wrong").json()
    assert len(mistakes) > 20
    assert {what: server.get(f"/wrong/{what}").status for what in mistakes} == dict.fromkeys(mistakes, 500)
    server.until_logged(r"delay must be a finite number of seconds, 0 or more, not -1 at .*mistakes\.pl line")
    server.until_logged("a job failed for good.*seconds must be a finite number of seconds, 0 or more, not -5")
    told = {
        line
        for line in server.log().splitlines()
        if " ERROR GET /wrong" in line and re.search(r"Parkade/\w+\.pm", line)
    }
    assert not told
    answer = server.get("/right")
    assert (answer.text, answer["x-number"], answer["x-nothing"]) == ("text", "5", "")
    check_that_no_worker_ended(server, pids)


@pytest.mark.parametrize("compiled", ["1", "0"])
def test_headers_of_a_parked_response_are_those_of_any_other(serve: Serve, compiled: str) -> None:
    server = serve(perl.app("waits.psgi"), workers=1, environment={"PARKADE_ACCELERATOR": compiled}).ready(
        job_workers=1
    )
    pids = server.worker_pids()
    answer = server.get("/numbers")
    assert (answer.text, answer["x-number"], answer["x-nothing"]) == ("text", "5", "")
    for wrong, why in [
        ("odd", "the headers of a response must be an array of names and values"),
        ("reference", "the value of the header X-A must be text, not a reference"),
        ("wide", "wide characters in a response"),
        ("type", "a content type has at most 1024 bytes at .*waits.psgi line"),
    ]:
        assert server.get(f"/wrong/{wrong}").status == 500
        server.until_logged(why)
    check_that_no_worker_ended(server, pids)
