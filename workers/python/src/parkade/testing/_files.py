"""Files as answers in a test: what the server would send, without its speed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .._log import log_fault
from .._requests.request import Request
from .._responses.encoding import inline
from .._responses.problems import problem_response
from .._waits.files import NO_FILE
from .._wire import payloads as p
from ..errors import HTTPError
from ._file_answer import File, answer
from ._file_names import ENCODINGS, accepted, content_type, locate
from ._response import Whole

_UNREADABLE = "a file cannot be read; the log says why"
_LINKS_MAX = 40  # as for Linux; then: there is no such file
_REFUSED = {412: "the file is not in the state that the request requires", 416: "the file has no such bytes"}


def answer_of_file(wait: p.File | p.Files, request: Request) -> p.Response:
    """The answer of the server to a request that waits for a file."""
    try:
        return _of_folder(wait, request) if isinstance(wait, p.Files) else _of_path(Path(wait.path), request)
    except HTTPError as error:
        return inline(problem_response(error, request))


def _of_path(path: Path, request: Request) -> p.Response:
    try:
        if path.is_file():
            return _sent(path, path.name, None, False, request)
        why = "it is not there, or not a regular file"
    except OSError as error:
        why = str(error)
    log_fault(f"a file cannot be sent: {path}: {why}")
    raise HTTPError(500, _UNREADABLE)


def _of_folder(wait: p.Files, request: Request) -> p.Response:
    location = locate(wait.path or request.raw_path, wait.options.depth, wait.options.hidden)
    if location is None:
        raise HTTPError(404, NO_FILE)
    folder, names = Path(wait.folder), location.names
    path = _file_beneath(folder, names)
    if path is not None and not location.is_folder:
        return _best(wait, names, path, request)
    names = (*names, wait.options.index or "")
    path = None if wait.options.index is None else _file_beneath(folder, names)
    if path is None:
        raise HTTPError(404, NO_FILE)
    if not location.is_folder:
        return p.Response(307, ["location", location.with_slash(request.query_string)], None)
    return _best(wait, names, path, request)


def _file_beneath(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The file of these names, which links may stand for, unless one leads out of the folder or is absolute."""
    left, found, links = list(names), list[str](), 0
    try:
        while left:
            name = left.pop(0)
            path = folder.joinpath(*found, name)
            if name == ".." and found:
                found.pop()
            elif name == "..":
                return None
            elif path.is_symlink():
                target, links = os.readlink(path), links + 1
                if os.path.isabs(target) or links > _LINKS_MAX:
                    return None
                left[:0] = target.split("/")
            elif name not in ("", "."):
                found.append(name)
        path = folder.joinpath(*found)
        return path if path.is_file() else None
    except OSError:  # such as a name that is too long
        return None


def _best(wait: p.Files, names: tuple[str, ...], path: Path, request: Request) -> p.Response:
    """The file, or the best of the compressed files next to it that its client accepts, unless that is older."""
    *folders, name = names
    if not wait.options.precompressed:
        return _sent(path, name, None, False, request)
    for encoding in accepted(request.headers.getlist("accept-encoding")):
        stored = _file_beneath(Path(wait.folder), (*folders, name + ENCODINGS[encoding]))
        if stored is not None and stored.stat().st_mtime_ns >= path.stat().st_mtime_ns:
            return _sent(stored, name, encoding, True, request)
    return _sent(path, name, None, True, request)


def _sent(path: Path, name: str, encoding: str | None, varies: bool, request: Request) -> p.Response:
    with path.open("rb") as opened:
        content, about = opened.read(), os.fstat(opened.fileno())
    file = File(len(content), about.st_mtime_ns, content_type(name), encoding, varies)
    made = answer(file, request.method, request.headers, time.time_ns())
    if made.status in _REFUSED:
        raise HTTPError(made.status, _REFUSED[made.status], dict(made.headers))
    flat = [text for pair in made.headers for text in pair]
    if made.part is None:
        return p.Response(made.status, list(flat), None)
    return Whole(made.status, list(flat), content[made.part.start : made.part.stop])
