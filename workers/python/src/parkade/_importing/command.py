"""The command: `python -m parkade import FILE` prints a `parkade.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from . import gunicorn, unit, uwsgi
from .draft import Draft, Unreadable

READERS = {".ini": uwsgi.read, ".json": unit.read, ".py": gunicorn.read}
FILE_BYTES_MAX = 1 << 20  # no settings file is larger. Then: refused


def main(arguments: list[str]) -> int:
    """0, or 2 if the file cannot be read, as for other settings that are wrong."""
    if len(arguments) != 1:
        print("parkade: import takes one file: uwsgi.ini, unit.json or gunicorn.conf.py", file=sys.stderr)
        return 2
    (name,) = arguments
    try:
        sys.stdout.write(imported(Path(name)))
    except Unreadable as error:
        print(f"parkade: {error}", file=sys.stderr)
        return 2
    return 0


def imported(path: Path) -> str:
    read = READERS.get(path.suffix)
    if read is None:
        kinds = "uwsgi.ini, unit.json or gunicorn.conf.py"
        raise Unreadable(f"{path}: the name has to end in .ini, .json or .py, as in {kinds}")
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise Unreadable(f"{path} is larger than 1 MiB: that is no settings file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{path}, line {line}: this is not UTF-8") from error
    draft = Draft(path.name)
    try:
        read(text, draft)
    except Unreadable as error:
        raise Unreadable(f"{path}, {error}") from error
    return draft.text()
