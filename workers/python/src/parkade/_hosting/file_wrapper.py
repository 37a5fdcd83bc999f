"""`wsgi.file_wrapper`: a file as the body of a response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from .._limits import INLINE_MAX


class FileWrapper:
    """Reads the file in blocks, and closes it with the response."""

    def __init__(self, file: IO[bytes], block_size: int = INLINE_MAX) -> None:
        self._file = file
        self._block_size = block_size
        close = getattr(file, "close", None)
        if close is not None:
            self.close = close

    def __iter__(self) -> Iterator[bytes]:
        while block := self._file.read(self._block_size):
            yield block
