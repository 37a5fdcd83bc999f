"""Cookies of a request (RFC 6265, section 5.4).

`http.cookies` stops reading at the first malformed one, and before Python 3.10.15, 3.11.10 and 3.12.6 it takes 15 s for
30 KB of backslashes (CVE-2024-7592).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress


def parse_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name to value, the first of each name, from the values of all `Cookie` headers."""
    cookies: dict[str, str] = {}
    for line in lines:
        for piece in line.split(";"):
            name, _, value = piece.strip().partition("=")
            if name:
                cookies.setdefault(name, _unquoted(value) if value.startswith('"') else value)
    return cookies


# How `http.cookies` writes characters that a cookie cannot contain: `\"`, `\\`, and `\073` for a semicolon. Other than
# it, `Response.set_cookie` writes those beyond ASCII as the bytes of UTF-8.
_ESCAPED = re.compile(r"\\(?:([0-3][0-7][0-7])|(.))")


def _unquoted(value: str) -> str:
    if len(value) < 2 or not value.endswith('"'):
        return value.strip('"')
    if "\\" not in value:
        return value[1:-1]
    text = _ESCAPED.sub(_unescape, value[1:-1])
    if not text.isascii():
        with suppress(UnicodeError):
            return text.encode("latin-1").decode()
    return text


def _unescape(match: re.Match[str]) -> str:
    octal, character = match.groups()
    return character if octal is None else chr(int(octal, 8))
