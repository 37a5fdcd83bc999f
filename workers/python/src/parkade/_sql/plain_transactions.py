"""Transactions of plain code, which keeps its worker, or its thread, until its block ends."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress

from .._link.port import Holder
from .._wire import payloads as p
from ..errors import HTTPError, WaitError
from .open_transactions import note_begin, note_end, requester
from .outcomes import value_of_query
from .queries import Int8, options, statement
from .rows import Rows


class PlainTransaction:
    """An open transaction of plain code: what `with transaction()` gives."""

    __slots__ = ("_begin", "_holder", "_is_open")

    def __init__(self, holder: Holder, begin: p.Begin) -> None:
        self._holder = holder
        self._begin = begin
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether what is enqueued now belongs to it."""
        return self._is_open

    def query(self, sql: str, /, *parameters: object, deadline: float | None = None, int8: Int8 = "number") -> Rows:
        """Executes a statement in this transaction, at once, and returns its rows. The arguments are those of
        `parkade.query`.

        Raises `QueryError` when it fails, `WaitError` when the transaction is over.
        """
        asked = statement(sql, parameters, options(self._begin.options.database, deadline, int8, within=True))
        self._check()
        rows: Rows = value_of_query(self._holder.ask(asked))
        return rows

    def rollback(self) -> None:
        """Rolls back; the rest of the block has no transaction. Raises `QueryError` when that fails."""
        self._check()
        self._end(p.Rollback(_END))

    def _check(self) -> None:
        if not self._is_open:
            raise WaitError("this transaction has ended: begin another")
        if requester() != self._holder.who:
            raise WaitError("this transaction belongs to another request")

    def _enter(self) -> None:
        note_begin(self._holder.who, self)
        try:
            value_of_query(self._holder.ask(self._begin))
        except BaseException as error:
            if isinstance(error, HTTPError):  # it did not begin
                self._over()
            else:  # of a signal's handler, perhaps just when it had begun
                self._take_back()
            raise
        self._is_open = True  # what others have enqueued before is not part of it

    def _exit(self, error: BaseException | None) -> None:
        """The end of the block."""
        if not self._is_open:
            return
        if error is None:
            self._end(p.Commit(_END))
        else:
            self._take_back()

    def _take_back(self) -> None:
        """Rolls back because of another exception, which is the one that is raised.

        When the request was cancelled, the core has rolled back already, and takes nothing more for it.
        """
        with suppress(HTTPError, WaitError, CancelledError):
            self._end(p.Rollback(_END))

    def _end(self, how: p.Commit | p.Rollback) -> None:
        self._is_open = False  # what is enqueued from here on is not part of it
        committed = False
        try:
            value_of_query(self._holder.ask(how))
            committed = isinstance(how, p.Commit)
        finally:
            self._over(committed)

    def _over(self, committed: bool = False) -> None:
        self._is_open = False
        note_end(self._holder.who)
        self._holder.over(committed)


_END = p.EndOptions()
