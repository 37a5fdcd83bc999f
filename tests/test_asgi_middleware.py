"""Middleware as Hypercorn and Starlette have it does here what it does elsewhere, for WebSockets, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Answer
from .harness.server import Server
from .harness.tunnel import Tunnel
from .harness.versions import VERSIONS, asking_over
from .harness.websocket import Opener, handshake

SITE = """
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.httpsredirect import HTTPSRedirectMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute

async def told(request):
    return JSONResponse({"url": str(request.url), "client": request.client.host, "more": "x" * 2_000})

async def echo(socket):
    await socket.accept()
    await socket.send_text(f"{socket.url} {await socket.receive_text()}")

app = Starlette(
    routes=[Route("/{path:path}", told), WebSocketRoute("/{path:path}", echo)],
    middleware=[
        Middleware(TrustedHostMiddleware, allowed_hosts=["test", "*.example.com"]),
        Middleware(HTTPSRedirectMiddleware),
        Middleware(GZipMiddleware, minimum_size=1_000),
    ],
)
"""

TO_HTTPS = """
class ToHttps:
    def __init__(self, app): self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan" or scope["scheme"] in ("https", "wss"):
            return await self.app(scope, receive, send)
        scheme = b"wss" if scope["type"] == "websocket" and scope["http_version"] == "1.1" else b"https"
        host = dict(scope["headers"])[b"host"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        location = scheme + b"://" + host + scope["raw_path"] + query
        prefix = "websocket." if scope["type"] == "websocket" else ""
        assert not prefix or "websocket.http.response" in scope["extensions"]
        await send({"type": prefix + "http.response.start", "status": 307, "headers": [(b"location", location)]})
        await send({"type": prefix + "http.response.body"})


async def site(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        return await send({"type": "websocket.accept"})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["raw_path"]})

app = ToHttps(site)
"""
BEHIND = ("X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7")


@pytest.fixture(scope="module", params=[SITE, TO_HTTPS], ids=["starlette", "own"])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    folder: Path = tmp_path_factory.mktemp("middleware")
    (folder / "site_with_middleware.py").write_text(request.param)
    server = serve_for_all(folder / "site_with_middleware.py", workers=1, trust="127.0.0.1")
    server.get("/", *BEHIND)
    return server


@pytest.fixture
def server(shared: Server) -> Server:
    return shared


def denied(server: Server, opened: Opener, target: str) -> Answer:
    if opened.version == "1.1":
        with server.connect() as client:
            return client.send(handshake(target)).answer()
    with server.connect2() as client2:
        return Tunnel(client2, target).answer()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", ["/", "/abc", "/abc?a=b", "/a%20c?q=%26&r"])
def test_clients_without_tls_are_sent_to_https(server: Server, version: str, target: str) -> None:
    answer = asking_over(version, server)(target)
    assert (answer.status, answer["location"]) == (307, f"https://test{target}")


@pytest.mark.parametrize("target", ["/abc", "/a%20c?q=%26&r"])
def test_websockets_without_tls_are_sent_there_too(server: Server, opened: Opener, target: str) -> None:
    answer = denied(server, opened, target)
    assert answer.status == 307
    assert answer["location"].split("://")[1] == f"test{target}"
    assert answer["location"].split("://")[0] in ("https", "wss")


@pytest.mark.parametrize("version", VERSIONS)
def test_behind_a_proxy_with_tls_nobody_is_sent_away(server: Server, version: str) -> None:
    fields = tuple((name.lower(), value) for name, value in (field.split(": ") for field in BEHIND))
    assert asking_over(version, server)("/a%20c", fields=fields).status == 200


def test_websockets_behind_a_proxy_with_tls_are_accepted(server: Server, opened: Opener) -> None:
    client = opened(server, "/abc", *BEHIND)
    assert client.send("hola").close()[0] == 1000


starlette_alone = pytest.mark.parametrize("shared", [SITE], ids=["starlette"], indirect=True)


@starlette_alone
def test_starlette_knows_its_url_and_its_client_behind_a_proxy(server: Server, opened: Opener) -> None:
    told = server.get("/abc?q=%20", *BEHIND).json()
    assert (told["url"], told["client"]) == ("https://test/abc?q=%20", "192.0.2.7")
    assert opened(server, "/a?b=c", *BEHIND).send("hola").receive() == "wss://test/a?b=c hola"


@starlette_alone
def test_starlette_compresses(server: Server) -> None:
    packed = server.get("/", "Accept-Encoding: gzip", *BEHIND)
    assert packed["content-encoding"] == "gzip"
    assert len(packed.body) == int(packed["content-length"]) < 1_000


@starlette_alone
@pytest.mark.parametrize(("host", "status"), [("test", 200), ("shop.example.com", 200), ("other", 400)])
def test_hosts_that_are_not_served_are_refused_by_starlette(server: Server, host: str, status: int) -> None:
    with server.connect(host=host) as client:
        assert client.get("/", *BEHIND).status == status
