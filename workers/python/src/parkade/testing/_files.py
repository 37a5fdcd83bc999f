"""Files as answers in a test: what the server would send, by the rules of RFC 9110, without its speed."""

from __future__ import annotations

import mimetypes
import re
import time
from datetime import datetime, timezone
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from .._log import log_fault
from .._requests.request import Request
from .._responses.encoding import inline
from .._responses.problems import problem_response
from .._waits.files import NO_FILE, is_name_within
from .._wire import payloads as p
from ..errors import HTTPError
from ._response import Whole

_ENCODINGS = (("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz"))
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".woff2": "font/woff2"}
_UNREADABLE = "a file cannot be read; the log says why"


def answer_of_file(wait: p.File | p.Files, request: Request) -> p.Response:
    """The answer of the server to a request that waits for a file."""
    try:
        if isinstance(wait, p.File):
            path = Path(wait.path)
            if not path.is_file():
                log_fault(f"a file cannot be sent: {path} cannot be read, or is not a regular file")
                raise HTTPError(500, _UNREADABLE)
            return _sent(path, path, None, False, request)
        return _of_folder(wait, request)
    except HTTPError as error:
        return inline(problem_response(error, request))


def _of_folder(wait: p.Files, request: Request) -> p.Response:
    segments = (wait.path or request.path).removeprefix("/").split("/")
    last = next((segment for segment in reversed(segments) if segment), "")
    segments = segments[wait.options.depth :]
    is_folder = bool(segments) and not segments[-1]
    names = [_decoded(segment) for segment in (segments[:-1] if is_folder else segments)]
    if any("/" in name or not is_name_within(name, wait.options.hidden) for name in names):
        raise HTTPError(404, NO_FILE)
    folder = Path(wait.folder)
    path = folder.joinpath(*names)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise HTTPError(404, NO_FILE)
    if path.is_file() and not is_folder:
        return _precompressed(wait, path, request)
    index = path / wait.options.index if wait.options.index is not None else None
    if index is None or not index.is_file() or not index.resolve().is_relative_to(folder.resolve()):
        raise HTTPError(404, NO_FILE)
    if not is_folder:
        return p.Response(307, ["location", f"./{last}/"], None)
    return _precompressed(wait, index, request)


def _decoded(segment: str) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return ""


def _precompressed(wait: p.Files, path: Path, request: Request) -> p.Response:
    if not wait.options.precompressed:
        return _sent(path, path, None, False, request)
    accepted = _accepted(",".join(request.headers.getlist("accept-encoding")))
    for name, suffix in _ENCODINGS:
        stored = path.with_name(path.name + suffix)
        if name in accepted and stored.is_file() and stored.stat().st_mtime_ns >= path.stat().st_mtime_ns:
            return _sent(stored, path, (name, suffix), True, request)
    return _sent(path, path, None, True, request)


def _accepted(text: str) -> set[str]:
    weights: dict[str, bool] = {}
    for item in text.lower().split(","):
        name, _, weight = item.partition(";")
        weights[name.strip()] = not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return {name for name, _ in _ENCODINGS if weights.get(name, weights.get("*", False))}


def _sent(path: Path, named: Path, encoding: tuple[str, str] | None, varies: bool, request: Request) -> p.Response:
    content, told = path.read_bytes(), path.stat()
    etag = f'"{len(content):x}-{told.st_mtime_ns:x}{encoding[1] if encoding else ""}"'
    modified = int(min(told.st_mtime, time.time()))
    described: list[Any] = ["accept-ranges", "bytes", "etag", etag, "last-modified", formatdate(modified, usegmt=True)]
    described += ["x-content-type-options", "nosniff", *(["vary", "Accept-Encoding"] if varies else [])]
    headers = request.headers if request.method in ("GET", "HEAD") else {}
    match _precondition(headers, etag, modified):
        case 412:
            raise HTTPError(412, "the file is not in the state that the request requires")
        case 304:
            return p.Response(304, described, None)
    kind = ["content-type", _type_of(named), *(["content-encoding", encoding[0]] if encoding else [])]
    part = _range(headers, etag, modified, len(content)) if request.method == "GET" else None
    if part is None:
        return Whole(200, kind + described, content)
    if not part:
        raise HTTPError(416, "the file has no such bytes", {"content-range": f"bytes */{len(content)}"})
    range_ = ["content-range", f"bytes {part.start}-{part.stop - 1}/{len(content)}"]
    return Whole(206, kind + range_ + described, content[part.start : part.stop])


def _type_of(path: Path) -> str:
    kind = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _precondition(headers: Any, etag: str, modified: int) -> int:
    wanted = _is_among(headers, "if-match", etag, weakly=False)
    if wanted is None:
        wanted = _is_unmodified(headers, "if-unmodified-since", modified)
    known = _is_among(headers, "if-none-match", etag, weakly=True)
    if known is None:
        known = _is_unmodified(headers, "if-modified-since", modified)
    return 412 if wanted is False else 304 if known else 200


def _is_among(headers: Any, name: str, etag: str, weakly: bool) -> bool | None:
    if name not in headers:
        return None
    text = ",".join(headers.getlist(name))
    tags = re.findall(r'(W/)?("[^"]*")', text)
    return text.strip() == "*" or any(tag == etag and (weakly or not weak) for weak, tag in tags)


def _is_unmodified(headers: Any, name: str, modified: int) -> bool | None:
    date = _date(headers.get(name, ""))
    return None if date is None else modified <= date


def _date(text: str) -> int | None:
    try:
        return int(parsedate_to_datetime(text).replace(tzinfo=timezone.utc).timestamp()) if text else None
    except ValueError:
        return None


def _range(headers: Any, etag: str, modified: int, length: int) -> range | None:
    """What is asked for; empty if there is no such part; None for the whole."""
    found = re.fullmatch(r"\s*bytes\s*=\s*(\d*)-(\d*)\s*", headers.get("range", ""), re.I | re.A)
    if found is None or not any(found.groups()) or not _is_of_it(headers.get("if-range"), etag, modified):
        return None
    first, last = found[1], found[2]
    if not first:
        return range(0) if not int(last) else range(max(0, length - int(last)), length) if length else None
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1 if last else length, length))


def _is_of_it(condition: str | None, etag: str, modified: int) -> bool:
    if condition is None:
        return True
    if condition.endswith('"'):
        return condition == etag
    return _date(condition) == modified and datetime.now(timezone.utc).timestamp() - modified >= 2
