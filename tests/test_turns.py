"""What concerns a thousand clients is done in turns: each is told everything once and in order, others are served."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from .conftest import Serve
from .harness.crowd import Crowd
from .harness.prober import Prober
from .harness.until import until

CROWD = 1_000


@pytest.mark.promise(5)
def test_each_stream_of_a_crowd_is_told_everything_once_and_in_order(serve: Serve) -> None:
    server = serve("basic")
    clients = [server.connect().ask("GET", "/events/all") for _ in range(CROWD)]
    server.until_parked(CROWD)
    for number in range(5):
        server.publish("all", b"message-%d-" % number)
    for client in clients:
        said = b""
        while b"message-4-" not in said:
            more = client.socket.recv(65_536)
            assert more, "the stream ends"
            said += more
        places = [said.find(b"message-%d-" % number) for number in range(5)]
        assert -1 not in places, said
        assert places == sorted(places), said
        assert Counter(said[place : place + 10] for place in places).total() == said.count(b"message-"), said
    server.cleared()


@pytest.mark.promise(5)
def test_a_publish_to_a_crowd_is_told_once_while_others_are_served(serve: Serve) -> None:
    server = serve("basic")
    with Crowd(server.address, CROWD) as crowd, Prober(server.address) as prober:
        for _ in range(5):
            crowd.ask("/next/all")
            server.until_parked(CROWD)
            server.publish("all", b"one")
            server.publish("all", b"two")
            assert crowd.statuses(20) == {200: CROWD}
            server.until_zero()
    # On a quiet machine it is some milliseconds; what is promised is 50.
    assert prober.slowest < 1
    turns = server.status()["turns"]
    assert turns["longest"] > 0
    assert f"parkade_turns_long_total {turns['long']}" in server.metrics()


@pytest.mark.promise(7)
def test_at_a_stop_each_of_a_crowd_gets_its_answer(serve: Serve) -> None:
    server = serve("basic")
    with Crowd(server.address, CROWD) as crowd:
        crowd.ask("/next/all")
        server.until_parked(CROWD)
        server.signal(signal.SIGTERM)
        statuses = crowd.statuses(20)
        assert statuses.total() == CROWD
        assert 0 not in statuses, statuses
        until("it ends", lambda: server.process.poll() is not None)
