"""`Cors`: which pages of other origins may use an application."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from ._mappings import HTTP_TOKEN
from ._wire.ready import CorsPolicy


@dataclass(frozen=True, slots=True)
class Cors:
    """What browsers let pages of other origins do (the CORS protocol), as `App.cors` takes it.

    Raises `ValueError` for what no browser would accept.
    """

    origins: str | Sequence[str]
    """The origins of the pages, or `"*"` for any page."""
    methods: Sequence[str] | None = None
    """The methods that a page may use; None is whatever it asks for."""
    headers: Sequence[str] | None = None
    """The headers that a page may send; None is whatever it asks for."""
    credentials: bool = False
    """Whether the browser sends cookies, and lets answers set them."""
    max_age: float | timedelta | None = 600
    """Seconds for which a browser may remember the answer to a preflight."""
    expose: Sequence[str] = ()
    """The headers of answers that scripts may read, apart from a few simple ones."""

    def __post_init__(self) -> None:
        for name in ("methods", "headers", "expose"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a list: write [{getattr(self, name)!r}]")
        if not self._origins():
            raise ValueError("origins are missing: write the origins of the pages, or '*' for any page")
        for origin in self._origins():
            _check_origin(origin)
        if self.credentials and "*" in self._origins():
            raise ValueError("browsers refuse credentials with origins='*': write the origins of your own pages")
        if "*" in self.expose and self.credentials:
            raise ValueError("with credentials, browsers take expose='*' for a header named *: write the names")
        if self._seconds() is not None and not 0 <= (self._seconds() or 0) <= _SECONDS_MAX:
            raise ValueError(f"max_age is seconds, 0 to {_SECONDS_MAX}, not {self.max_age!r}")
        for name in (*(self.methods or ()), *(self.headers or ()), *self.expose):
            if not HTTP_TOKEN.fullmatch(name):
                raise ValueError(f"{name!r} is neither a method nor the name of a header")

    def _policy(self) -> CorsPolicy:
        """For READY."""
        seconds = self._seconds()
        return CorsPolicy(
            origins=self._origins(),
            methods=None if self.methods is None else [method.upper() for method in self.methods],
            headers=None if self.headers is None or "*" in self.headers else [name.lower() for name in self.headers],
            expose=[name.lower() for name in self.expose],
            credentials=self.credentials,
            max_age=None if seconds is None else ceil(seconds),
        )

    def _origins(self) -> list[str]:
        return [self.origins] if isinstance(self.origins, str) else list(self.origins)

    def _seconds(self) -> float | None:
        return self.max_age.total_seconds() if isinstance(self.max_age, timedelta) else self.max_age


def _check_origin(origin: str) -> None:
    """Raises `ValueError` unless it is written as browsers send it."""
    if origin != "*" and not _ORIGIN.fullmatch(origin):
        hint = ": write it without a path, and without a slash at its end" if origin.count("/") > 2 else ""
        hint = ": write it in lower case" if origin != origin.lower() else hint
        raise ValueError(
            f"{origin!r} is not an origin, such as 'https://app.example.com' or 'https://*.example.com'{hint}"
        )
    if re.fullmatch(r"http:.*:80|https:.*:443", origin):
        raise ValueError(f"{origin!r}: browsers leave this port out, and so must an origin")


_SECONDS_MAX = 86_400  # no browser remembers an answer for longer
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\*\.)?([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
