"""`Set-Cookie` (RFC 6265, section 4.1; RFC 6265bis for SameSite, the prefixes and the limits; CHIPS for Partitioned).

Browsers drop a cookie that breaks one of their rules without a word, so it is refused here.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Literal, TypeAlias

SameSite: TypeAlias = Literal["strict", "lax", "none"]

COOKIE_MAX = 4_096  # bytes of name and value: browsers drop a longer one; then: ValueError
ATTRIBUTE_MAX = 1_024  # bytes of a path or domain: browsers ignore a longer one; then: ValueError


def cookie_line(
    name: str,
    value: str,
    *,
    max_age: float | timedelta | None,
    expires: datetime | None,
    path: str | None,
    domain: str | None,
    secure: bool,
    http_only: bool,
    same_site: SameSite,
    partitioned: bool,
) -> str:
    """The value of a `Set-Cookie`. Raises `ValueError` for one that a browser would drop."""
    _check_name(name)
    quoted = quoted_value(value)
    if len(name) + len(quoted) > COOKIE_MAX:
        raise ValueError(f"the cookie {name} has {len(name) + len(quoted)} bytes: browsers drop more than {COOKIE_MAX}")
    _check_combination(name, path, domain, secure, same_site, partitioned)
    parts = [f"{name}={quoted}"]
    if max_age is not None:
        parts.append(f"Max-Age={_seconds(max_age)}")
    if expires is not None:
        parts.append(f"Expires={_date(expires)}")
    if path is not None:
        parts.append(f"Path={_attribute('path', path)}")
    if domain is not None:
        parts.append(f"Domain={_attribute('domain', domain)}")
    parts += ["Secure"] * secure + ["HttpOnly"] * http_only + [f"SameSite={same_site.capitalize()}"]
    return "; ".join(parts + ["Partitioned"] * partitioned)


def is_same_cookie(line: str, other: str) -> bool:
    """Whether one `Set-Cookie` replaces the other: they have the same name, path and domain."""
    return _identity(line) == _identity(other)


def quoted_value(value: str) -> str:
    """The value as a cookie can hold it: in quotes if it has other characters, those as `\\073`, which is octal.

    `request.cookies` reads it back, and so does Python's `http.cookies`.
    """
    if _PLAIN.fullmatch(value):
        return value
    return '"' + "".join(_escaped(code) for code in value.encode()) + '"'


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # a token
_PLAIN = re.compile(r"[!#-+\--:<-\[\]-~]*")  # cookie-octets
_OCTETS = frozenset(code for code in range(128) if _PLAIN.fullmatch(chr(code))) | {ord(" ")}


def _escaped(code: int) -> str:
    return chr(code) if code in _OCTETS else f"\\{code:03o}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a cookie: letters, digits and some signs, no spaces")


def _check_combination(
    name: str, path: str | None, domain: str | None, secure: bool, same_site: str, partitioned: bool
) -> None:
    if same_site not in ("strict", "lax", "none"):
        raise ValueError(f"same_site is 'strict', 'lax' or 'none', not {same_site!r}")
    if not secure:
        for reason, holds in (
            ("same_site='none'", same_site == "none"),
            ("a partitioned cookie", partitioned),
            ("a name that begins with __Secure- or __Host-", name.lower().startswith(("__secure-", "__host-"))),
        ):
            if holds:
                raise ValueError(f"the cookie {name}: browsers drop {reason} without secure=True")
    if name.lower().startswith("__host-") and (path != "/" or domain is not None):
        raise ValueError(f"the cookie {name}: browsers drop a __Host- cookie with a domain, or a path other than /")


def _seconds(max_age: float | timedelta) -> int:
    seconds = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
    if not math.isfinite(seconds):
        raise ValueError(f"max_age is a finite number of seconds, not {seconds}")
    return max(0, int(seconds))


def _date(expires: datetime) -> str:
    if expires.tzinfo is None:
        raise ValueError("expires needs a time zone: datetime.now(timezone.utc) + timedelta(days=30), or use max_age")
    return format_datetime(expires.astimezone(timezone.utc), usegmt=True)


def _attribute(what: str, value: str) -> str:
    if not value.isascii() or not value.isprintable() or ";" in value or len(value) > ATTRIBUTE_MAX:
        raise ValueError(f"{value!r} cannot be the {what} of a cookie")
    if what == "path" and not value.startswith("/"):
        raise ValueError(f"the path of a cookie begins with a slash: {value!r}")
    return value


def _identity(line: str) -> tuple[str, str, str]:
    pair, *attributes = line.split(";")
    told = {
        name.strip().lower(): value.strip().lower() for name, _, value in (one.partition("=") for one in attributes)
    }
    return pair.partition("=")[0], told.get("path", ""), told.get("domain", "")
