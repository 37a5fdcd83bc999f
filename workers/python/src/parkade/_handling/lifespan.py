"""The start-up and shut-down hooks of an application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .._hooks import Hook, settle
from .._link.answers import FAULTS
from .._log import format_error, log_error
from ..errors import LoadError


class Lifespan:
    """Runs the hooks, in the order they were registered. See `Application` in `_link.answers`."""

    def __init__(self, start_hooks: list[Hook], stop_hooks: list[Hook]) -> None:
        self._start_hooks = start_hooks
        self._stop_hooks = stop_hooks

    def start(self) -> None:
        for hook in self._start_hooks:
            with _starting():
                hook.function()

    def stop(self) -> None:
        for hook in self._stop_hooks:
            with _stopping(hook):
                hook.function()

    async def start_concurrent(self) -> None:
        for hook in self._start_hooks:
            with _starting():
                await settle(hook, hook.function())

    async def stop_concurrent(self) -> None:
        for hook in self._stop_hooks:
            with _stopping(hook):
                await settle(hook, hook.function())


@contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        raise LoadError(format_error(error)) from error


@contextmanager
def _stopping(hook: Hook) -> Iterator[None]:
    """A hook that raises does not prevent the others from running."""
    try:
        yield
    except FAULTS as error:
        log_error(f"the shut-down hook {getattr(hook.function, '__qualname__', hook.function)}", error)
