"""An application describes itself: what it says is valid OpenAPI, and schemathesis finds that it does what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from .conftest import Serve
from .harness.server import PYTHON, Server, clean_environment

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "unsupported_method",
    "allow_header_conformance",
)
EXAMPLES = 10  # for each operation and phase: 15 s in all
SECONDS = 240


@pytest.fixture(scope="module")
def server(serve_for_all: Serve, kind: dict[str, str]) -> Server:
    return serve_for_all("described", environment=kind)


def test_the_description_is_valid_and_tells_every_route_that_is_not_hidden(server: Server) -> None:
    answer = server.get("/openapi.json")
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    found = answer.json()
    validate(found)
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {
        "/v1/orders",
        "/v1/orders/{id}",
        "/search",
        "/me",
        "/rooms/{name}/{kind}",
        "/points/{id}",
        "/upload",
        "/form",
        "/text",
        "/maybe/{n}",
        "/later",
        "/constant",
        "/page",
        "/one",
        "/news",
        "/jobs/{id}",
    }
    assert server.status()["counts"]["answered"] == 1
    assert server.status()["workers"][0]["requests"] == 0, "it is a constant"


def test_the_page_needs_nothing_from_elsewhere(server: Server) -> None:
    answer = server.get("/docs")
    assert answer["content-type"] == "text/html; charset=utf-8"
    assert "Described &amp; &lt;tried&gt;" in answer.text
    assert not re.search(r"https?://|//[a-z]", re.sub(r"^\s*//.*", "", answer.text, flags=re.MULTILINE))
    assert "default-src 'none'" in answer["content-security-policy"]


def test_without_openapi_there_is_none(serve: Serve) -> None:
    server = serve("basic")
    assert (server.get("/openapi.json").status, server.get("/docs").status) == (404, 404)


def test_schemathesis_finds_no_difference(server: Server, tmp_path: Path) -> None:
    host, port = server.address
    words = [
        PYTHON.parent / "schemathesis",
        "run",
        f"http://{host}:{port}/openapi.json",
        f"--checks={','.join(CHECKS)}",
        f"--max-examples={EXAMPLES}",
        "--phases=examples,coverage,fuzzing",
        "--seed=7",
        "--generation-deterministic",
        "--request-timeout=60",
        "--suppress-health-check=all",
        "--no-color",
        "--continue-on-failure",
    ]
    ended = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, env=clean_environment(), timeout=SECONDS
    )
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr[-2_000:]
