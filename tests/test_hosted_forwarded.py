"""What a proxy tells of its client, as applications of WSGI and ASGI and their WebSockets see it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Serve
from .harness.server import Server
from .harness.versions import VERSIONS, asking_over
from .harness.websocket import Opener

TRUST: dict[str, dict[str, Any]] = {
    "trusted": {"trust": "127.0.0.1"},
    "nobody": {},
    "another": {"trust": "192.0.2.0/24"},
    "forwarded": {"trust": "127.0.0.1", "forwarded": "forwarded"},
}
Told = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def servers(serve_for_all: Serve) -> Callable[[str, str], Server]:
    """The servers of this file, by the application and by whom they trust."""
    kept: dict[tuple[str, str], Server] = {}

    def of(app: str, trust: str) -> Server:
        if (app, trust) not in kept:
            kept[app, trust] = serve_for_all(app, workers=1, **TRUST[trust])
        return kept[app, trust]

    return of


@pytest.fixture(params=[(app, version) for app in ("asgi", "wsgi", "websocket") for version in VERSIONS], ids=" ".join)
def told(request: pytest.FixtureRequest, servers: Callable[[str, str], Server]) -> Told:
    """What an application is told, over this version: `client`, `scheme` (as of HTTP), `host` and `prefix`."""
    app, version = request.param

    def ask(trust: str, *fields: tuple[str, str]) -> dict[str, str]:
        if app == "websocket":
            client = Opener(version.removeprefix("HTTP/"))(
                servers("sockets_asgi", trust), "/scope", *(f"{name}: {value}" for name, value in fields)
            )
            scope = ast.literal_eval(str(client.receive()))
            scheme = {"ws": "http", "wss": "https"}[scope[1]]
            return {"scheme": scheme, "client": scope[8], "host": "test", "prefix": scope[6]}
        if app == "asgi":
            said = asking_over(version, servers("raw_asgi", trust))("/scope", fields=fields).json()
            client = ast.literal_eval(said["client"])[0]
            host = dict(said["headers"])["host"]
            return {"client": client, "host": host} | {
                "scheme": ast.literal_eval(said["scheme"]),
                "prefix": ast.literal_eval(said["root_path"]),
            }
        said = asking_over(version, servers("raw_wsgi", trust))("/environ", fields=fields).json()
        names = {"client": "REMOTE_ADDR", "scheme": "wsgi.url_scheme", "host": "HTTP_HOST", "prefix": "SCRIPT_NAME"}
        return {name: said[key] for name, key in names.items()}

    return ask


FOR, PROTO = "x-forwarded-for", "x-forwarded-proto"


@pytest.mark.parametrize(
    ("fields", "client", "scheme"),
    [
        ([(FOR, "192.0.2.7")], "192.0.2.7", "http"),
        ([(FOR, "192.0.2.7"), (PROTO, "https")], "192.0.2.7", "https"),
        ([(PROTO, "https")], "127.0.0.1", "https"),
        ([(PROTO, "HTTPS")], "127.0.0.1", "https"),
        ([(PROTO, "http")], "127.0.0.1", "http"),
        ([(PROTO, "gopher")], "127.0.0.1", "http"),
        ([(FOR, "203.0.113.9"), (FOR, "192.0.2.7")], "192.0.2.7", "http"),
        ([(FOR, "203.0.113.9, 192.0.2.7")], "192.0.2.7", "http"),
        ([(FOR, "192.0.2.7, 127.0.0.1")], "192.0.2.7", "http"),
        ([(FOR, "192.0.2.7"), (FOR, "127.0.0.1, 127.0.0.1")], "192.0.2.7", "http"),
        ([(FOR, "192.0.2.7:4711")], "192.0.2.7", "http"),
        ([(FOR, "[2001:db8::1]:4711")], "2001:db8::1", "http"),
        ([(FOR, "2001:db8::1")], "2001:db8::1", "http"),
        ([(FOR, "unknown")], "127.0.0.1", "http"),
        ([(FOR, "")], "127.0.0.1", "http"),
        ([(FOR, "192.0.2.7, nonsense")], "127.0.0.1", "http"),
        ([(FOR, "192.0.2.7, ")], "127.0.0.1", "http"),
    ],
    ids=str,
)
def test_a_trusted_proxy_is_believed(told: Told, fields: list[tuple[str, str]], client: str, scheme: str) -> None:
    said = told("trusted", *fields)
    assert (said["client"], said["scheme"]) == (client, scheme)


@pytest.mark.parametrize("trust", ["nobody", "another"])
def test_who_is_not_trusted_is_not_believed(told: Told, trust: str) -> None:
    said = told(trust, (FOR, "192.0.2.7"), (PROTO, "https"), ("forwarded", "for=192.0.2.8;proto=https"))
    assert (said["client"], said["scheme"]) == ("127.0.0.1", "http")


@pytest.mark.parametrize(
    ("value", "client", "scheme"),
    [
        ("for=192.0.2.7", "192.0.2.7", "http"),
        ("for=192.0.2.7;proto=https", "192.0.2.7", "https"),
        ("For=192.0.2.7; PROTO=https; host=example.com", "192.0.2.7", "https"),
        ("for=203.0.113.9;proto=http, for=192.0.2.7;proto=https", "192.0.2.7", "https"),
        ("for=192.0.2.7;proto=http, for=127.0.0.1;proto=http", "192.0.2.7", "http"),
        ("for=192.0.2.7;proto=https, for=127.0.0.1;proto=http", "192.0.2.7", "https"),
        ("for=192.0.2.7;proto=http, for=127.0.0.1;proto=https", "192.0.2.7", "http"),
        ("for=203.0.113.9;proto=https, for=192.0.2.7;proto=http, for=127.0.0.1;proto=http", "192.0.2.7", "http"),
        ('for="[2001:db8::1]:4711"', "2001:db8::1", "http"),
        ("for=_hidden", "127.0.0.1", "http"),
    ],
)
def test_a_trusted_proxy_may_speak_rfc_7239(told: Told, value: str, client: str, scheme: str) -> None:
    said = told("forwarded", ("forwarded", value), (FOR, "203.0.113.1"))
    assert (said["client"], said["scheme"]) == (client, scheme)


@pytest.mark.parametrize(
    "field",
    [
        ("x-forwarded-host", "other"),
        ("x-forwarded-port", "444"),
        ("x-forwarded-prefix", "/other"),
        ("x-forwarded-ssl", "on"),
        ("x-forwarded-protocol", "ssl"),
        ("front-end-https", "on"),
        ("x-real-ip", "192.0.2.9"),
        ("script-name", "/other"),
        ("script_name", "/other"),
        ("path-info", "/other"),
        ("remote-addr", "192.0.2.9"),
        ("forwarded", "for=192.0.2.9;proto=https;host=other"),
    ],
    ids=str,
)
@pytest.mark.parametrize("trust", ["trusted", "nobody"])
def test_no_other_field_changes_what_is_told(told: Told, trust: str, field: tuple[str, str]) -> None:
    assert told(trust, field) == {"client": "127.0.0.1", "scheme": "http", "host": "test", "prefix": ""}
