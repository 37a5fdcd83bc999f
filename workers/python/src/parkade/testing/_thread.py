"""Runs the plain functions of an application with coroutines as the server does: in one other thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import TypeVar

from .._link.plain_functions import adopt

T = TypeVar("T")


class Thread:
    """One thread. A caller waits for the function that it runs: nothing else happens in the test meanwhile.

    `context` is what functions and coroutines get a copy of: what the start-up hooks have set.
    """

    def __init__(self) -> None:
        self.context = copy_context()
        self._thread = ThreadPoolExecutor(1, "parkade")  # it ends with the last reference to this
        self._identity: int | None = None

    def run(self, function: Callable[[], T], context: Context | None = None) -> T:
        """Raises what the function raises. One that uses the client itself is there already."""
        if threading.get_ident() == self._identity:
            return function()
        return self._thread.submit(self._run, context or self.context.copy(), function).result()

    def _run(self, context: Context, function: Callable[[], T]) -> T:
        self._identity = threading.get_ident()
        return context.run(function)

    def call(self, function: Callable[[], T]) -> T:
        """For a coroutine: the function sees its context, and what it sets there is seen afterwards."""
        context = copy_context()
        try:
            return self.run(function, context)
        finally:
            adopt(context)

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown()
