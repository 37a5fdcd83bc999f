"""What the messages of an ASGI application say before and after a body: statuses and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidResult


def head_of(message: Mapping[str, Any]) -> tuple[int, list[Any]]:
    """The status and the headers of a response. Raises `InvalidResult`."""
    status = message["status"]
    if type(status) is not int:
        status = _status_of(status)
    if not 200 <= status <= 599:
        raise InvalidResult(f"the status is a number from 200 to 599, not {status}")
    return status, fields_of(message)


def fields_of(message: Mapping[str, Any]) -> list[Any]:
    """The headers of a message: name, value, name… Raises `InvalidResult`."""
    flat: list[Any] = []
    for name, value in message.get("headers", ()):
        if type(name) is not bytes or type(value) is not bytes:
            name, value = _field_of(name, value)
        flat += name.decode("latin-1"), value
    return flat


def hints_of(message: Mapping[str, Any]) -> list[Any]:
    """The headers of early hints. Raises `InvalidResult`."""
    flat: list[Any] = []
    for link in message.get("links", ()):
        if not isinstance(link, bytes | bytearray | memoryview):
            raise InvalidResult(f"a link of http.response.early_hint is {type(link).__name__}, not bytes")
        flat += "link", bytes(link)
    return flat


def _status_of(status: object) -> int:
    if isinstance(status, int):
        return int(status)  # an http.HTTPStatus
    raise InvalidResult(f"the status is a number, not {status!r}")


def _field_of(name: object, value: object) -> tuple[bytes, bytes]:
    if isinstance(name, bytes | bytearray | memoryview) and isinstance(value, bytes | bytearray | memoryview):
        return bytes(name), bytes(value)
    raise InvalidResult(f"a header is two byte strings, not {name!r}: {value!r}")
