"""The `scope` of an HTTP request, as the specification of ASGI has it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from .._compiled import accelerator
from .._requests.percent import percent_decode
from .._websocket import offered_in
from .._wire import payloads as p
from .root_path import RootPath

ASGI = {"version": "3.0", "spec_version": "2.3"}
"""Of 2.4, frameworks expect that nothing but `send` tells them of a client that has left: Starlette would let a
generator wait for an event that nobody reads.
"""

_CONSTANTS: dict[str, Any] = {
    "type": "http",
    "asgi": ASGI,
    **dict.fromkeys(("http_version", "method", "scheme", "path", "raw_path", "query_string")),
    "root_path": "",
    **dict.fromkeys(("headers", "client", "server", "extensions", "state")),
    **dict.fromkeys(("parkade.request_id", "parkade.shutdown", "parkade.on_disconnect")),
}
"""A scope with what is to be filled in: a dictionary that has its keys is made faster than one that gets them."""


def scope_of(head: Raw, root_path: RootPath, has_trailers: bool = True) -> dict[str, Any]:
    """The scope of one request or WebSocket, without `state`. `has_trailers`: the core takes them, and early hints."""
    scope = accelerator.asgi_scope(head, _CONSTANTS, has_trailers)
    if scope is None:
        told = p.read_head(head)
        scope = _request_scope(told, has_trailers)
        if told.scheme in ("ws", "wss"):
            _make_socket_scope(scope)
    if root_path:
        scope["root_path"] = root_path.text
        scope["path"], scope["raw_path"] = root_path.whole(scope["path"], scope["raw_path"])
    return scope


def _request_scope(head: p.RequestHead, has_trailers: bool) -> dict[str, Any]:
    path = head.path
    raw_path = path.encode()
    if b"%" in raw_path:
        path = percent_decode(raw_path).decode(errors="replace")
    fields = p.read_fields(head.headers)
    return {
        **_CONSTANTS,
        "asgi": ASGI.copy(),
        "http_version": head.version,
        "method": head.method,
        "scheme": head.scheme,
        "path": path,
        "raw_path": raw_path,
        "query_string": head.query.encode(),
        "headers": fields,
        "client": (head.client, head.client_port) if head.client else None,
        "server": (head.server, head.server_port or None) if head.server else None,
        "extensions": _extensions(head.version, fields) if has_trailers else {"http.response.pathsend": {}},
        "parkade.request_id": head.id,
    }


def _make_socket_scope(scope: dict[str, Any]) -> None:
    del scope["method"]
    scope["type"] = "websocket"
    fields = (value.decode("latin-1") for name, value in scope["headers"] if name == b"sec-websocket-protocol")
    scope["subprotocols"] = offered_in(fields)
    scope["extensions"] = {"websocket.http.response": {}}


def _extensions(version: str, fields: list[tuple[bytes, bytes]]) -> dict[str, dict[str, Any]]:
    """Those that work: with HTTP/1.1 there are no trailers for a client that does not ask for them, and with HTTP/1.0
    no early hints either. They are new for each request, as applications may change their scope; a literal takes no
    longer than a copy.
    """
    if version == "1.1":
        for name, value in fields:
            if name == b"te" and b"trailers" in [coding.strip() for coding in value.lower().split(b",")]:
                return {"http.response.pathsend": {}, "http.response.early_hint": {}, "http.response.trailers": {}}
        return {"http.response.pathsend": {}, "http.response.early_hint": {}}
    if version == "2":
        return {"http.response.pathsend": {}, "http.response.early_hint": {}, "http.response.trailers": {}}
    return {"http.response.pathsend": {}}
