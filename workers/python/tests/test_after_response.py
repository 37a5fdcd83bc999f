"""What a body's `close` does comes after its response, for cores that count the worker as busy with it."""

from __future__ import annotations

import pytest

from conftest import StartCore
from parkade._session.hello import AFTER_RESPONSE

WSGI = """
from parkade import channel

class Body:
    def __init__(self, pieces):
        self.pieces = pieces

    def __iter__(self):
        for piece in self.pieces:
            if piece is None:
                raise RuntimeError("in the middle")
            yield piece

    def close(self):
        channel("closed").publish("now")

def application(environ, start_response):
    start_response("200 OK", [])
    query = environ["QUERY_STRING"]
    if query == "list":
        return [b"alone"]
    return Body({"whole": [], "pieces": [b"one ", b"two"], "fails": [b"one ", None]}[query])
"""

ENDS = {
    "whole": ["RESPONSE"],
    "pieces": ["RESPONSE+", "DATA+", "DATA+", "DATA"],
    "fails": ["RESPONSE+", "DATA+", "ERROR"],
}


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("query", ENDS)
@pytest.mark.parametrize("features", [0, AFTER_RESPONSE])
def test_a_body_is_closed_after_its_response_if_the_core_counts_that(
    core: StartCore, query: str, threads: str, features: int
) -> None:
    worker = core(WSGI, "application:application", features=features, threads=threads)
    worker.ready()
    for _ in range(2):
        stream = worker.request(None, query=query)
        *begin, end = ENDS[query]
        expected = [*begin, "KEEP", end, "PUBLISH", "RELEASE"] if features else [*begin, "PUBLISH", end]
        told = [worker.next() for _ in expected]
        names = [name for name, _, _ in told]
        # The loop of a worker with threads publishes what is of no stream.
        assert names in (expected, [*expected[:-2], "RELEASE", "PUBLISH"] if features else expected)
        (at,) = [at for name, at, _ in told if name == "PUBLISH"]
        assert at == (0 if features else stream), "no client waits for it any more"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_response_without_more_to_do_costs_no_frame(core: StartCore, threads: str) -> None:
    worker = core(WSGI, "application:application", features=AFTER_RESPONSE, threads=threads)
    worker.ready()
    streams = [worker.request(None, query="list") for _ in range(2)]
    assert worker.names(2) == [f"RESPONSE {stream}" for stream in streams]
