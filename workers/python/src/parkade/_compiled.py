"""The compiled accelerator, if there is one: functions that do the same as Python code here, faster.

Each returns None for input that is not ordinary, and then the Python code does it. Without the accelerator, or with
`PARKADE_ACCELERATOR=0`, each always returns None, and there is no `AsgiSender`.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Protocol, cast

from msgspec import Raw

BOUNDARY = 2
"""Which functions there are, with which arguments. An extension of another number is not used."""

VARIABLE = "PARKADE_ACCELERATOR"
NAMES = ("wsgi_environ", "asgi_scope", "wsgi_head", "asgi_head", "response")


class _Accelerator(Protocol):
    BOUNDARY: int

    def wsgi_environ(self, head: Raw, constants: dict[str, Any]) -> dict[str, Any] | None: ...
    def asgi_scope(self, head: Raw, constants: dict[str, Any], has_trailers: bool) -> dict[str, Any] | None: ...
    def wsgi_head(self, status: object, headers: object) -> tuple[int, list[Any]] | None: ...
    def asgi_head(self, message: object) -> tuple[int, list[Any]] | None: ...
    def response(self, head: tuple[int, list[Any]], body: bytes) -> bytes | None: ...

    AsgiSender: Any
    """The base of `AsgiResponse`: see `_hosting.asgi_sender`."""


class _Without:
    """No accelerator."""

    BOUNDARY = BOUNDARY

    def wsgi_environ(self, head: Raw, constants: dict[str, Any]) -> None:
        return None

    def asgi_scope(self, head: Raw, constants: dict[str, Any], has_trailers: bool) -> None:
        return None

    def wsgi_head(self, status: object, headers: object) -> None:
        return None

    def asgi_head(self, message: object) -> None:
        return None

    def response(self, head: tuple[int, list[Any]], body: bytes) -> None:
        return None

    AsgiSender: Any = None


def _found() -> tuple[_Accelerator, str]:
    if os.environ.get(VARIABLE) == "0":
        return _Without(), f"not used: {VARIABLE} is 0"
    try:
        found = import_module("parkade._accelerator")
    except ImportError as error:
        return _Without(), f"not used: {error}"
    if getattr(found, "BOUNDARY", None) != BOUNDARY:
        return _Without(), "not used: it was built for another version of Parkade"
    return cast(_Accelerator, found), "used"


accelerator, state = _found()
"""The functions, and for people: whether they are compiled, and if not, why."""
