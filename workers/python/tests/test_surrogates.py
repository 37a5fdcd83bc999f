"""Text with lone surrogates, which UTF-8 does not have, is escaped wherever it is told."""

from __future__ import annotations

import msgspec
import pytest

from parkade import HTTPError
from parkade._handling.socket_runs import reason_of
from parkade._job import Job, JobState
from parkade._link import records
from parkade._log import connect
from parkade._responses.problems import problem_response
from parkade._session.session import end_of
from parkade.jobs._runs import failure

ESCAPED = "caf\\udce9"
RAW = "caf\udce9"


def test_a_job_that_fails_with_such_a_text_fails_with_its_own_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(records.os, "write", lambda _, data: written.append(bytes(data)) or len(data))
    connect(records.Records("mark", 2).write)
    try:
        attempted = failure(Job(JobState(bytes(16), "mail", 1, None), 1), ValueError(RAW))
    finally:
        connect(None)
    assert msgspec.msgpack.decode(attempted.payload) == ["application", f"ValueError: {ESCAPED}"]
    (line,) = written
    assert msgspec.json.decode(line.partition(b"mark")[2])["exception"] == f"ValueError: {ESCAPED}"


def test_whatever_tells_the_text_of_an_exception_escapes_it() -> None:
    assert end_of(RAW, 100) == ESCAPED
    assert reason_of(RAW) == ESCAPED
    body = problem_response(HTTPError(404, RAW), None, more={"traceback": RAW}).body
    assert isinstance(body, bytes)
    assert body.decode().replace("\\\\", "\\").count(ESCAPED) == 2
