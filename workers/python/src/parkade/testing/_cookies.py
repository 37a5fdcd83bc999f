"""The cookies that a test client holds, as a browser would send them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from .._requests.cookies import parse_cookies
from .._responses.cookies import quoted_value


@dataclass(frozen=True, slots=True)
class _Cookie:
    name: str
    value: str  # as it was sent
    path: str
    ends: float | None  # on the client's clock


class Cookies(MutableMapping[str, str]):
    """Name to value. Setting one by hand sends it with every path; one that the application sets follows its `Path`,
    `Max-Age` (on the client's clock) and `Expires`. As from a browser at localhost, those that are `Secure` are sent.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held: dict[tuple[str, str], _Cookie] = {}  # by name and path

    def _take(self, path: str, lines: Iterable[str]) -> None:
        """Takes the values of `Set-Cookie` from the response of a path."""
        for line in lines:
            cookie = _parsed(line, path, self._now())
            if cookie is not None:
                self._held.pop((cookie.name, cookie.path), None)
                self._held[cookie.name, cookie.path] = cookie

    def _header(self, path: str) -> str:
        """What a request for this path sends, the longest paths first; empty if there is nothing."""
        fits = [cookie for cookie in self._alive() if _is_under(path, cookie.path)]
        fits.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in fits)

    def __getitem__(self, name: str) -> str:
        for cookie in self._alive():
            if cookie.name == name:
                return parse_cookies([f"{name}={cookie.value}"])[name]
        raise KeyError(name)

    def __setitem__(self, name: str, value: str) -> None:
        self._held[name, "/"] = _Cookie(name, quoted_value(value), "/", None)

    def __delitem__(self, name: str) -> None:
        self[name]
        self._held = {key: cookie for key, cookie in self._held.items() if cookie.name != name}

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(cookie.name for cookie in self._alive()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Cookies({dict(self)!r})"

    def _alive(self) -> list[_Cookie]:
        now = self._now()
        return [cookie for cookie in self._held.values() if cookie.ends is None or cookie.ends > now]


def _parsed(line: str, path: str, now: float) -> _Cookie | None:
    """A cookie (RFC 6265, section 5.2); None for one without a name."""
    pair, *attributes = line.split(";")
    name, _, value = pair.partition("=")
    told = {name.strip().lower(): value.strip() for name, _, value in (one.partition("=") for one in attributes)}
    if not name.strip():
        return None
    own_path = told.get("path", "")
    if not own_path.startswith("/"):
        own_path = path.rpartition("/")[0] or "/"
    return _Cookie(name.strip(), value.strip(), own_path, _ends(told, now))


def _ends(told: dict[str, str], now: float) -> float | None:
    try:
        if "max-age" in told:
            return now + int(told["max-age"])
        if "expires" in told:
            left = parsedate_to_datetime(told["expires"]) - datetime.now(timezone.utc)
            return now + left.total_seconds()
    except (ValueError, TypeError):
        pass  # a browser ignores what it cannot read
    return None


def _is_under(path: str, cookie_path: str) -> bool:
    """Whether a cookie with that path is sent to this one (RFC 6265, section 5.1.4)."""
    return path == cookie_path or path.startswith(cookie_path if cookie_path.endswith("/") else cookie_path + "/")
