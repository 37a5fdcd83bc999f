"""A file that an ASGI application names instead of a body: `http.response.pathsend`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from io import FileIO
from typing import Any

from .._limits import INLINE_MAX
from ..errors import InvalidResult


def path_of(message: Mapping[str, Any]) -> str:
    """The path in a message. Raises `InvalidResult`."""
    path = message.get("path")
    if not isinstance(path, str) or not os.path.isabs(path):
        raise InvalidResult(f"the path of http.response.pathsend is an absolute path, as str, not {path!r}")
    return path


async def pieces_of(file: FileIO, length: int | None) -> AsyncGenerator[bytes, None]:
    """The file in pieces, up to `length` bytes, read in a thread."""
    left = sys.maxsize if length is None else length
    while piece := await asyncio.to_thread(file.read, min(INLINE_MAX, left)):
        left -= len(piece)
        yield piece
