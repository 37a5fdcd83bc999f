"""What applications of WSGI and ASGI are used to from other servers: methods, targets, statuses and fields."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from .conftest import Serve
from .harness.client import chunked, request
from .harness.server import APPS, Server
from .harness.versions import VERSIONS, Ask, asking_over

WAYS: dict[str, dict[str, Any]] = {
    "wsgi": {"target": f"{APPS}/hosted_http.py:wsgi"},
    "threads": {"target": f"{APPS}/hosted_http.py:wsgi", "threads": 3},
    "asgi": {"target": f"{APPS}/hosted_http.py:asgi"},
}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "M-SEARCH", "get"]
STATUSES = [200, 201, 202, 204, 301, 304, 400, 401, 403, 404, 405, 418, 429, 500, 502, 503, 511]


@pytest.fixture(scope="module", params=WAYS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(**WAYS[request.param], workers=1)


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


@pytest.mark.parametrize("method", METHODS)
def test_an_application_gets_every_method(ask: Ask, method: str) -> None:
    assert ask("/a", method).json()["method"] == method


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PROPFIND"])
def test_a_body_comes_with_any_method(ask: Ask, method: str) -> None:
    assert ask("/a", method, b"body").json()["body"] == "body"


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_sent(ask: Ask, status: int) -> None:
    answer = ask(f"/status?{status}")
    assert (answer.status, answer.body) == (status, b"" if status in (204, 304) else b"status")


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", ""),
        ("/?", "/", ""),
        ("/a//b///c", "/a//b///c", ""),
        ("/a;b=c", "/a;b=c", ""),
        ("/a?b?c=d&e", "/a", "b?c=d&e"),
        ("/a?b=%20%C3%A9+f", "/a", "b=%20%C3%A9+f"),
        ("/%7Ea%2Bb", "/~a+b", ""),
        ("http://test/a?b", "/a", "b"),
    ],
)
def test_a_target_is_taken_apart(server: Server, target: str, path: str, query: str) -> None:
    told = server.get(target).json()
    assert (told["path"], told["query"]) == (path, query)


@pytest.mark.parametrize(
    "target",
    [
        "/a/../b",
        "/../../etc/passwd",
        "/a/./b",
        "/..",
        "/a/%2e%2E/b",
        "/..%2f..%2fetc",
        "/a/..\\b",
        "/a%5c..%5cb",
    ],
)
def test_a_path_that_leads_upwards_reaches_the_application_as_it_came(ask: Ask, target: str) -> None:
    """As other servers pass it on: there is one application, which decides itself what its paths are."""
    assert ask(target).json()["path"] == unquote(target)


def test_options_of_the_whole_server_reach_the_application(server: Server) -> None:
    with server.connect() as client:
        told = client.ask("OPTIONS", "*").answer().json()
    assert (told["method"], told["path"]) == ("OPTIONS", "*")


def test_values_keep_tabs_and_bytes_and_lose_the_space_around_them(ask: Ask) -> None:
    fields = ask("/a", fields=(("x-a", "b\tc  d"), ("x-empty", ""), ("x-quoted", '"a, b"'))).json()["fields"]
    assert (fields["x-a"], fields["x-empty"], fields["x-quoted"]) == ("b\tc  d", "", '"a, b"')


def test_space_around_values_is_none_of_them(server: Server) -> None:
    with server.connect() as client:
        raw = b"GET /a HTTP/1.1\r\nHost: a\r\nX-A: \t  b \t\r\nX-B:c\r\nX-C: \xe9\r\n\r\n"
        fields = client.send(raw).answer().json()["fields"]
    assert (fields["x-a"], fields["x-b"], fields["x-c"]) == ("b", "c", "\xe9")


def test_trailers_of_a_request_never_become_fields(server: Server) -> None:
    with server.connect() as client:
        body = chunked(b"body")[:-2] + b"Host: evil\r\nContent-Length: 5\r\nX-A: evil\r\n\r\n"
        told = client.send(request("POST", "/a", "Transfer-Encoding: chunked"), body).answer().json()
        assert told["body"] == "body"
        assert "evil" not in str(told["fields"])
        assert client.get("/a").status == 200


@pytest.mark.parametrize(
    "field", ["Connection=close", "Transfer-Encoding=chunked", "Keep-Alive=timeout%3D9", "Upgrade=h2c"]
)
def test_fields_about_the_connection_are_those_of_the_core(server: Server, field: str) -> None:
    with server.connect() as client:
        answer = client.get(f"/fields?{field}&X-A=b")
        assert (answer["x-a"], answer.text, answer["content-length"]) == ("b", "fields", "6")
        assert field.partition("=")[0].lower() not in answer
        assert client.get("/a").status == 200, "the connection goes on"
    with server.connect2() as client2:
        assert client2.get(f"/fields?{field}").text == "fields"


@pytest.mark.parametrize("field", ["Proxy-Connection=close", "TE=trailers"])
def test_fields_that_http2_does_not_have_are_left_out_there(server: Server, field: str) -> None:
    with server.connect2() as client:
        answer = client.get(f"/fields?{field}&X-A=b")
        assert (answer["x-a"], answer.text) == ("b", "fields")
        assert field.partition("=")[0].lower() not in answer


def test_a_server_field_and_a_date_of_the_application_stay(ask: Ask) -> None:
    answer = ask("/fields?Server=mine&Date=Thu,%2001%20Jan%201970%2000:00:00%20GMT")
    assert [value for name, value in answer.fields if name.lower() == "server"] == ["mine"]
    assert [value for name, value in answer.fields if name.lower() == "date"] == ["Thu, 01 Jan 1970 00:00:00 GMT"]


@pytest.mark.parametrize("name", ["Set-Cookie", "Link", "WWW-Authenticate"])
def test_a_field_may_come_several_times(ask: Ask, name: str) -> None:
    answer = ask(f"/fields?{name}=a&{name}=b&{name}=a")
    assert [value for key, value in answer.fields if key.lower() == name.lower()] == ["a", "b", "a"]


def test_a_connection_closes_if_its_client_says_so(server: Server) -> None:
    with server.connect() as client:
        answer = client.get("/a", "Connection: close")
        assert (answer.status, answer["connection"]) == (200, "close")
        assert client.ends()


def test_requests_of_a_pipeline_are_answered_in_their_order(server: Server) -> None:
    with server.connect() as client:
        client.send(*(request("POST", f"/{number}", body=b"x" * number) for number in range(20)))
        for number in range(20):
            told = client.answer().json()
            assert (told["path"], len(told["body"])) == (f"/{number}", number)
