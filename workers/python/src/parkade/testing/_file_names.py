"""What names say: which file a path means, of which type a file is, and which encodings a client accepts.

The core has the same rules; `protocol/vectors/files.json` holds both to them.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

from .._waits.files import is_name_within

ENCODINGS = {"br": ".br", "zstd": ".zst", "gzip": ".gz"}
"""The best first, and what follows the name of a file that is stored so."""


@dataclass(frozen=True, slots=True)
class Location:
    """What a path names in a folder: no names for the folder itself. `last` is the path's last segment, as sent."""

    names: tuple[str, ...]
    is_folder: bool
    last: str

    def with_slash(self, query: str) -> str:
        """Where the client finds the folder whose slash it left out, with its query."""
        return f"./{self.last}/?{query}" if query else f"./{self.last}/"


def locate(path: str, depth: int, hidden: bool) -> Location | None:
    """What a request's path, as sent, names below a folder, after so many segments. None: nothing."""
    segments = path.removeprefix("/").split("/")
    last = next((segment for segment in reversed(segments) if segment), "")
    segments = segments[depth:]
    is_folder = bool(segments) and not segments[-1]
    try:
        names = tuple(unquote_to_bytes(one).decode() for one in (segments[:-1] if is_folder else segments))
    except UnicodeDecodeError:
        return None
    if any("/" in name or not is_name_within(name, hidden) for name in names):
        return None
    return Location(names, is_folder, last)


def content_type(name: str) -> str:
    """By the name of a file, the same on every machine."""
    suffix = PurePosixPath(name).suffix.lower()
    kind = _TYPES.get(suffix) or _KNOWN.types_map[True].get(suffix, "application/octet-stream")
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def accepted(lines: Iterable[str]) -> list[str]:
    """The encodings that lines of `Accept-Encoding` accept, the best first."""
    known: set[str] = set()
    named: set[str] = set()
    for item in ",".join(lines).lower().split(","):
        name, _, weight = item.partition(";")
        name = "gzip" if name.strip() == "x-gzip" else name.strip()
        meant = set(ENCODINGS) - named if name == "*" else {name} & set(ENCODINGS)
        named |= meant if name != "*" else set()
        known = known - meant if re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) else known | meant
    return [name for name in ENCODINGS if name in known]


_KNOWN = mimetypes.MimeTypes()  # Python's own, without those of the machine
_TYPES = {
    ".7z": "application/x-7z-compressed",
    ".avif": "image/avif",
    ".cjs": "text/javascript",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".gz": "application/gzip",
    ".ico": "image/x-icon",
    ".ics": "text/calendar",
    ".js": "text/javascript",
    ".m4a": "audio/mp4",
    ".map": "application/json",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".ogg": "audio/ogg",
    ".otf": "font/otf",
    ".toml": "application/toml",
    ".ttf": "font/ttf",
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zst": "application/zstd",
}
