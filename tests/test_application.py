"""A native application through the whole server: routes, parameters, responses, errors, hooks."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from .conftest import Serve
from .harness.server import ROOT, Server
from .harness.wire import HELLO, REQUEST, Workers, hello, ready, response

JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
VECTORS = json.loads((ROOT / "protocol" / "vectors" / "routes.json").read_text())


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("shop")


# Parameters


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("/lot/7", {"lot": 7}),
        ("/lot/-7", {"lot": -7}),
        ("/price/7.5", {"price": 7.5}),
        ("/user/123E4567-e89b-12d3-a456-426614174000", {"user": "123e4567-e89b-12d3-a456-426614174000"}),
        ("/search?word=a+b%26c", {"word": "a b&c"}),
        ("/search?word=x&page=3&exact=true", {"page": 3, "exact": True}),
        ("/search?word=x&since=2026-01-02T03:04:05", {"since": "2026-01-02T03:04:05"}),
        ("/search?word=x&colour=red", {"colour": "RED"}),
        ("/search?word=x&tag=a&tag=b", {"tag": ["a", "b"]}),
        ("/search?word=%C3%B1", {"word": "ñ"}),
    ],
)
def test_parameters_come_by_name_and_annotation(server: Server, target: str, told: dict[str, object]) -> None:
    answer = server.get(target)
    assert answer.status == 200, answer.text
    assert answer.json().items() >= told.items()


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("/search", {"word"}),
        ("/search?word=x&page=two", {"page"}),
        ("/search?word=x&exact=perhaps", {"exact"}),
        ("/search?word=x&since=yesterday", {"since"}),
        ("/search?word=x&colour=green", {"colour"}),
        ("/search?page=two&colour=green", {"word", "page", "colour"}),
    ],
)
def test_a_wrong_parameter_is_422_and_named(server: Server, target: str, names: set[str]) -> None:
    answer = server.get(target)
    assert (answer.status, answer["content-type"]) == (422, "application/problem+json")
    assert {parameter["name"] for parameter in answer.json()["parameters"]} == names


@pytest.mark.parametrize("target", ["/lot/x", "/lot/7.5", "/price/x", "/user/7"])
def test_a_segment_that_does_not_convert_matches_no_route(server: Server, target: str) -> None:
    assert server.get(target).status == 404


@pytest.mark.parametrize(
    ("target", "content_type", "body", "status", "told"),
    [
        ("/bid", JSON, b'{"bidder": "Ana", "amount": 7}', 200, {"bidder": "Ana", "amount": 7}),
        ("/bid", JSON, b'{"bidder": "Ana", "amount": "7"}', 422, None),
        ("/bid", JSON, b'{"bidder": "Ana"}', 422, None),
        ("/bid", JSON, b"{", 400, None),
        ("/bid", JSON, b"\xff", 400, None),
        ("/order", JSON, b'{"items": ["a"]}', 200, [["a"], False]),
        ("/order", JSON, b"[" * 100_000, 400, None),
        ("/order", JSON, b"[" * 100, 422, None),
        ("/form", FORM, b"name=a+b&count=3", 200, {"name": "a b", "count": 3}),
        ("/form", FORM, b"name=x&count=many", 422, None),
    ],
)
def test_bodies_are_taken_apart(
    server: Server, target: str, content_type: str, body: bytes, status: int, told: object
) -> None:
    answer = server.post(target, body, content_type)
    assert answer.status == status, answer.text
    if told is not None:
        assert answer.json() == told


def test_a_file_is_uploaded(server: Server) -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nmine\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        + b"\0" * 100_000
        + b"\r\n--x--\r\n"
    )
    answer = server.post("/upload", body, "Content-Type: multipart/form-data; boundary=x")
    assert answer.json() == {"name": "a.bin", "bytes": 100_000, "title": "mine"}


def test_cookies_are_read(server: Server) -> None:
    answer = server.get("/cookies", "Cookie: a=1; b=two words; a=3", "Cookie: c=4")
    assert answer.json() == {"a": "1", "b": "two words", "c": "4"}
    stream = server.connect2().get("/cookies", ("cookie", "a=1"), ("cookie", "b=two words; a=3"), ("cookie", "c=4"))
    assert stream.json() == answer.json()


# Responses, errors, hooks


def test_every_kind_of_answer(server: Server) -> None:
    page = server.get("/page")
    assert (page.status, page["content-type"], page.text) == (202, "text/html; charset=utf-8", "<p>page")
    assert server.get("/nothing").status == 204
    later = server.get("/later")
    assert (later.status, later["x-later"], later.text) == (201, "yes", "later")
    client = server.connect()
    assert client.ask("DELETE", "/hola/x").answer().status == 204
    changed = client.ask("PATCH", "/bid", JSON, body=b'{"bidder": "Ana", "amount": 9}').answer()
    assert (changed.json(), changed["x-bid"]) == ({"changed": 9}, "Ana")


def test_errors_have_handlers(server: Server) -> None:
    sold_out = server.get("/sold-out")
    assert (sold_out.status, sold_out.json()) == (409, {"out of stock": "lamps"})
    teapot = server.get("/teapot", "Accept: application/json")
    assert (teapot.status, teapot["x-pot"], teapot.json()["detail"]) == (418, "yes", "a teapot")
    nowhere = server.get("/not%20here")
    assert (nowhere.status, nowhere.text) == (404, "nothing at /not here")


def test_a_wrong_method_is_405_though_404_has_a_handler(server: Server) -> None:
    answer = server.post("/hola/x")
    assert answer.status == 405
    assert {"GET", "HEAD", "DELETE"} <= set(answer["allow"].split(", "))


def test_hooks_run_around_every_handler(server: Server) -> None:
    assert server.get("/hola/x", "X-See: this")["x-signed"] == "this"
    forbidden = server.get("/hola/x", "X-Forbid: yes")
    assert (forbidden.status, forbidden.text) == (403, "not today")
    assert "x-signed" in server.get("/sold-out")
    assert server.get("/started").json() == ["on_start"]


def test_a_handler_that_allocates_without_end_is_500_and_the_core_is_the_last_to_go(server: Server) -> None:
    answer = server.get("/memory")
    assert answer.status in (500, 502)
    server.ready()
    adjusted = [int((ROOT / f"/proc/{pid}/oom_score_adj").read_text()) for pid in (server.worker_pids()[0], server.pid)]
    assert adjusted[0] > adjusted[1]


# Routes: the vectors of the protocol, with a worker that the test plays


@pytest.fixture
def workers() -> Iterator[Workers]:
    fakes = Workers()
    yield fakes
    fakes.close()


@pytest.fixture
def play(serve: Serve, workers: Workers) -> Callable[[list[Any]], Server]:
    def start(routes: list[Any]) -> Server:
        return serve("fake:app", python=workers.python, environment=workers.environment, is_ready=False)

    return start


def is_a_target(asked: Any) -> bool:
    """HTTP refuses some paths before they are looked up (`test_http_strict.py`); the vectors contain these, too."""
    decoded = unquote_to_bytes(asked["path"])
    with contextlib.suppress(UnicodeDecodeError):
        leads_elsewhere = {".", ".."} & set(decoded.decode().split("/"))
        is_well_formed = not re.search(r"[{}]|%(?![0-9A-Fa-f]{2})", asked["path"])
        return is_well_formed and not leads_elsewhere and decoded.decode().isprintable()
    return False


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_routes_match_as_the_vectors_say(play: Callable[[list[Any]], Server], workers: Workers, case: Any) -> None:
    routes = [{"kind": "sync"} | route for route in case["routes"]]
    server = play(routes)
    worker = workers.next().start(routes=routes)
    server.ready()
    client = server.connect()
    for asked in filter(is_a_target, case["requests"]):
        client.ask(asked["method"], asked["path"])
        what = f"{asked['method']} {asked['path']}"
        if "match" in asked:
            told = worker.next(REQUEST)
            assert {"route": told.payload[0], "parameters": told.payload[1]} == asked["match"], what
            worker.send(response(told.stream, b"matched"))
            assert client.answer(head=asked["method"] == "HEAD").status == 200, what
        else:
            answer = client.answer(head=asked["method"] == "HEAD")
            assert answer.status == (405 if "allow" in asked else 404), what
            if "allow" in asked:
                assert sorted(answer["allow"].split(", ")) == asked["allow"], what


@pytest.mark.parametrize("refused", VECTORS["refused"], ids=lambda refused: refused["why"])
def test_routes_that_no_application_may_have_are_refused(
    play: Callable[[list[Any]], Server], workers: Workers, refused: Any
) -> None:
    server = play([])
    worker = workers.next()
    worker.next(HELLO)
    worker.send(hello(), ready(routes=[{"methods": ["GET"], "path": refused["path"], "kind": "sync"}]))
    assert server.fails() == 1
