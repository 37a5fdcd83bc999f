"""The `scope` of an HTTP request, as the specification of ASGI has it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .._requests.percent import percent_decode
from .._wire import payloads as p
from .authority import server_of

ASGI = {"version": "3.0", "spec_version": "2.3"}
"""Of 2.4, frameworks expect that nothing but `send` tells them of a client that has left: Starlette would let a
generator wait for an event that nobody reads.
"""


def scope_of(head: p.RequestHead) -> dict[str, Any]:
    """The scope of one request, without `state`."""
    headers = p.read_fields(head.headers)
    host = b""
    for name, value in headers:
        if name == b"host":  # the first field of nearly every request
            host = value
            break
    path = head.path
    raw_path = path.encode()
    return {
        "type": "http",
        "asgi": ASGI.copy(),
        "http_version": head.version,
        "method": head.method,
        "scheme": head.scheme,
        "path": path if b"%" not in raw_path else percent_decode(raw_path).decode(errors="replace"),
        "raw_path": raw_path,
        "query_string": head.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": (head.client, 0) if head.client else None,
        "server": _server(host, head.scheme),
        "extensions": {"http.response.pathsend": {}},
        "parkade.request_id": head.id,
    }


@lru_cache(maxsize=256)
def _server(host: bytes, scheme: str) -> tuple[str, int]:
    name, port = server_of(host.decode("latin-1"), scheme)
    return name.strip("[]"), int(port)
