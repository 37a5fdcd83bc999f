"""Statements for PostgreSQL say which route or job asks, and for which trace; prepared statements stay prepared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Serve
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"
TEXT = "select query from pg_stat_activity where pid = pg_backend_pid()"
ROUTE = "route='%2Fseen%2F%7Bname%7D'"


def serving(serve: Serve, postgres: Postgres, comments: str) -> Server:
    return serve("tracing", database=postgres.url, database_slots=1, sql_comments=comments)


def seen(server: Server, *fields: str) -> str:
    text: str = server.get("/seen/x", *fields).json()
    return text.removeprefix(f"{TEXT} and $1 <> ''")


def prepared(server: Server) -> int:
    count: int = server.get("/prepared").json()
    return count


def test_there_are_none_by_default(serve: Serve, postgres: Postgres) -> None:
    server = serve("tracing", database=postgres.url)
    assert seen(server, f"traceparent: {TRACE}1") == ""


def test_the_route_is_part_of_the_statement_that_is_prepared(serve: Serve, postgres: Postgres) -> None:
    server = serving(serve, postgres, "route")
    for flag in "011":
        assert seen(server, f"traceparent: {TRACE}{flag}") == f" /*{ROUTE}*/"
    assert prepared(server) == 1, "it was prepared once"


def test_only_sampled_requests_name_their_trace(serve: Serve, postgres: Postgres) -> None:
    server = serving(serve, postgres, "trace")
    for _ in range(3):
        assert seen(server, f"traceparent: {TRACE}0") == f" /*{ROUTE}*/"
        assert seen(server) == f" /*{ROUTE}*/"
    assert prepared(server) == 1
    others = [TRACE.replace("4bf9", other) for other in ("aaaa", "bbbb", "cccc")]
    for trace in others:
        assert seen(server, f"traceparent: {trace}1") == f" /*{ROUTE},traceparent='{trace}1'*/"
    assert prepared(server) == 2, "the statement without a comment is known, and none of those with a trace"


def test_a_job_is_named(serve: Serve, postgres: Postgres) -> None:
    server = serving(serve, postgres, "trace")
    for flag, expected in (("0", "/*job='sees'*/"), ("1", f"/*job='sees',traceparent='{TRACE}1'*/")):
        id = server.post("/jobs/sees", b"", f"traceparent: {TRACE}{flag}").text

        def ended(id: str = id) -> dict[str, Any] | None:
            job: dict[str, Any] = json.loads(server.admin("GET", f"/jobs/{id}")[1])
            return job if job["state"] == "completed" else None

        assert until("the job has ended", ended)["shown"] == f"{TEXT} {expected}"


def test_the_log_and_the_status_show_the_statement_without_its_comment(serve: Serve, postgres: Postgres) -> None:
    server = serving(serve, postgres, "route")
    assert server.get("/broken").status == 500
    line = server.until_logged("a query failed.*selct 1").group()
    assert "route=" not in line
