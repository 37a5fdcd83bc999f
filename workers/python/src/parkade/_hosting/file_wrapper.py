"""`wsgi.file_wrapper`: a file as the body of a response."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedRandom, BufferedReader, FileIO
from typing import IO, Any

from .._limits import INLINE_MAX


class FileWrapper:
    """Reads the file in blocks, up to its end or that of the response, and closes it with the response. Large files are
    sent by the core.
    """

    def __init__(self, file: IO[bytes], block_size: int = INLINE_MAX) -> None:
        self._file = file
        self._block_size = block_size
        self.length: int | None = None
        """Bytes of the response, if it says so. The file may have more: it grows, or is asked for in part."""
        close = getattr(file, "close", None)
        if close is not None:
            self.close = close

    def place(self) -> tuple[int, int, object] | None:
        """The descriptor of the file, how far it was read, and its name. None if it is no file of the system, or other
        bytes than those of the file would be read.
        """
        file: Any = self._file
        if type(file).__module__ == "tempfile":
            file = getattr(file, "file", file)  # of a NamedTemporaryFile
        raw = getattr(file, "raw", file)
        if type(raw) is not FileIO or type(file) not in (FileIO, BufferedReader, BufferedRandom):
            return None
        if not (file.readable() and file.seekable()):  # a pipe of a process, for instance
            return None
        file.flush()
        return raw.fileno(), file.tell(), raw.name

    def __iter__(self) -> Iterator[bytes]:
        left = sys.maxsize if self.length is None else self.length
        while block := self._file.read(min(self._block_size, left)):
            left -= len(block)
            yield block
