"""Responses that stand for waits: what is kept of them, what is refused, and that no wait is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from parkade import WaitError, after, channel, park
from parkade._handling.kept import KeptResults
from parkade._hooks import Around, Hooks
from parkade._hosting.coroutines import within
from parkade._hosting.framework import Framework
from parkade._hosting.park import MARK, ParkedResponse, parked
from parkade._hosting.parking import Parking, Unparkable, parked_with
from parkade._link import port
from parkade._link.answers import Plain
from parkade._responses.response import Response
from parkade._wire import payloads as p

RAW = p.Request(None, [], None, b"", msgspec.Raw(msgspec.msgpack.encode(["GET", "/", "", [], "", "http", "1.1", ""])))


class OneStream:
    def stream(self) -> int:
        return 7


@pytest.fixture(autouse=True)
def request_7() -> Iterator[None]:
    before = port.connect(OneStream())  # type: ignore[arg-type]
    yield
    port.connect(before)
    parked.clear()


def park_of(status: int = 200, *headers: str) -> Any:
    wait = channel("news").next(timeout=3)
    return msgspec.msgpack.decode(Parking(Framework(), dev=False).park_of(wait, status, list(headers), RAW))


def test_the_response_leads_to_its_wait_once() -> None:
    wait = after(1, "x")
    response = park(wait, ParkedResponse())
    assert parked_with(7, [MARK, response.headers[MARK]]) is wait
    assert parked_with(7, [MARK, response.headers[MARK]]) is None


def test_another_response_is_an_ordinary_one_and_the_wait_is_dropped() -> None:
    park(after(1, "x"), ParkedResponse())
    assert parked_with(7, ["content-type", "text/plain"]) is None
    assert parked == {}


def test_headers_are_kept_but_those_of_a_response_without_a_body() -> None:
    _, then = park_of(
        201, "Content-Type", "text/html", "Content-Length", "0", MARK, "7", "X-A", " b", "Set-Cookie", "c=1"
    )
    assert then == ["answer", None, [201, ["x-a", "b", "set-cookie", "c=1"]]]


@pytest.mark.parametrize("name", ["ETag", "content-encoding", "Content-Range", "Digest"])
def test_what_says_something_about_a_body_is_refused(name: str) -> None:
    with pytest.raises(Unparkable, match=name.lower()):
        park_of(200, name, "x")


@pytest.mark.parametrize("status", [304, 404, 500])
def test_another_status_is_refused(status: int) -> None:
    with pytest.raises(Unparkable, match=f"made {status} the status"):
        park_of(status)


def test_where_no_request_is_answered_nothing_is_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneStream, "stream", lambda self: 0)
    with pytest.raises(WaitError, match="there is no request here"):
        park(after(1))
    port.connect(None)
    with pytest.raises(WaitError, match="there is no core here"):
        park(after(1))


def test_a_job_or_function_leaves_no_wait_behind() -> None:
    def fails() -> Any:
        park(after(1), ParkedResponse())
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        within(Framework(), lambda: Plain(fails))().run()
    assert parked == {}


def test_a_header_of_the_function_counts_instead_of_one_that_was_kept() -> None:
    added = p.Added(None, ["x-a", "kept", "set-cookie", "k=1", "vary", "Cookie", "x-b", "kept"])
    results = KeptResults((), Around((Hooks(),)), added)
    given = Response("text", headers={"x-a": "own", "set-cookie": "o=1"})
    status, headers, body = msgspec.msgpack.decode(results.answer(given, 200, None, None))  # type: ignore[arg-type]
    pairs = list(zip(headers[::2], headers[1::2], strict=True))
    assert (status, body) == (200, "text")
    assert [value for name, value in pairs if name == "x-a"] == ["own"]
    assert [value for name, value in pairs if name == "set-cookie"] == ["o=1", "k=1"]
    assert ("x-b", "kept") in pairs
    assert ("vary", "Cookie") in pairs


def test_an_error_gets_no_kept_headers_about_content() -> None:
    added = p.Added(None, ["cache-control", "public", "x-a", "kept"])
    results = KeptResults((), Around((Hooks(),)), added)
    _, headers, _ = msgspec.msgpack.decode(results.answer(Response("no", 404), 200, None, None))  # type: ignore[arg-type]
    assert "x-a" in headers
    assert "cache-control" not in headers
