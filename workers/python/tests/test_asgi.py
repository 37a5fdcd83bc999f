"""Which interface an application has, and what the scope tells, without a server."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from parkade._hosting.environ import Environs
from parkade._hosting.interfaces import is_asgi, is_asgi_2, is_wsgi
from parkade._hosting.root_path import RootPath
from parkade._hosting.scope import scope_of
from parkade._link.shutdown import Shutdown
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


NO_ROOT = RootPath("")


def head(path: str = "/", *more: object, client: str = "192.0.2.7") -> msgspec.Raw:
    told = ["GET", path, "", [], client, "http", "1.1", "an id", *more]
    return msgspec.Raw(msgspec.msgpack.encode(told))


@pytest.mark.parametrize(
    ("told", "server"),
    [
        ((1, "127.0.0.1", 8000), ("127.0.0.1", 8000)),
        ((1, "::1", 8000), ("::1", 8000)),
        ((0, "/run/parkade.sock", 0), ("/run/parkade.sock", None)),
        ((), None),
    ],
)
def test_the_server_is_where_the_core_listens(told: tuple[object, ...], server: object) -> None:
    assert scope_of(head("/", *told), NO_ROOT)["server"] == server


def test_a_client_without_an_address_is_nobody() -> None:
    assert scope_of(head(client=""), NO_ROOT)["client"] is None
    assert scope_of(head(), NO_ROOT)["client"] == ("192.0.2.7", 0)
    assert scope_of(head("/", 4711, "::1", 80), NO_ROOT)["client"] == ("192.0.2.7", 4711)


@pytest.mark.parametrize(
    ("root", "sent", "path", "raw_path"),
    [
        ("", "/a%20b", "/a b", b"/a%20b"),
        ("/shop", "/a%20b", "/shop/a b", b"/shop/a%20b"),
        ("/shop", "/shop/a", "/shop/a", b"/shop/a"),
        ("/shop", "/shop", "/shop", b"/shop"),
        ("/shop", "/shopping", "/shop/shopping", b"/shop/shopping"),
        ("/caf\u00e9 1", "/a", "/caf\u00e9 1/a", b"/caf%C3%A9%201/a"),
        ("/caf\u00e9 1", "/caf%c3%a9%201/a", "/caf\u00e9 1/a", b"/caf%c3%a9%201/a"),
    ],
)
def test_a_path_has_the_root_path_once(root: str, sent: str, path: str, raw_path: bytes) -> None:
    scope = scope_of(head(sent), RootPath(root))
    assert (scope["root_path"], scope["path"], scope["raw_path"]) == (root, path, raw_path)


@pytest.mark.parametrize(
    ("root", "sent", "script_name", "path_info"),
    [
        ("", "/a", "", "/a"),
        ("/shop", "/a", "/shop", "/a"),
        ("/shop", "/shop/a", "/shop", "/a"),
        ("/shop", "/shop", "/shop", ""),
        ("/shop", "/shopping", "/shop", "/shopping"),
        ("/caf\u00e9", "/caf%c3%a9/a", "/caf\u00c3\u00a9", "/a"),
    ],
)
def test_path_info_is_what_follows_script_name(root: str, sent: str, script_name: str, path_info: str) -> None:
    environ = Environs(RootPath(root)).make(p.Request(None, [], None, b"", head(sent, 4711, "::1", 80)), NoSource())
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == (script_name, path_info)


class NoSource:
    def read_body(self) -> bytes:
        raise AssertionError("there is no body")


def test_scopes_share_nothing_that_can_be_changed() -> None:
    one, another = scope_of(head(), NO_ROOT), scope_of(head(), NO_ROOT)
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
