"""Reads the protocol's vectors, which every language's codec is tested against (PROTOCOL.md, section 5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "protocol" / "vectors"


def frames() -> list[tuple[str, dict[str, Any]]]:
    """Every frame vector with a name for pytest: `park: a timer, awaited`."""
    return [
        (f"{file.stem}: {vector['name']}", vector)
        for file in sorted((FOLDER / "frames").glob("*.json"))
        for vector in _load(file)
    ]


def sessions() -> list[tuple[str, dict[str, Any]]]:
    """Every conversation."""
    return [
        (f"{file.stem}: {vector['name']}", vector)
        for file in sorted((FOLDER / "sessions").glob("*.json"))
        for vector in _load(file)
    ]


def routes() -> Any:
    """The patterns and what they match; None if they have not been written."""
    file = FOLDER / "routes.json"
    return _load(file) if file.exists() else None


def files() -> Any:
    """Which files paths name, and what is answered for them."""
    return _load(FOLDER / "files.json")


def unhex(text: str) -> bytes:
    """Bytes from hexadecimal with spaces, in which `61*3` repeats a byte."""
    return b"".join(_word(word) for word in text.split())


def value(written: Any) -> Any:
    """A payload as the vectors write it, with `{"bin": …}` turned into bytes."""
    match written:
        case {"bin": str(text)}:
            return unhex(text)
        case list():
            return [value(item) for item in written]
        case dict():
            return {key: value(item) for key, item in written.items()}
        case _:
            return written


def _word(word: str) -> bytes:
    byte, _, count = word.partition("*")
    return bytes.fromhex(byte) * int(count or 1)


def _load(file: Path) -> Any:
    content = json.loads(file.read_text())
    return content if isinstance(content, list) or file.parent == FOLDER else [content]
