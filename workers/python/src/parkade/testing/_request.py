"""From a request as a test describes it to one as the core would send it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Raw

from .._requests.request import Request
from .._wire import payloads as p
from ._multipart import Files, multipart

Content: TypeAlias = bytes | str | Iterable[bytes] | None
"""A body as a test describes it: pieces arrive one by one at a route with `stream=True`."""

Correlation: TypeAlias = tuple[str, str | None]
"""The id of a request, and its `traceparent`."""


def request_of(
    method: str,
    path: str,
    params: Mapping[str, Any] | Iterable[tuple[str, Any]] | None,
    headers: Mapping[str, str],
    content_type: str | None,
    client: str,
) -> tuple[p.RequestHead, p.Request]:
    """The request from the arguments of `Client.request`, without its body. Of headers whose names differ only in case
    the last counts; one with an underscore is dropped, because it could imitate another.
    """
    pairs = {"host": "testserver"} | ({"content-type": content_type} if content_type else {})
    pairs |= {name.lower(): value for name, value in headers.items() if "_" not in name}
    path, _, query = path.partition("?")
    query = "&".join(part for part in (query, urlencode(list(_fields(params)), doseq=True)) if part)
    flat = [text for name, value in pairs.items() for text in (name, value.encode("latin-1"))]
    raw_path = quote(path, safe="/%:@!$&'()*+,;=-._~")
    head = p.RequestHead(method.upper(), raw_path, query, _raw(flat), client, "http", "1.1", _id_of(pairs))
    return head, p.Request(None, [], None, b"", _raw(head))


def _id_of(headers: Mapping[str, str]) -> str:
    """As the server chooses it for a peer that it does not trust."""
    trace = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return trace[1] if trace is not None else secrets.token_hex(16)


def correlation_of(request: p.Request) -> Correlation:
    """What a job is given of the request that enqueues it."""
    asked = Request(request)
    traceparent = asked.headers.get("traceparent", "")
    return asked.id, traceparent if _TRACEPARENT.fullmatch(traceparent) else None


def nobodys_request() -> p.Request:
    """An empty request, for a job."""
    return p.Request(None, [], None, b"", _raw(p.RequestHead("", "", "", _raw([]), "", "", "")))


def body_of(
    json: Any, data: Mapping[str, Any] | None, content: Content, files: Files | None = None
) -> tuple[bytes | Iterable[bytes], str | None]:
    """A body, or its pieces, and its type where that is known."""
    if files is not None:
        return multipart(_fields(data), files)
    if content is not None:
        return (content.encode() if isinstance(content, str) else content), None
    if data is not None:
        return urlencode(list(_fields(data)), doseq=True).encode(), "application/x-www-form-urlencoded"
    if json is not None:
        return msgspec.json.encode(json), "application/json"
    return b"", None


def _fields(given: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> Iterable[tuple[str, Any]]:
    return given.items() if isinstance(given, Mapping) else given or ()


def _raw(value: object) -> Raw:
    return Raw(msgspec.msgpack.encode(value))


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
