"""The rest of an open file as the body of a response: it is sent by the core, and no worker is busy with it."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

from .._limits import INLINE_MAX
from .._wire.codec import encode_payload

_BODILESS = (204, 205, 304)
_HAS_DESCRIPTORS = Path("/proc/self/fd").is_dir()


def park_of(head: tuple[int, list[Any]], descriptor: int, first: int, path: object) -> bytes | None:
    """A PARK, encoded: the response, and the file from byte `first` on.

    `path` is the file's, if it is a text; the core opens it by its descriptor where it can, so it may be without a
    name. None if the worker has to read it itself: it is no regular file, it fits into a frame, the response says that
    it is longer, or the core would not find it.
    """
    status, fields = head
    about = os.fstat(descriptor)
    length = about.st_size - first
    if (announced := length_of(fields)) is None:
        fields = [*fields, "content-length", str(length)]
    elif announced <= length:
        length = announced
    else:
        return None
    if not stat.S_ISREG(about.st_mode) or length <= INLINE_MAX or first < 0 or status in _BODILESS:
        return None
    if not (paths := _paths_of(descriptor, path, about)):
        return None
    wait = ["part", paths, [about.st_dev, about.st_ino], first, length]
    return encode_payload([wait, ["answer", [status, fields, None]]])


def length_of(fields: list[Any]) -> int | None:
    """The `Content-Length` of a response with these headers (name, value, name…), None if it has none. What is no
    number is longer than any file: the core refuses it.
    """
    for name, value in zip(fields[::2], fields[1::2], strict=True):
        if name.lower() == "content-length":
            return int(value) if value.isdigit() else sys.maxsize
    return None


def _paths_of(descriptor: int, path: object, about: os.stat_result) -> list[str]:
    """Where the core finds the file."""
    paths = [f"/proc/{os.getpid()}/fd/{descriptor}"] if _HAS_DESCRIPTORS else []
    try:
        if isinstance(path, str) and path.encode() and os.path.samestat(os.stat(path), about):
            paths.append(os.path.abspath(path))
    except (OSError, ValueError):
        pass  # it has no name any more, or one that is not UTF-8
    return paths
