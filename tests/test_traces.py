"""Spans: a collector gets the tree of a request, its waits, its queries and its jobs, and never holds up a request."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from .conftest import Kind, Serve
from .harness.collector import Collector, Span
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import BUSY

pytestmark = pytest.mark.also_in_perl

SERVER, INTERNAL, CLIENT, CONSUMER = 2, 1, 3, 5
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TRACEPARENT = f"traceparent: 00-{TRACE}-{PARENT}-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def serving(serve: Serve, collector: Collector, kind: Kind | None = None, **settings: object) -> Server:
    return serve("tracing", environment=kind or {}, otlp_endpoint=collector.url, **settings)


def within(span: Span, parent: Span) -> bool:
    return span.parent == parent.id and parent.begin <= span.begin <= span.end <= parent.end


def test_a_request_is_a_span_with_its_parent(serve: Serve, collector: Collector, kind: Kind) -> None:
    server = serving(serve, collector, kind, service_name="till")
    answer = server.get("/hola?secret=1", TRACEPARENT, "User-Agent: curl/8")
    assert answer["x-request-id"] == TRACE
    spans = collector.trace_of(TRACE, "GET /hola", "run")
    span = spans["GET /hola"]
    assert (span.parent, span.kind, span.status, span.service) == (PARENT, SERVER, {}, "till")
    assert span.attributes == {
        "http.request.method": "GET",
        "url.path": "/hola",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "user_agent.original": "curl/8",
        "http.route": "/hola",
        "http.response.status_code": 200,
        "parkade.request_id": TRACE,
    }
    assert within(spans["run"], span)
    assert spans["run"].kind == INTERNAL
    assert abs(span.begin / 1e9 - time.time()) < 60
    assert collector.requests[0][0] == "/v1/traces"


def test_a_trace_begins_here_without_a_traceparent(serve: Serve, collector: Collector, kind: Kind) -> None:
    server = serving(serve, collector, kind)
    first, second = (server.get("/traceparent") for _ in range(2))
    assert first["x-request-id"] != second["x-request-id"]
    span = collector.trace_of(first["x-request-id"], "GET /traceparent")["GET /traceparent"]
    assert span.parent is None
    assert first.text == f"00-{span.trace}-{span.id}-03", "the application passes on the span of its request"


def test_the_sampled_flag_is_honoured_and_so_is_the_ratio(serve: Serve, collector: Collector) -> None:
    server = serving(serve, collector, trace_ratio=0)
    other = TRACEPARENT.replace("4bf9", "aaaa")
    assert server.get("/traceparent", f"{other[:-2]}00").text == other.removeprefix("traceparent: ")[:-2] + "00"
    assert server.get("/traceparent").text == "None"
    assert server.get("/traceparent", "traceparent: nonsense").text == "nonsense"
    assert server.get("/hola", TRACEPARENT).status == 200
    collector.trace_of(TRACE, "GET /hola")
    assert {span.trace for span in collector.spans} == {TRACE}


def test_waits_queues_and_queries_are_below_their_request(
    serve: Serve, collector: Collector, postgres: Postgres, kind: Kind
) -> None:
    server = serving(serve, collector, kind, database=postgres.url, sql_comments="trace", workers=1)
    with_gate = server.connect().ask("GET", "/slow")
    text = server.get("/seen/x", TRACEPARENT).json()
    with_gate.answer()
    spans = collector.trace_of(TRACE, "GET /seen/{name}", "run", "park", "SELECT", *([] if kind else ["queue"]))
    request, asked = spans["GET /seen/{name}"], spans["SELECT"]
    assert all(within(spans[name], request) for name in spans.keys() - {request.name})
    assert spans["park"].end - spans["park"].begin >= asked.end - asked.begin > 0
    assert asked.kind == CLIENT
    assert asked.attributes["db.system.name"] == "postgresql"
    assert asked.attributes["db.namespace"] == "default"
    assert asked.attributes["db.query.text"].startswith("select query from pg_stat_activity")
    assert f"traceparent='00-{TRACE}-{asked.id}-01'" in text, "the statement names its own span"


def test_what_failed_is_an_error(serve: Serve, collector: Collector, postgres: Postgres, kind: Kind) -> None:
    server = serving(serve, collector, kind, database=postgres.url)
    id = server.get("/broken")["x-request-id"]
    spans = collector.trace_of(id, "GET /broken", "SELCT")
    assert spans["GET /broken"].status["code"] == 2
    assert spans["GET /broken"].attributes["http.response.status_code"] == 500
    assert spans["GET /broken"].attributes["error.type"] == "500"
    assert spans["SELCT"].status["code"] == 2
    assert spans["SELCT"].attributes["db.response.status_code"] == "42601"
    id = server.get("/nowhere")["x-request-id"]
    span = collector.trace_of(id, "GET")["GET"]
    assert (span.status, span.attributes["http.response.status_code"]) == ({}, 404)


def test_a_job_is_linked_to_the_request_that_enqueued_it(serve: Serve, collector: Collector, kind: Kind) -> None:
    server = serving(serve, collector, kind)
    server.post("/jobs/enqueues", b"", TRACEPARENT, "X-Request-Id: ignored")
    spans = collector.trace_of(TRACE, "POST /jobs/{name}", "process enqueues", "process told")
    request, first, second = (spans[name] for name in ("POST /jobs/{name}", "process enqueues", "process told"))
    assert (first.parent, second.parent) == (request.id, first.id)
    assert first.links == [{"traceId": TRACE, "spanId": request.id}]
    assert first.kind == CONSUMER
    assert first.attributes["messaging.destination.name"] == "default"
    assert first.attributes["parkade.job.attempt"] == 1
    assert first.attributes["parkade.job.outcome"] == "completed"
    assert first.attributes["parkade.request_id"] == TRACE
    id = server.post("/jobs/fails")["x-request-id"]
    failed = collector.trace_of(id, "process fails")["process fails"]
    assert failed.status == {"code": 2, "message": "it cannot" if "LANGUAGE" in kind else "ValueError: it cannot"}


def test_a_streamed_answer_belongs_to_its_trace_to_its_end(serve: Serve, collector: Collector, kind: Kind) -> None:
    server = serving(serve, collector, kind)
    assert server.get("/pieces", TRACEPARENT).text == "onetwo"
    spans = collector.trace_of(TRACE, "GET /pieces", "process told")
    assert spans["GET /pieces"].attributes["parkade.request_id"] == TRACE
    assert spans["process told"].parent == spans["GET /pieces"].id
    assert spans["process told"].attributes["parkade.request_id"] == TRACE


def test_a_trace_begins_here_with_several_traceparents(serve: Serve, collector: Collector) -> None:
    server = serving(serve, collector)
    other = TRACEPARENT.replace("4bf9", "aaaa")
    for fields in ((TRACEPARENT, other), ("traceparent: nonsense", TRACEPARENT)):
        answer = server.get("/traceparent", *fields)
        id = answer["x-request-id"]
        assert answer.text.startswith(f"00-{id}-")
        assert id not in (TRACE, other.split("-")[1])


@pytest.mark.python_only("transactions")
def test_a_transaction_is_its_statements(serve: Serve, collector: Collector, postgres: Postgres) -> None:
    server = serving(serve, collector, {"CONCURRENT": "yes"}, database=postgres.url)
    id = server.post("/within")["x-request-id"]
    spans = collector.trace_of(id, "POST /within", "BEGIN", "SELECT", "COMMIT", "process told")
    request = spans["POST /within"]
    assert all(within(spans[name], request) for name in ("BEGIN", "SELECT", "COMMIT"))
    assert spans["BEGIN"].end <= spans["SELECT"].begin <= spans["COMMIT"].begin
    assert spans["process told"].parent == request.id


def test_the_variables_of_opentelemetry_are_known(serve: Serve, collector: Collector) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_SERVICE_NAME": "till",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b",
    }
    server = serve("tracing", environment=variables)
    id = server.get("/hola")["x-request-id"]
    assert collector.trace_of(id, "GET /hola")["GET /hola"].service == "till"
    assert collector.requests[0][1]["x-key"] == "a b"
    silent = serve("tracing", environment=variables, otlp_endpoint="off")
    assert silent.get("/traceparent").text == "None"


def test_spans_are_counted_and_sent_when_the_server_stops(serve: Serve, collector: Collector) -> None:
    server = serving(serve, collector)
    server.get("/hola", TRACEPARENT)
    server.until(lambda status: status["traces"]["spans_exported"] == 2)
    assert "parkade_spans_exported_total 2\n" in server.metrics()
    ids = [server.get("/hola")["x-request-id"] for _ in range(100)]
    server.stop()
    assert {span.trace for span in collector.spans} >= set(ids)


def test_a_collector_that_fails_holds_up_nobody(serve: Serve, collector: Collector) -> None:
    collector.delay.clear()
    server = serving(serve, collector)
    began = time.monotonic()
    for _ in range(20):
        assert server.get("/hola").text == "hola"
    assert time.monotonic() - began < 2 * BUSY
    collector.status = 400
    collector.delay.set()
    server.until(lambda status: status["traces"]["spans_dropped"] >= 40)
    server.until_logged("the trace collector accepts no spans; they are dropped until it does: it answers 400")
    collector.status = 200
    server.get("/hola", TRACEPARENT)
    collector.trace_of(TRACE, "GET /hola")
    server.until_logged("the trace collector accepts spans again")
    assert len([line for line in server.log().splitlines() if "accepts no spans" in line]) == 1


def test_a_server_stops_although_its_collector_does_not_answer(serve: Serve, collector: Collector) -> None:
    collector.delay.clear()
    server = serving(serve, collector)
    server.get("/hola")
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 10
    assert "did not accept the last spans" in server.log()


def test_an_endpoint_that_is_no_url_is_refused(serve: Serve) -> None:
    server = serve("tracing", otlp_endpoint="collector:4317", is_ready=False)
    assert server.fails() != 0
    assert "--otlp-endpoint: write a URL such as http://localhost:4318, or off" in server.told()
