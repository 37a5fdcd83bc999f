"""Trailers and early hints: what the session writes, and who is told that there are such."""

from __future__ import annotations

import msgspec
import pytest

from conftest import StartCore
from parkade._hosting.root_path import RootPath
from parkade._hosting.scope import scope_of
from parkade._session.hello import HINTS_AND_TRAILERS
from parkade._session.session import Session
from parkade._wire import frames as f
from parkade._wire.ready import Application

pytestmark = pytest.mark.usefixtures("implementation")

HEAD = msgspec.msgpack.encode([200, None, None])
FIELDS = ["link", b"</a.css>; rel=preload"]

ASGI = """
async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise ValueError
    await send({"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]})
    await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": True})
    await send({"type": "http.response.body", "body": b"body"})
    await send({"type": "http.response.trailers", "headers": [(b"a", b"1")], "more_trailers": True})
    await send({"type": "http.response.trailers", "headers": [(b"b", b"2")]})
"""


@pytest.mark.parametrize("knows", [True, False])
def test_hints_and_trailers_are_only_for_a_core_that_knows_them(knows: bool) -> None:
    session = Session()
    features = HINTS_AND_TRAILERS if knows else 0
    session.receive(f.frame(f.HELLO, 0, msgspec.msgpack.encode([1, 1, features, {}])))
    session.ready(8, Application(interface="asgi", concurrent=True))
    request = [None, [], None, b"", ["GET", "/", "", [], "", "http", "1.1"]]
    session.receive(f.frame(f.REQUEST, 1, msgspec.msgpack.encode(request)))
    written = msgspec.msgpack.encode([FIELDS])
    assert session.early_hints(1, FIELDS) == (f.frame(f.EARLY_HINTS, 1, written) if knows else b"")
    session.begin(1, HEAD)
    assert session.early_hints(1, FIELDS) == b"", "it is too late"
    session.data(1, b"body")
    assert session.finish(1, FIELDS) == (f.frame(f.TRAILERS, 1, written) if knows else f.frame(f.DATA, 1, b""))
    assert not session.held(1)


@pytest.mark.parametrize(
    ("version", "te", "told"),
    [
        ("1.0", "trailers", set()),
        ("1.1", "", {"early_hint"}),
        ("1.1", "gzip", {"early_hint"}),
        ("1.1", "gzip, Trailers", {"early_hint", "trailers"}),
        ("2", "", {"early_hint", "trailers"}),
    ],
)
def test_the_scope_names_what_the_client_can_be_sent(version: str, te: str, told: set[str]) -> None:
    headers = ["te", te.encode()] if te else []
    parts = ["GET", "/", "", headers, "127.0.0.1", "http", version, "an id", 4711, "127.0.0.1", 8000]
    head = msgspec.Raw(msgspec.msgpack.encode(parts))
    names = {f"http.response.{name}" for name in (*told, "pathsend")}
    assert set(scope_of(head, RootPath(""))["extensions"]) == names
    assert set(scope_of(head, RootPath(""), has_trailers=False)["extensions"]) == {"http.response.pathsend"}


@pytest.mark.parametrize("features", [0, HINTS_AND_TRAILERS])
def test_an_application_sends_hints_and_trailers(core: StartCore, features: int) -> None:
    worker = core(ASGI, "application:application", features=features)
    worker.ready()
    stream = worker.request(None)
    frames = [worker.next() for _ in range(4 if features else 3)]
    told = [name for name, at, _ in frames if at == stream]
    if features:
        assert told == ["EARLY_HINTS", "RESPONSE+", "DATA+", "TRAILERS"]
    else:
        assert told == ["RESPONSE+", "DATA+", "DATA"]
