"""Files as answers: the worker says which, and the core sends it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from .._limits import CLIENT_NAME_MAX
from .._mappings import Headers
from .._wire import payloads as p
from .._wire.values import byte_length
from ..errors import HTTPError
from .wait import Wait, added_to

NO_FILE = "there is no such file"


class File(Wait[NoReturn]):
    """A file as an answer: `return File("reports/2025.pdf")`, also from a function after `.then`.

    ```python
    @app.get("/report/{year:int}")
    def report(year: int) -> File:
        return File(f"reports/{year}.pdf", filename=f"Report {year}.pdf")
    ```

    The server sends it, and the worker is free at once. Ranges, `ETag`, `Last-Modified` and conditional requests are
    taken care of. `filename` has the browser store it under that name (`inline`: show it, if it can). The content type
    is that of the file's name, unless `content_type` gives another.

    The path is taken as it is: never build it from what a client sends. `File.within` is for that. A relative path is
    relative to the working directory. A file that the server cannot read is 500, and the log says why. One that is
    written to while it is sent ends the connection: write to another name, and rename.

    Raises `ValueError` for a path or headers that cannot be sent.
    """

    __slots__ = ()

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        filename: str | None = None,
        inline: bool = False,
        content_type: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(p.File(os.path.abspath(path), p.FileOptions()))
        self._added = _added(self._wait, filename, inline, content_type, headers)

    @classmethod
    def within(
        cls,
        folder: str | os.PathLike[str],
        name: str,
        *,
        filename: str | None = None,
        inline: bool = False,
        content_type: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        hidden_files: bool = False,
    ) -> File:
        """The file of that name in a folder, for a name that a client has sent. The name may contain folders.

        ```python
        @app.get("/pictures/{name:path}")
        def picture(name: str) -> File:
            return File.within("pictures", name)
        ```

        A name that leads out of the folder, even through a link, is 404 (`HTTPError`), and so is one that does not
        exist. Names that begin with a dot are 404 unless `hidden_files`. So is a name of more than 4,096 bytes, which
        no system allows.
        """
        if not is_name_within(name, hidden_files) or byte_length(name) > CLIENT_NAME_MAX:
            raise HTTPError(404, NO_FILE)
        options = p.FilesOptions(hidden=hidden_files)
        made = cls.__new__(cls)
        Wait.__init__(made, p.Files(os.path.abspath(folder), "/" + quote(name, safe="/"), options))
        made._added = _added(made._wait, filename, inline, content_type, headers)
        return made

    def __repr__(self) -> str:
        return f"<File {self._wait.path if isinstance(self._wait, p.File) else self._wait}>"


def is_name_within(name: str, hidden_files: bool) -> bool:
    """Whether a name can only be that of something in a folder, as far as a text tells."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or (part.startswith(".") and not hidden_files) for part in parts):
        return False
    return not _NO_NAME.search(name) and "\\" not in name


def files_of(
    folder: Path,
    *,
    max_age: float | timedelta | None,
    index: str | None,
    precompressed: bool,
    hidden_files: bool,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
) -> Wait[NoReturn]:
    """The files of a folder, as the target of a route."""
    options = p.FilesOptions(hidden=hidden_files, precompressed=precompressed, index=index)
    made: Wait[NoReturn] = Wait(p.Files(str(folder), None, options))
    given = Headers(headers)
    if "cache-control" not in given:
        given["cache-control"] = _cache_control(max_age)
    elif max_age is not None:
        raise ValueError("max_age and a cache-control header say the same: give one of them")
    return made.headers(given.pairs())


def _cache_control(max_age: float | timedelta | None) -> str:
    if max_age is None:
        return "no-cache"
    seconds = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
    if not 0 <= seconds <= 1e9:
        raise ValueError(f"max_age is a number of seconds, not {max_age!r}")
    return f"public, max-age={int(seconds)}"


def _added(
    wait: p.Wait,
    filename: str | None,
    inline: bool,
    content_type: str | None,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
) -> p.Added | None:
    given = Headers(headers)
    if content_type is not None:
        given["content-type"] = content_type
    if filename is not None or inline:
        given["content-disposition"] = disposition(filename, inline)
    return added_to(wait, None, given) if given else None


def disposition(filename: str | None, inline: bool) -> str:
    """A `Content-Disposition` (RFC 6266): the name in ASCII, and where it differs the name itself (RFC 8187)."""
    kind = "inline" if inline else "attachment"
    name = _NO_NAME.sub("", (filename or "").replace("\\", "/").rpartition("/")[2])
    if not name:
        return kind
    plain = re.sub(r"[^ !#-$&-\[\]-~]", "_", name)
    told = f'{kind}; filename="{plain}"'
    return told if plain == name else f"{told}; filename*=UTF-8''{quote(name, safe='!#$&+-.^_`|~')}"


_NO_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
