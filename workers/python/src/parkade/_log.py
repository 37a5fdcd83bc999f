"""What a worker writes to stderr, which the core takes into its log, line by line.

Clients choose much of it: paths, and what stands in exceptions' texts. So whatever is foreign passes `marked`: its
further lines begin with a mark that no line of ours has, and nothing in it steers a terminal.
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
    """Writes what is the application's fault. The core may tell it from all else that is printed by its first word."""
    log(f"ERROR: {marked(text)}")


def log(text: str) -> None:
    """Writes lines of our own. Where the application has closed stderr, nowhere."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


def marked(text: str) -> str:
    """A text that may be anybody's: each line after the first begins with `  | `, as in the core's log; what cannot be
    seen is written out.
    """
    return _UNSEEN.sub(_written_out, text).replace("\n", "\n  | ")


def format_error(error: BaseException, loading: bool = False) -> str:
    """A traceback with the application's own frames only, in each cause and context likewise.

    Where there are none, Parkade's stay, since the fault is ours then; not while `loading`, when it is a file that is
    no Python.
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
    """As Python writes it, but that the exceptions' texts are marked."""
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
    """The last piece is the text, for those without notes: a SyntaxError shows its place before."""
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
