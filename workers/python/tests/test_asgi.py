"""Which interface an application has, and what the scope tells, without a server."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from parkade._hosting.interfaces import is_asgi, is_asgi_2, is_wsgi
from parkade._hosting.scope import scope_of
from parkade._hosting.shutdown import Shutdown
from parkade._wire import payloads as p

pytestmark = pytest.mark.usefixtures("implementation")


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...


async def asgi_of(name: str, scope: Any, receive: Any, send: Any) -> None: ...


async def of_any(*arguments: Any) -> None: ...


def plain_asgi(scope: Any, receive: Any, send: Any) -> Any: ...


def wsgi(environ: Any, start_response: Any) -> Any: ...


def wsgi_of_any(*arguments: Any) -> Any: ...


def asgi_2(scope: Any) -> Any: ...


class Object:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


class Awaitable:
    def __init__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def __await__(self) -> Any: ...


class Double:
    def __init__(self, scope: Any) -> None: ...


@pytest.mark.parametrize(
    ("application", "kind"),
    [
        (asgi, "asgi"),
        (partial(asgi_of, "a"), "asgi"),
        (of_any, "asgi"),
        (plain_asgi, "asgi"),
        (Object(), "asgi"),
        (Object().__call__, "asgi"),
        (Awaitable, "asgi"),
        (wsgi, "wsgi"),
        (wsgi_of_any, "wsgi"),
        (asgi_2, "asgi 2"),
        (Double, "asgi 2"),
        (Object, "none"),
        ({}, "none"),
        (lambda: None, "none"),
    ],
)
def test_an_application_is_what_it_can_be_called_with(application: object, kind: str) -> None:
    found = "asgi" if is_asgi(application) else "wsgi" if is_wsgi(application) else "none"
    if found == "none" and is_asgi_2(application):
        found = "asgi 2"
    assert found == kind


def head(path: str = "/", *headers: object, client: str = "192.0.2.7", scheme: str = "http") -> p.RequestHead:
    told = ["GET", path, "", headers, client, scheme, "1.1", "an id"]
    return p.read_head(msgspec.Raw(msgspec.msgpack.encode(told)))


@pytest.mark.parametrize(
    ("host", "scheme", "server"),
    [
        (b"example.com", "http", ("example.com", 80)),
        (b"example.com", "https", ("example.com", 443)),
        (b"[::1]:99", "http", ("::1", 99)),
        (b"example.com:123456", "http", ("example.com:123456", 80)),
        (None, "http", ("localhost", 80)),
    ],
)
def test_the_server_is_that_of_the_host(host: bytes | None, scheme: str, server: tuple[str, int]) -> None:
    fields = () if host is None else ("accept", b"a", "host", host)
    assert scope_of(head("/", *fields, scheme=scheme))["server"] == server


def test_a_client_without_an_address_is_nobody() -> None:
    assert scope_of(head(client=""))["client"] is None
    assert scope_of(head())["client"] == ("192.0.2.7", 0)


def test_scopes_share_nothing_that_can_be_changed() -> None:
    one, another = scope_of(head()), scope_of(head())
    shared = [key for key, value in one.items() if isinstance(value, dict | list) and value is another[key]]
    assert shared == []


def test_a_shutdown_can_be_awaited_any_number_of_times() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        shutdown = Shutdown(lambda: told.append("at last"))

        async def wait(name: str) -> None:
            await shutdown
            told.append(name)

        waiting = [asyncio.ensure_future(wait(name)) for name in "ab"]
        await asyncio.sleep(0)
        assert not shutdown.is_set()
        shutdown.begin(30)
        shutdown.begin(0.0)
        await asyncio.gather(*waiting)
        await shutdown
        while "at last" not in told:
            await asyncio.sleep(0)
        return told

    assert asyncio.run(run()) == ["a", "b", "at last"]
