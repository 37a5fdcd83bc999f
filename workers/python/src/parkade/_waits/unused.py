"""Finds waits that were made and then thrown away: `after(5)` where `return after(5)` was meant."""

from __future__ import annotations

from typing import Any

from .._log import log_fault, marked
from .wait import Wait


def watch() -> None:
    """From now on such a wait is reported in the log. For `parkade dev` alone, since it costs every wait something."""
    kind: Any = Wait
    kind.__del__ = _report


def _report(wait: Wait) -> None:
    if not hasattr(wait, "used"):
        log_fault(f"a wait was neither returned nor awaited, so nothing waits for it: {marked(repr(wait))}")
