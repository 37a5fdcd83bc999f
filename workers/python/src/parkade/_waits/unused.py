"""Finds waits that were made and then thrown away: `after(5)` where `return after(5)` was meant."""

from __future__ import annotations

import sys
from typing import Any

from .._log import is_our_code, log_fault, marked
from .wait import Wait

_make: Any = Wait.__init__


def watch() -> None:
    """From now on such a wait is reported in the log. For `parkade dev` alone, since it costs every wait something."""
    kind: Any = Wait
    kind.__init__, kind.__del__ = _make_watched, _report


def unwatch() -> None:
    """Ends what `watch` began."""
    kind: Any = Wait
    kind.__init__ = _make
    if "__del__" in vars(Wait):
        del kind.__del__


def _make_watched(wait: Wait, *arguments: Any, **options: Any) -> None:
    _make(wait, *arguments, **options)
    frame = sys._getframe(1)
    while frame.f_back is not None and is_our_code(frame.f_code.co_filename):
        frame = frame.f_back
    wait._made_at = f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _report(wait: Wait) -> None:
    if not hasattr(wait, "_used"):
        made = f" ({wait._made_at})" if hasattr(wait, "_made_at") else ""
        log_fault(
            f"a wait was neither returned nor awaited, so nothing waits for it: {marked(repr(wait))}{made}; "
            "write `return` or `await` before it"
        )
