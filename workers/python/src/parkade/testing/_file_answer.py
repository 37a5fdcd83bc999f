"""What is answered for a file and a request (RFC 9110): the status, the headers, and which bytes.

The core has the same rules; `protocol/vectors/files.json` holds both to them. Nothing here opens a file or reads a
clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Literal

from .._mappings import Headers
from ._dates import parse_date
from ._file_names import ENCODINGS

SECOND = 1_000_000_000
"""In nanoseconds, as times of files are."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is stored: its length in bytes, its time in nanoseconds since 1970, its encoding. `varies`: another
    client may get another encoding.
    """

    length: int
    modified: int
    content_type: str
    encoding: str | None
    varies: bool


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A status, headers, and which bytes; no part has none of them."""

    status: Literal[200, 206, 304, 412, 416]
    headers: list[tuple[str, str]]
    part: range | None


def answer(file: File, method: str, fields: Headers, now: int) -> FileAnswer:
    """The answer to a request with this method and these fields, at this time."""
    validators = _Validators(file, now)
    described = [("accept-ranges", "bytes"), ("etag", validators.etag)]
    if validators.modified is not None:
        described.append(("last-modified", formatdate(validators.modified, usegmt=True)))
    described.append(("x-content-type-options", "nosniff"))
    if file.varies:
        described.append(("vary", "Accept-Encoding"))
    conditions = fields if method in ("GET", "HEAD") else Headers()
    match validators.check(conditions):
        case 412:
            return FileAnswer(412, [], None)
        case 304:
            return FileAnswer(304, described, None)
    content = [("content-type", file.content_type)]
    if file.encoding is not None:
        content.append(("content-encoding", file.encoding))
    part = _range(conditions, file.length) if method == "GET" and validators.is_range_of_it(conditions) else None
    if part is None:
        return FileAnswer(200, content + described, range(file.length))
    if not part:
        return FileAnswer(416, [("content-range", f"bytes */{file.length}")], None)
    told = ("content-range", f"bytes {part.start}-{part.stop - 1}/{file.length}")
    return FileAnswer(206, [*content, told, *described], part)


class _Validators:
    """What tells one state of a file from another. `modified` is in seconds; None if HTTP has no such date."""

    def __init__(self, file: File, now: int) -> None:
        suffix = "" if file.encoding is None else ENCODINGS[file.encoding]
        self.etag = f'"{file.length:x}-{max(file.modified, 0):x}{suffix}"'
        modified = min(file.modified, now) // SECOND
        self.modified = modified if 0 <= modified < 253_402_300_800 else None
        self.is_date_strong = now - file.modified >= 2 * SECOND

    def check(self, fields: Headers) -> int:
        """In the order of RFC 9110, section 13.2.2."""
        wanted = self._is_among(fields, "if-match", weakly=False)
        if wanted is None:
            wanted = self._is_unmodified(fields, "if-unmodified-since")
        known = self._is_among(fields, "if-none-match", weakly=True)
        if known is None:
            known = self._is_unmodified(fields, "if-modified-since")
        return 412 if wanted is False else 304 if known else 200

    def is_range_of_it(self, fields: Headers) -> bool:
        """Whether a range is one of this state."""
        condition = _line(fields, "if-range")
        if condition is None:
            return True
        if condition.startswith(('"', "W")) and condition.endswith('"'):
            return condition == self.etag
        return self.is_date_strong and self.modified is not None and parse_date(condition) == self.modified

    def _is_among(self, fields: Headers, name: str, weakly: bool) -> bool | None:
        text = _line(fields, name)
        if text is None:
            return None
        return text == "*" or any(tag == self.etag and (weakly or not weak) for weak, tag in _tags(text))

    def _is_unmodified(self, fields: Headers, name: str) -> bool | None:
        date = parse_date(_line(fields, name) or "")
        return None if date is None or self.modified is None else self.modified <= date


def _line(fields: Headers, name: str) -> str | None:
    """Lines of one name are one list (RFC 9110, section 5.3)."""
    return ",".join(fields.getlist(name)).strip() if name in fields else None


def _tags(text: str) -> Iterable[tuple[bool, str]]:
    """The tags of a list, and whether each is weak. What is no tag ends the list."""
    at = 0
    while (found := _TAG.match(text, at)) is not None:
        yield found[1] is not None, found[2]
        at = found.end()


def _range(fields: Headers, length: int) -> range | None:
    """What is asked for: empty if there is no such part, None for the whole."""
    found = _RANGE.fullmatch(_line(fields, "range") or "")
    if found is None or not any(found.groups()):
        return None
    first, last = _number(found[1]), _number(found[2])
    if first is None:
        assert last is not None
        return range(0) if last == 0 else range(max(0, length - last), length) if length else None
    if last is not None and last < first:
        return None
    return range(first, length if last is None else min(last + 1, length))


def _number(digits: str) -> int | None:
    """What has more than 20 digits is larger than any file, like what has 20."""
    return int(digits.lstrip("0")[:20] or "0") if digits else None


_TAG = re.compile(r'[ \t,]*(W/)?("[^"]*")')
_RANGE = re.compile(r"bytes\s*=\s*(\d*)-(\d*)", re.IGNORECASE | re.ASCII)
