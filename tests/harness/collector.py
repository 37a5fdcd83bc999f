"""A collector of OpenTelemetry: takes spans over HTTP, as OTLP sends them in JSON."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .until import until


@dataclass(frozen=True)
class Span:
    """One span. `kind` is the number of OTLP."""

    trace: str
    id: str
    parent: str | None
    name: str
    kind: int
    begin: int
    end: int
    attributes: dict[str, Any]
    links: list[dict[str, str]]
    status: dict[str, Any]
    service: str


class Collector:
    """Listens while it is open; `status` is what it answers."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.delay = threading.Event()
        self.delay.set()
        self.spans: list[Span] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.delay.wait(30)
                if collector.status == 200:
                    collector.spans.extend(spans_of(json.loads(body)))
                collector.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(collector.status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """What `--otlp-endpoint` is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def trace_of(self, trace: str, *names: str) -> dict[str, Span]:
        """The spans of a trace by their names, when there is one of each of these."""

        def look() -> dict[str, Span] | None:
            found = {span.name: span for span in list(self.spans) if span.trace == trace}
            return found if found.keys() >= set(names) else None

        return until(f"the spans {names}", look)

    def close(self) -> None:
        """Ends it."""
        self.delay.set()
        self._server.shutdown()
        self._server.server_close()


def spans_of(body: dict[str, Any]) -> list[Span]:
    """All spans of an `ExportTraceServiceRequest`."""
    return [
        Span(
            trace=span["traceId"],
            id=span["spanId"],
            parent=span.get("parentSpanId"),
            name=span["name"],
            kind=span["kind"],
            begin=int(span["startTimeUnixNano"]),
            end=int(span["endTimeUnixNano"]),
            attributes=attributes_of(span["attributes"]),
            links=span.get("links", []),
            status=span.get("status", {}),
            service=attributes_of(resource["resource"]["attributes"])["service.name"],
        )
        for resource in body["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def attributes_of(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes as a mapping."""
    values = {one["key"]: one["value"] for one in told}
    return {
        key: value["stringValue"] if "stringValue" in value else int(value["intValue"]) for key, value in values.items()
    }
