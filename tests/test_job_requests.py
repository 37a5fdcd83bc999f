"""A job knows the request that enqueued it and its trace, whatever stores it and however it runs; so do the logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Kind, Serve
from .harness.postgres import Postgres
from .harness.server import Server, run, whom
from .harness.site import Site
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
OWN = re.compile("[0-9a-f]{32}")


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> Site:
    is_shared = request.param == "postgres"
    return Site(serve, tmp_path, request.getfixturevalue("postgres") if is_shared else None)


def serving(site: Site, kind: Kind, **settings: object) -> Server:
    return site.serve("tracing", environment=dict(kind), log_format="json", trust="127.0.0.1", **settings)


def ended(server: Server, id: str) -> dict[str, Any]:
    """The job at the address of operators, when it has ended."""

    def look() -> dict[str, Any] | None:
        code, body = server.admin("GET", f"/jobs/{id}")
        told: dict[str, Any] = json.loads(body)
        return told if code == 200 and told["state"] in ("completed", "dead") else None

    return until("the job has ended", look)


def records(server: Server, **members: object) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log().splitlines()]
    return [line for line in lines if members.items() <= line.items()]


def test_a_job_knows_its_request(site: Site, kind: Kind) -> None:
    server = serving(site, kind, job_workers=1)
    kinds = ["told", "told_later", *(["told_awaited"] if "CONCURRENT" in kind else [])]
    for name in kinds:
        for fields, id, trace in (
            ((), None, None),
            ((f"traceparent: {TRACEPARENT}",), TRACE, TRACEPARENT),
            ((f"traceparent: {TRACEPARENT}", "X-Request-Id: mine-1"), "mine-1", TRACEPARENT),
            (("X-Request-Id: mine-2", "traceparent: nonsense"), "mine-2", None),
        ):
            answer = server.post(f"/jobs/{name}", b"", *fields)
            assert answer.status == 200, answer.text
            assert id is None or answer["x-request-id"] == id
            job = ended(server, answer.text)
            expected = {"request_id": answer["x-request-id"], "traceparent": trace}
            assert job["shown"] == expected, name
            assert {key: job[key] for key in expected} == expected


def test_a_job_that_a_job_enqueues_belongs_to_the_same_request(site: Site, kind: Kind) -> None:
    server = serving(site, kind)
    answer = server.post("/jobs/enqueues", b"", f"traceparent: {TRACEPARENT}", "X-Request-Id: mine-1")
    second = ended(server, ended(server, answer.text)["shown"])
    assert second["shown"] == {"request_id": "mine-1", "traceparent": TRACEPARENT}


def test_a_job_that_no_request_enqueues_has_an_id_of_its_own(site: Site, kind: Kind) -> None:
    server = serving(site, {**kind, "TICKING": "yes"})
    code, body = server.admin("POST", "/jobs", b'{"name": "told"}')
    assert code == 201, body
    id = json.loads(body)["id"]
    assert ended(server, id)["shown"] == {"request_id": id.replace("-", ""), "traceparent": None}
    if "LANGUAGE" in kind:
        return  # which has no recurring jobs
    until("it ticks", lambda: len(records(server, logger="tracing")) >= 2)
    ticks = records(server, logger="tracing")
    assert all(record["message"] == f"ticked for {record['request_id']}" for record in ticks)
    assert len({record["request_id"] for record in ticks}) == len(ticks), "each has its own"


def test_the_log_tells_the_request_of_a_job(site: Site, kind: Kind) -> None:
    server = serving(site, kind)
    id = server.post("/jobs/logs")["x-request-id"]
    until("its record", lambda: records(server, message="a job has something to say", request_id=id))
    answer = server.post("/jobs/fails", b"", "X-Request-Id: mine-3")
    until("its failure", lambda: records(server, level="ERROR", request_id="mine-3", job=answer.text))


def test_people_are_told_the_request_of_a_job(site: Site, kind: Kind) -> None:
    server = serving(site, kind)
    answer = server.post("/jobs/told", b"", f"traceparent: {TRACEPARENT}")
    ended(server, answer.text)
    shown = run("jobs", "show", *whom(server), answer.text, XDG_RUNTIME_DIR=str(server.folder)).stdout
    assert re.search(rf"^request +{TRACE}$", shown, re.MULTILINE)
    assert TRACEPARENT in shown
    code, body = server.admin("GET", "/jobs")
    assert code == 200
    assert json.loads(body)["jobs"][0]["request_id"] == TRACE


@pytest.mark.python_only("transactions")
def test_a_transaction_enqueues_with_the_id_of_its_request(serve: Serve, postgres: Postgres, tmp_path: Path) -> None:
    """In the transaction itself, where its database has the jobs; otherwise after it."""
    for jobs in (True, False):
        site = Site(serve, tmp_path, postgres)
        settings: dict[str, Any] = {} if jobs else {"jobs": None}
        server = serving(site, {"CONCURRENT": "yes"}, database=site.url, **settings)
        answer = server.post("/within", b"", f"traceparent: {TRACEPARENT}")
        assert ended(server, answer.text)["shown"] == {"request_id": TRACE, "traceparent": TRACEPARENT}
        server.stop()


@pytest.mark.python_only("transactions")
def test_a_database_with_tables_of_an_older_version_is_not_that_of_the_jobs(
    serve: Serve, postgres: Postgres, tmp_path: Path
) -> None:
    """Otherwise the statement that enqueues would end the transaction."""
    site = Site(serve, tmp_path, postgres)
    serving(site, {}).stop()
    postgres.psql(
        "alter table parkade.bodies drop column request_id, drop column traceparent;"
        "update parkade.version set version = 2",
        site.database,
    )
    server = serving(site, {"CONCURRENT": "yes"}, database=site.url, jobs=None)
    answer = server.post("/within", b"", "X-Request-Id: mine-4")
    assert ended(server, answer.text)["shown"]["request_id"] == "mine-4"
