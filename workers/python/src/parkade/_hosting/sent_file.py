"""A file that an ASGI application names instead of a body: `http.response.pathsend`."""

from __future__ import annotations

import asyncio
import os
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


async def pieces_of(file: FileIO) -> AsyncGenerator[bytes, None]:
    """The file in pieces, read in a thread."""
    while piece := await asyncio.to_thread(file.read, INLINE_MAX):
        yield piece
