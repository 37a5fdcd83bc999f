"""The backend as Django's own tests expect one of those that Django brings: they look at it at once."""

import os
from contextlib import suppress
from typing import Any

import parkade
from parkade.django import Tasks


class Held(Tasks):
    """In place of the dummy: its server stores tasks and runs none. `results` are those that were enqueued here."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.results: list[Any] = []

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        self.results.append(result)
        return result

    def clear(self) -> None:
        self.results.clear()

    def _connect(self) -> Any:
        return parkade.connect(os.environ["HELD_AT"])


class AtOnce(Tasks):
    """In place of the immediate one: `enqueue` returns when a worker has run the task."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        id = super().enqueue(task, args, kwargs).id
        with self._connect() as server, suppress(parkade.JobError):
            server.result(id, timeout=20)
        return self.get_result(id)

    def _connect(self) -> Any:
        return parkade.connect(os.environ["RUN_AT"])
