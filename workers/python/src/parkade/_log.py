"""What a worker writes to stderr, which the core copies into its log, line by line.

Clients choose much of it: paths, and the texts of exceptions. So all text from outside goes through `marked`: its
further lines begin with a mark that no line of ours has, and it holds no control characters for a terminal.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + os.sep
_IMPORTING = ("<frozen importlib", str(Path(importlib.__file__).parent))


def log_error(what: str, error: BaseException) -> None:
    """Writes a traceback in one piece, so that those of several workers do not mix.

    Its first line says by itself what happened.
    """
    reason = "".join(f": {line}" for line in str(error).splitlines()[:1])
    log(f"ERROR: {marked(f'{what}: {type(error).__name__}{reason}')}\n{format_error(error)}")


def log_fault(text: str) -> None:
    """Writes a fault of the application. By its first word the core distinguishes it from printed output."""
    log(f"ERROR: {marked(text)}")


def log(text: str) -> None:
    """Writes lines of our own. Does nothing when the application has closed stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


def marked(text: str) -> str:
    """A text from outside: each line after the first begins with `  | `, as in the core's log, and invisible characters
    are escaped.
    """
    return _UNSEEN.sub(_written_out, text).replace("\n", "\n  | ")


def format_error(error: BaseException, loading: bool = False) -> str:
    """A traceback with the application's own frames only, also in each cause and context.

    Where there are none, Parkade's frames stay, since then the fault is ours. Not so while `loading`: then the file is
    not Python.
    """
    told = traceback.TracebackException.from_exception(error, compact=True)
    _trim(told, loading)
    return "".join(_pieces(told)).rstrip("\n") + "\n"


def is_our_code(filename: str) -> bool:
    """Whether a frame of this file is Parkade's rather than the application's."""
    return filename.startswith(_PACKAGE)


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def _written_out(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _pieces(told: traceback.TracebackException) -> Iterator[str]:
    """As Python writes it, except that the texts of exceptions are marked."""
    if told.__cause__ is not None:
        yield from _pieces(told.__cause__)
        yield _CAUSED
    elif told.__context__ is not None and not told.__suppress_context__:
        yield from _pieces(told.__context__)
        yield _MEANWHILE
    if told.stack:
        yield "Traceback (most recent call last):\n"
        yield from told.stack.format()
    yield _marked_exception(told.format_exception_only())
    for number, part in enumerate(getattr(told, "exceptions", None) or (), 1):
        yield f"  +-- {number} of the group\n"
        yield "".join(f"  | {line}" for piece in _pieces(part) for line in piece.splitlines(keepends=True))


def _marked_exception(pieces: Iterable[str]) -> str:
    """The last piece is the text, unless there are notes; a SyntaxError shows its place first."""
    first, *rest = pieces
    if first.startswith('  File "'):
        return "".join(marked(piece.rstrip("\n")) + "\n" for piece in (first, *rest))
    return marked("".join((first, *rest)).rstrip("\n")) + "\n"


def _trim(told: traceback.TracebackException, loading: bool) -> None:
    frames = [frame for frame in told.stack if not frame.filename.startswith(_IMPORTING)]
    own = [frame for frame in frames if not is_our_code(frame.filename)]
    told.stack = traceback.StackSummary.from_list(own if own or loading else frames)
    for other in (told.__cause__, told.__context__):
        if other is not None:
            _trim(other, loading)
