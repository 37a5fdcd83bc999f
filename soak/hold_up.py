"""Delays the backend through which the core cancels, as a loaded machine or a slow network would.

Cancels then arrive when their statement has ended and the next one runs: without the fence they are strays. On a quiet
machine a cancel takes 0.1 ms, and the need for the fence would never show.
"""

import os
import random
import signal
import threading
from contextlib import suppress

from postgres import Cluster, NoPostgres

FIND_SECONDS = 0.5
"""It has a different process after each restart."""

HELD_SECONDS_MAX = 0.008
"""Less than the 20 ms after which a cancel is repeated."""

TURNS_FOR_EACH_FIND = 100

CANCELLER = """
    select pid from pg_stat_activity
    where query like '%pg_cancel_backend(%' and backend_type = 'client backend' and pid <> pg_backend_pid()
"""


class HoldUp:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self) -> "HoldUp":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            with suppress(NoPostgres, ProcessLookupError):
                for row in self._cluster.ask(CANCELLER):
                    self._hold_up(int(row[0]))
            self._is_over.wait(FIND_SECONDS)

    def _hold_up(self, pid: int) -> None:
        # By descriptor, so that no other process can get the signal after this one has ended.
        process = os.pidfd_open(pid)
        try:
            for _ in range(TURNS_FOR_EACH_FIND):
                signal.pidfd_send_signal(process, signal.SIGSTOP)
                self._rest()
                signal.pidfd_send_signal(process, signal.SIGCONT)
                self.count += 1
                self._rest()
        finally:
            os.close(process)

    def _rest(self) -> None:
        self._is_over.wait(self._chance.uniform(0, HELD_SECONDS_MAX))
