"""HTTP/2 has the same bounds as HTTP/1, although its streams and connections are separate code."""

from __future__ import annotations

import pytest

from .conftest import Serve
from .harness.client import Broken
from .harness.server import Server
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.also_in_perl

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", header_limit="1KiB", header_count=5)


# The head


def test_the_crumbs_of_a_cookie_reach_the_application_as_one_field(server: Server) -> None:
    """RFC 9113, section 8.2.3."""
    client = server.connect2()
    told = client.get("/echo", ("cookie", "a=1"), ("x-b", "2"), ("cookie", "c=3; d"), ("cookie", "e=4")).json()
    assert [value for name, value in told["headers"] if name == "cookie"] == ["a=1; c=3; d; e=4"]
    assert ["x-b", "2"] in told["headers"]
    whole = client.get("/echo", ("cookie", "a=1; c=3")).json()
    assert [value for name, value in whole["headers"] if name == "cookie"] == ["a=1; c=3"]


@pytest.mark.python_only("fields are a hash in Perl")
def test_http_1_hands_repeated_cookie_fields_on_as_they_came(server: Server) -> None:
    """No rule of HTTP/1 allows a server to join them; `request.cookies` reads them all (`test_application`)."""
    told = server.get("/echo", "Cookie: a=1", "Cookie: c=3").json()
    assert [value for name, value in told["headers"] if name == "cookie"] == ["a=1", "c=3"]


@pytest.mark.parametrize(("count", "status"), [(5, 200), (6, 431)])
@pytest.mark.parametrize("name", ["x-{}", "x-same", "cookie"])
def test_as_many_fields_as_the_limit_are_served_and_one_more_is_431(
    server: Server, name: str, count: int, status: int
) -> None:
    """Pseudo-header fields do not count, but crumbs of a cookie do."""
    client = server.connect2()
    assert client.get("/hola/x", *((name.format(at), "y") for at in range(count))).status == status
    assert client.get("/hola/x").text == "Hola x"


@pytest.mark.parametrize("expectation", ["more", "100-continue, more", ""])
def test_an_expectation_that_is_not_understood_is_refused(server: Server, expectation: str) -> None:
    client = server.connect2()
    assert client.get("/hola/x", ("expect", expectation)).status == 417
    assert client.get("/hola/x", ("expect", "100-Continue")).status == 200


@pytest.mark.parametrize(("size", "status"), [(1_024, 200), (1_025, 431)])
def test_a_head_up_to_the_limit_is_served_and_one_byte_more_is_431(server: Server, size: int, status: int) -> None:
    """Sizes as HTTP/2 counts them: each field counts as its name and value plus 32 bytes (RFC 9113, section 6.5.2)."""
    head = [(":method", "GET"), (":scheme", "http"), (":authority", "test"), (":path", "/hola/x"), ("x-a", "")]
    fewest = sum(len(name) + len(value) + 32 for name, value in head)
    client = server.connect2()
    assert client.get("/hola/x", ("x-a", "v" * (size - fewest))).status == status
    assert client.get("/hola/x").text == "Hola x"


# Bodies


# Connections


@pytest.mark.promise(8)
def test_connections_of_both_protocols_count_together(serve: Serve) -> None:
    server = serve("basic", connections_limit=4)
    one, two = [server.connect() for _ in range(2)], [server.connect2() for _ in range(2)]
    assert [client.get("/hola/x").status for client in one] == [200] * 2
    assert [client.get("/hola/x").status for client in two] == [200] * 2
    waits = [server.connect().ask("GET", "/hola/late") for _ in range(2)]
    assert not any(client.is_readable(0.3) for client in waits)
    connections = server.status()["connections"]
    assert (connections["http1"], connections["http2"]) == (2, 2)
    two[0].close()
    assert waits[0].answer().text == "Hola late"
    assert not waits[1].is_readable(0.3)
    one[0].close()
    assert waits[1].answer().text == "Hola late"
    assert two[1].get("/hola/x").status == 200


# Events


@pytest.mark.promise(8)
def test_a_client_of_events_that_does_not_read_is_cut_off_and_forgotten(server: Server) -> None:
    client = server.connect2(window=16_384)
    stream = client.ask("GET", "/events/unread")
    server.until_parked(1)
    for _ in range(10):
        server.publish("unread", b"x" * 100_000)
    watch = Stopwatch()
    until("the patience is over", lambda: watch.seconds > 1.2)
    server.until_parked(1)
    server.publish("unread", b"one more")
    server.until_zero()
    assert client.get("/hola/x").text == "Hola x", "its other streams go on"
    with pytest.raises(Broken, match="reset"):  # at once: what waited is dropped, too
        client.answer(stream)
