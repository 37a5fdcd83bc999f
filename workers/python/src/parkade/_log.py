"""What a worker tells the log: records for the core that started it (`_link.records`), otherwise text on stderr, which
the core copies into its log line by line.

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
from typing import Any, Protocol

_PACKAGE = str(Path(__file__).parent) + os.sep
_IMPORTING = ("<frozen importlib", str(Path(importlib.__file__).parent))


class Sink(Protocol):
    """Takes records: a level, a message, and members that may be None."""

    def __call__(self, level: str, message: str, **members: Any) -> None: ...


_sink: Sink | None = None


def connect(sink: Sink | None) -> None:
    """Has records written there from now on; None: as text."""
    global _sink
    _sink = sink


def log_error(what: str, error: BaseException, **members: Any) -> None:
    """Logs an exception with its traceback, in one piece.

    The message, or the first line, says by itself what happened.
    """
    reason = "".join(f": {line}" for line in str(error).splitlines()[:1])
    message = f"{what}: {type(error).__name__}{reason}"
    if _sink is not None:
        _sink("error", message, exception=in_words(error), traceback=format_error(error), **members)
    else:
        log(f"ERROR: {marked(message)}\n{format_error(error)}")


def log_fault(text: str, **members: Any) -> None:
    """Logs a fault of the application that is no exception."""
    if _sink is not None:
        _sink("error", text, **members)
    else:
        log(f"ERROR: {marked(text)}")


def log_warning(text: str) -> None:
    """Logs what may be a fault of the application."""
    if _sink is not None:
        _sink("warn", text)
    else:
        log(f"WARNING: {marked(text)}")


def in_words(error: BaseException) -> str:
    """The type of an exception and its text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")
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
