"""Threads that take one task after the other from a queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol


class Task(Protocol):
    """Something to do in a thread."""

    def begin(self) -> bool:
        """Returns whether to run it. Called in the order in which tasks were added, never for two at once."""

    def run(self) -> None:
        """Runs it. Must not raise."""


class Threads:
    """Begins tasks strictly in the order in which they were added, and runs at most `count` of them at a time.

    The threads are started when they are needed, and are daemons: one that hangs does not keep the process alive.
    """

    def __init__(self, count: int, pause: Callable[[], None]) -> None:
        """`pause` is called in a thread that may have to wait for its next task."""
        self._count = count
        self._pause = pause
        self._started = 0
        self._queue: SimpleQueue[Task] = SimpleQueue()
        self._turn = threading.Lock()  # the thread that takes a task begins it before another takes the next

    def add(self, task: Task) -> None:
        """Queues a task. Only one thread may call it."""
        self._queue.put(task)
        if self._started < self._count:
            self._started += 1
            threading.Thread(target=self._work, name=f"parkade {self._started}", daemon=True).start()

    def _work(self) -> None:
        is_alone = self._count == 1
        while True:
            if not is_alone or self._queue.empty():
                self._pause()
            with self._turn:
                task = self._queue.get()
                begins = task.begin()
            if begins:
                task.run()
