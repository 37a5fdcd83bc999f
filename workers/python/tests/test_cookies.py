"""Cookies that a response sets, and their way back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from http.cookies import SimpleCookie
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parkade import App, Request, Response
from parkade._requests.cookies import parse_cookies
from parkade._responses.cookies import quoted_value
from parkade.testing import Client


def line(name: str = "key", value: str = "sesame", **options: Any) -> str:
    return Response().set_cookie(name, value, **options).headers["set-cookie"]


def test_a_cookie_is_safe_unless_it_is_told_otherwise() -> None:
    assert line() == "key=sesame; Path=/; Secure; HttpOnly; SameSite=Lax"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_age": 60}, "key=sesame; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax"),
        ({"max_age": timedelta(days=1)}, "key=sesame; Max-Age=86400; Path=/; Secure; HttpOnly; SameSite=Lax"),
        (
            {"expires": datetime(2027, 1, 2, 4, 5, 6, tzinfo=timezone(timedelta(hours=1)))},
            "key=sesame; Expires=Sat, 02 Jan 2027 03:05:06 GMT; Path=/; Secure; HttpOnly; SameSite=Lax",
        ),
        ({"path": None, "domain": "example.org"}, "key=sesame; Domain=example.org; Secure; HttpOnly; SameSite=Lax"),
        ({"secure": False, "http_only": False, "same_site": "strict"}, "key=sesame; Path=/; SameSite=Strict"),
        (
            {"same_site": "none", "partitioned": True},
            "key=sesame; Path=/; Secure; HttpOnly; SameSite=None; Partitioned",
        ),
    ],
)
def test_each_option_is_an_attribute(options: dict[str, Any], expected: str) -> None:
    assert line(**options) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "a=b"},
        {"name": "ü"},
        {"name": "a\n"},
        {"value": "x" * 4_094},
        {"same_site": "none", "secure": False},
        {"partitioned": True, "secure": False},
        {"same_site": "Lax"},
        {"name": "__Secure-key", "secure": False},
        {"name": "__Host-key", "path": "/shop"},
        {"name": "__host-key", "domain": "example.org"},
        {"path": "shop"},
        {"path": "/a; Domain=example.org"},
        {"domain": "a\r\nset-cookie: x"},
        {"expires": datetime(2027, 1, 2)},
        {"max_age": float("nan")},
    ],
)
def test_what_a_browser_would_drop_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"cookie|same_site|expires|max_age"):
        line(**wrong)


def test_the_last_of_the_same_name_path_and_domain_counts() -> None:
    response = Response().set_cookie("a", "1").set_cookie("b", "2").set_cookie("a", "3", max_age=5)
    response.set_cookie("a", "4", path="/shop")
    names = [cookie.partition(";")[0] for cookie in response.headers.getlist("set-cookie")]
    assert names == ["b=2", "a=3", "a=4"]


def test_a_cookie_is_deleted_as_it_was_set() -> None:
    response = Response().set_cookie("key", "sesame", path="/shop").delete_cookie("key", path="/shop")
    assert response.headers.getlist("set-cookie") == [
        "key=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/shop; Secure; HttpOnly; SameSite=Lax"
    ]


@given(st.text(max_size=200))
def test_every_text_comes_back(text: str) -> None:
    try:
        quoted = quoted_value(text)
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    assert quoted.isascii()
    assert quoted.isprintable()
    assert ";" not in quoted
    assert "," not in quoted
    assert parse_cookies([f"a=1; key={quoted}; b=2"]) == {"a": "1", "key": text, "b": "2"}


@given(st.text(st.characters(max_codepoint=127), max_size=100))
def test_pythons_own_reader_understands_it(text: str) -> None:
    assert SimpleCookie(f"key={quoted_value(text)}")["key"].value == text


def test_what_pythons_own_writer_wrote_is_read_as_before() -> None:
    written = SimpleCookie({"key": "é;"}).output(header="").strip()
    assert parse_cookies([written]) == {"key": "é;"}


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_handler_sets_a_cookie_and_the_next_request_brings_it(concurrent: bool) -> None:
    app = App(concurrent=concurrent)

    @app.get("/login")
    def login() -> Response:
        return Response("welcome").set_cookie("user", "Aña; x")

    @app.get("/me")
    def me(request: Request) -> str:
        return request.cookies["user"]

    client = Client(app)
    cookie = client.get("/login").headers["set-cookie"].partition(";")[0]
    assert client.get("/me", headers={"cookie": cookie}).text == "Aña; x"
