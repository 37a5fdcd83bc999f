"""The `lifespan` of an ASGI application: what it does before the first request, and after the last."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .._log import format_error, log_error, log_fault
from ..errors import InvalidResult, LoadError
from .interfaces import AsgiCallable
from .scope import ASGI

_PHASES = ("lifespan.startup", "lifespan.shutdown")


class Lifespan:
    """Runs beside the requests, in a task of its own. `state` is what the application keeps for them."""

    def __init__(self, application: AsgiCallable) -> None:
        self.state: dict[str, Any] = {}
        self._application = application
        self._messages: asyncio.Queue[str] = asyncio.Queue()
        self._phase = _PHASES[0]
        self._outcome: asyncio.Future[str | None] | None = None  # of the phase that runs: a failure in words
        self._has_received = False
        self._has_misunderstood = False  # an application of HTTP alone takes it for a request
        self._task: asyncio.Task[None] | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the application has taken part."""
        return self._task is not None

    async def start(self) -> None:
        """Raises `LoadError` if the application says that it cannot start, or raises after it was asked to. One that
        raises before knows nothing of a lifespan.
        """
        task = asyncio.get_running_loop().create_task(self._run(), name="lifespan")
        task.add_done_callback(self._ended)
        failure = await self._pass("lifespan.startup", task)
        if failure is not None:
            raise LoadError(failure)
        if not task.done():
            self._task = task
        elif (error := _error_of(task)) is not None and self._has_received and not self._has_misunderstood:
            raise LoadError(format_error(error)) from error

    async def stop(self) -> None:
        """Lets the application shut down; logs its failure."""
        if self._task is None or self._task.done():
            return
        failure = await self._pass("lifespan.shutdown", self._task)
        if failure is not None:
            self._task = None  # many raise it again
            log_fault(f"the application did not shut down cleanly: {failure}")

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Logs its failure, unless its start failed, which LoadError tells."""
        error = _error_of(task)
        if error is not None and self._task is task:
            log_error("the lifespan of the application", error)

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {**ASGI, "spec_version": "2.0"}, "state": self.state}
        await self._application(scope, self._receive, self._send)

    async def _pass(self, message: str, task: asyncio.Task[None]) -> str | None:
        """Returns when the application has answered, or is over."""
        self._phase = message
        outcome = self._outcome = asyncio.get_running_loop().create_future()
        self._messages.put_nowait(message)
        await asyncio.wait({task, outcome}, return_when=asyncio.FIRST_COMPLETED)
        return outcome.result() if outcome.done() else None

    async def _receive(self) -> dict[str, Any]:
        kind = await self._messages.get()
        self._has_received = True
        return {"type": kind}

    async def _send(self, message: Mapping[str, Any]) -> None:
        kind, outcome = str(message["type"]), self._outcome
        phase, _, how = kind.rpartition(".")
        if phase not in _PHASES or how not in ("complete", "failed"):
            self._has_misunderstood = kind.startswith("http.")
            raise InvalidResult(f"the application sent {kind!r}, which is not a message of a lifespan")
        if phase != self._phase:
            raise InvalidResult(f"the application sent {kind} when it was asked for {self._phase}.complete")
        if outcome is None or outcome.done():
            raise InvalidResult(f"the application sent {kind} a second time")
        outcome.set_result(None if how == "complete" else str(message.get("message") or f"the application sent {kind}"))


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
