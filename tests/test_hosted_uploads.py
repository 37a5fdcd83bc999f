"""Uploads to hosted applications, over each version of HTTP."""

from __future__ import annotations

import pytest

from .conftest import Serve
from .harness import processes

MEBIBYTE = 1024 * 1024
SIZE = 60 * MEBIBYTE


@pytest.mark.parametrize("app", ["raw_wsgi", "raw_asgi"])
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_a_large_upload_leaves_the_memory_of_its_worker_flat(serve: Serve, app: str, version: str) -> None:
    server = serve(app, workers=1, body_limit="64MiB")
    (pid,) = server.worker_pids()
    assert server.post("/count", b"x" * MEBIBYTE).text == str(MEBIBYTE), "what it takes once is there"
    before = processes.peak_bytes(pid)
    body = b"x" * SIZE
    if version == "HTTP/1.1":
        answer = server.post("/count", body)
    else:
        with server.connect2() as client:
            answer = client.answer(client.ask("POST", "/count", ("content-length", str(SIZE)), body=body))
    assert (answer.status, answer.text) == (200, str(SIZE))
    assert processes.peak_bytes(pid) - before < 10 * MEBIBYTE
    assert server.worker_pids() == [pid]
