"""What a handler sees of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parkade import App, HTTPError, Request
from parkade.testing import Client


def seen(look: Callable[[Request], Any], path: str = "/", **request: Any) -> Any:
    found: list[Any] = []

    def handler(request: Request) -> None:
        found.append(look(request))

    app = App()
    app.route("/", handler, methods=["GET", "POST"])
    app.route("/ü", handler)
    Client(app).request(request.pop("method", "GET"), path, **request)
    return found[0]


@pytest.mark.parametrize(
    ("look", "path", "headers", "value"),
    [
        (lambda r: (r.method, r.http_version, r.scheme, r.client), "/", {}, ("GET", "1.1", "http", "127.0.0.1")),
        (lambda r: (r.path, r.raw_path), "/%C3%BC", {}, ("/ü", "/%C3%BC")),
        (lambda r: (dict(r.query), r.query.getlist("a")), "/?a=1&b=&a=2", {}, ({"a": "1", "b": ""}, ["1", "2"])),
        (lambda r: (r.query.get("x"), r.query_string), "/?a=%zz", {}, (None, "a=%zz")),
        (
            lambda r: (r.headers["X-Name"], "x-NAME" in r.headers, r.headers.get("y")),
            "/",
            {"x-name": "ü"},
            ("ü", True, None),
        ),
        (lambda r: dict(r.cookies), "/", {"cookie": 'a=1; b="x y"; a=2; =c; d'}, {"a": "1", "b": "x y", "d": ""}),
        (lambda r: r.cursor, "/", {"last-event-id": "a.1", "if-none-match": '"b.2"'}, "a.1"),
        (lambda r: r.cursor, "/", {"if-none-match": 'W/"b.2"'}, "b.2"),
        (lambda r: r.cursor, "/", {"if-none-match": "*"}, None),
        (lambda r: r.cursor, "/", {}, None),
    ],
)
def test_a_request_is_as_it_was_sent(
    look: Callable[[Request], Any], path: str, headers: dict[str, str], value: object
) -> None:
    assert seen(look, path, headers=headers) == value


@pytest.mark.parametrize(
    ("look", "content", "content_type", "value"),
    [
        (lambda r: r.body, b"\xff", "", b"\xff"),
        (lambda r: r.text, "ü".encode("latin-1"), "text/plain; charset=latin-1", "ü"),
        (lambda r: r.text, "ü".encode(), "text/plain; charset=", "ü"),
        (lambda r: r.text, "ü".encode(), 'text/plain; charset=""', "ü"),
        (lambda r: r.json(), b"[1]", "", [1]),
        (lambda r: r.json(list[int]), b"[1]", "", [1]),
        (lambda r: dict(r.form), b"a=1&a=2&b=%C3%BC", "application/x-www-form-urlencoded", {"a": "1", "b": "ü"}),
    ],
)
def test_a_body_is_read_as_it_is_asked_for(
    look: Callable[[Request], Any], content: bytes, content_type: str, value: object
) -> None:
    assert seen(look, method="POST", content=content, headers={"content-type": content_type}) == value


@pytest.mark.parametrize(
    ("look", "content", "status"),
    [
        (lambda r: r.text, b"\xff", 400),
        (lambda r: r.json(), b"{", 400),
        (lambda r: r.json(list[int]), b'["a"]', 422),
        (lambda r: r.form, b"", 415),
    ],
)
def test_a_body_that_is_something_else_is_the_clients_fault(
    look: Callable[[Request], Any], content: bytes, status: int
) -> None:
    def looking(request: Request) -> int:
        with pytest.raises(HTTPError) as raised:
            look(request)
        return raised.value.status

    assert seen(looking, method="POST", content=content) == status
