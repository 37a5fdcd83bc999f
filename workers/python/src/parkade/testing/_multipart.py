"""The body of a form with files (RFC 7578)."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

File: TypeAlias = bytes | str | BinaryIO | tuple[str, bytes | str | BinaryIO] | tuple[str, bytes | str | BinaryIO, str]
"""What a file is: its content, or its name and content, or its name, content and content type."""

Files: TypeAlias = Mapping[str, File] | Iterable[tuple[str, File]]

BOUNDARY = "parkade-testing-7e57c0de"


def multipart(fields: Iterable[tuple[str, Any]], files: Files) -> tuple[bytes, str]:
    """The body and its content type. Raises `ValueError` when something in it looks like the boundary."""
    parts = [_part(name, None, None, str(value).encode()) for name, value in _each(fields)]
    for name, file in files.items() if isinstance(files, Mapping) else files:
        parts.append(_part(name, *_described(name, file)))
    if any(BOUNDARY.encode() in part for part in parts):
        raise ValueError(f"a part of the form contains {BOUNDARY}")
    body = b"".join(b"--%s\r\n%s\r\n" % (BOUNDARY.encode(), part) for part in parts)
    return body + b"--%s--\r\n" % BOUNDARY.encode(), f"multipart/form-data; boundary={BOUNDARY}"


def _each(fields: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """A list is a repeated field."""
    for name, value in fields:
        for one in value if isinstance(value, list | tuple) else [value]:
            yield name, one


def _described(name: str, file: File) -> tuple[str, str, bytes]:
    """Its name, its content type, its bytes."""
    if isinstance(file, tuple):
        filename, content, *told = file
        content_type = told[0] if told else None
    else:
        content, content_type = file, None
        filename = Path(str(getattr(file, "name", name))).name
    data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else content.read()
    return filename, content_type or mimetypes.guess_type(filename)[0] or "application/octet-stream", data


def _part(name: str, filename: str | None, content_type: str | None, content: bytes) -> bytes:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if filename is not None:
        head += f'; filename="{_quoted(filename)}"\r\nContent-Type: {content_type}'
    return head.encode() + b"\r\n\r\n" + content


def _quoted(text: str) -> str:
    """As browsers write a name (WHATWG HTML, multipart/form-data)."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
