"""The `scope` of an HTTP request, as the specification of ASGI has it."""

from __future__ import annotations

from typing import Any

from .._requests.percent import percent_decode
from .._websocket import offered_in
from .._wire import payloads as p
from .root_path import RootPath

ASGI = {"version": "3.0", "spec_version": "2.3"}
"""Of 2.4, frameworks expect that nothing but `send` tells them of a client that has left: Starlette would let a
generator wait for an event that nobody reads.
"""


def scope_of(head: p.RequestHead, root_path: RootPath) -> dict[str, Any]:
    """The scope of one request, without `state`."""
    path = head.path
    raw_path = path.encode()
    if b"%" in raw_path:
        path = percent_decode(raw_path).decode(errors="replace")
    if root_path:
        path, raw_path = root_path.whole(path, raw_path)
    return {
        "type": "http",
        "asgi": ASGI.copy(),
        "http_version": head.version,
        "method": head.method,
        "scheme": head.scheme,
        "path": path,
        "raw_path": raw_path,
        "query_string": head.query.encode(),
        "root_path": root_path.text,
        "headers": p.read_fields(head.headers),
        "client": (head.client, head.client_port) if head.client else None,
        "server": (head.server, head.server_port or None) if head.server else None,
        "extensions": {"http.response.pathsend": {}},
        "parkade.request_id": head.id,
    }


def socket_scope_of(head: p.RequestHead, root_path: RootPath) -> dict[str, Any]:
    """The scope of one WebSocket, without `state`."""
    scope = scope_of(head, root_path)
    del scope["method"]
    scope["type"] = "websocket"
    fields = (value.decode("latin-1") for name, value in scope["headers"] if name == b"sec-websocket-protocol")
    scope["subprotocols"] = offered_in(fields)
    scope["extensions"] = {"websocket.http.response": {}}
    return scope
