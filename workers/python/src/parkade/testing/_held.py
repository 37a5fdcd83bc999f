"""Plain code of a test that waits while it keeps its thread: in a transaction."""

from __future__ import annotations

from .._link import port
from .._sql.open_transactions import requester
from .._wire import payloads as p
from ._databases import Databases
from ._jobs import Jobs
from ._response import Parked


class HeldRequest:
    """See `_link.port.Holder`. A slow database delays nobody else, and the clock of the test stands still meanwhile."""

    def __init__(self, databases: Databases, jobs: Jobs, response: Parked) -> None:
        self.who = requester()
        self._databases = databases
        self._jobs = jobs
        self._response = response

    def ask(self, wait: port.Statement) -> p.Outcome:
        _, outcome = self._databases.ask(wait, self._response)
        if isinstance(wait, p.Commit | p.Rollback):
            self._jobs.end_transaction(self._response, isinstance(wait, p.Commit) and isinstance(outcome, p.Rows))
        return outcome

    def over(self, committed: bool) -> None:
        exchange = port.exchange.get()
        if exchange is not None:
            port.tell_enqueued(exchange, committed)
