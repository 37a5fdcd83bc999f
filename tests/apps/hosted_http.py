"""One application for WSGI and for ASGI, which answers what a request is, or with what it is asked for."""

import http
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

Start = Callable[..., object]
Fields = list[tuple[str, str]]


def answered(method: str, path: str, query: str, fields: dict[str, str], body: bytes) -> tuple[int, Fields, bytes]:
    """Status, fields and body of the response."""
    if path == "/hola/you":
        return 200, [], b"Hola you"
    if path == "/fields":
        return 200, parse_qsl(query), b"fields"
    if path == "/status":
        return int(query), [], b"" if query in ("204", "304") else b"status"
    told = {"method": method, "path": path, "query": query, "fields": fields, "body": body.decode("latin-1")}
    return 200, [("Content-Type", "application/json")], json.dumps(told).encode()


def wsgi(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
    fields = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name[:5] == "HTTP_"}
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    body = environ["wsgi.input"].read()
    status, told, answer = answered(environ["REQUEST_METHOD"], path, query, fields, body)
    start_response(f"{status} {http.HTTPStatus(status).phrase}", told)
    return [answer]


async def asgi(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> int:
    assert scope["type"] == "http"
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    told = answered(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), fields, body)
    status, flat, answer = told

    def pairs() -> Iterator[tuple[bytes, bytes]]:
        yield from ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in flat)

    # A status that is an enum, headers that are an iterator, a body without more_body, and a value that is returned.
    await send({"type": "http.response.start", "status": http.HTTPStatus(status), "headers": pairs()})
    await send({"type": "http.response.body", "body": answer})
    return 7
