"""Redirects, and the addresses that a client may choose."""

from __future__ import annotations

import pytest

from parkade import App, HTTPError, Response, redirect
from parkade.testing import Client


def location(url: str, **options: bool) -> str:
    return redirect(url, **options).headers["location"]


def test_a_redirect_is_303_unless_it_is_told_otherwise() -> None:
    app = App()
    app.post("/orders", lambda: redirect("/orders/7", headers={"x-a": "b"}).set_cookie("seen", "yes"))
    app.get("/old", redirect("/new", 308))
    answer = Client(app).post("/orders")
    assert (answer.status, answer.headers["location"], answer.headers["x-a"]) == (303, "/orders/7", "b")
    assert "set-cookie" in answer.headers
    assert app._ready().routes[1].kind == "constant"
    assert Client(app).get("/old").status == 308


@pytest.mark.parametrize("status", [200, 300, 304, 404])
def test_another_status_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match="a redirect has the status"):
        redirect("/", status)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("/müsli?q=a b", "/m%C3%BCsli?q=a%20b"),
        ("/a%2Fb", "/a%2Fb"),
        ("../up", "../up"),
        ('/"<>', "/%22%3C%3E"),
    ],
)
def test_an_address_is_sent_as_headers_can_hold_it(url: str, sent: str) -> None:
    assert location(url) == sent


@pytest.mark.parametrize("url", ["", "/a\r\nset-cookie: x", "/a\tb", "/a\x00"])
def test_an_address_with_control_characters_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        redirect(url)


OTHER_HOSTS = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    " //evil.example",
    "evil.example",
    "javascript:alert(1)",
    "https:evil.example",
    "",
]


@pytest.mark.parametrize("url", OTHER_HOSTS)
def test_local_takes_no_other_host(url: str) -> None:
    with pytest.raises(HTTPError) as raised:
        redirect(url, local=True)
    assert raised.value.status == 400


@pytest.mark.parametrize("url", ["/", "/a/b?next=//x#y", "/a b"])
def test_local_takes_paths(url: str) -> None:
    assert isinstance(redirect(url, local=True), Response)
