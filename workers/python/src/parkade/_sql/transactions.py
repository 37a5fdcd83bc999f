"""Transactions: several statements of one request on one connection."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeVar

from .._link import port
from .._validation.values import Conversion
from .._waits.wait import AWAIT, T_co, encode_park
from .._wire import payloads as p
from ..errors import HTTPError, WaitError
from .outcomes import value_of_query
from .queries import Int8, Query, named, options, statement
from .rows import Rows

T = TypeVar("T")

Isolation = Literal["read committed", "repeatable read", "serializable"]


def transaction(database: str = "default", isolation: Isolation | None = None, read_only: bool = False) -> Transaction:
    """Several statements on one connection, in the `async def` that answers a request:

    ```python
    async def move(amount: int, payer: int, payee: int) -> None:
        async with transaction() as t:
            await t.query("update accounts set amount = amount - $1 where id = $2", amount, payer)
            await t.query("update accounts set amount = amount + $1 where id = $2", amount, payee)
    ```

    The end of the block commits. An exception that leaves the block rolls back, and so does a client that leaves
    before the COMMIT. `isolation` None is the database's default. A request has one transaction at a time; `query`
    without `t` runs on another connection.

    A job that is enqueued in the block is stored when the transaction commits, and not at all when it does not. Where
    the jobs are in the same PostgreSQL database, the transaction itself stores it.

    Entering and leaving the block may raise `QueryError`: then nothing has changed, unless its `effect` says otherwise.
    Raises `WaitError` outside a request's coroutine.
    """
    return Transaction(database, isolation, read_only)


class Transaction:
    """An open transaction: what `async with transaction()` gives."""

    __slots__ = ("_begin", "_exchange", "_idle", "_runs", "_state")

    def __init__(self, database: str, isolation: Isolation | None, read_only: bool) -> None:
        if isolation not in _ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(filter(None, _ISOLATIONS))}, not {isolation!r}")
        exchange = port.exchange.get()
        if exchange is None or asyncio._get_running_loop() is None:  # frameworks give their threads its context
            raise WaitError(_ELSEWHERE)
        self._exchange = exchange
        self._begin = p.Begin(p.BeginOptions(named(database), isolation, bool(read_only)))
        self._state = _State.NEW
        self._runs: asyncio.Task[Any] | None = None  # the task that awaits a statement of it
        self._idle: asyncio.Future[None] | None = None  # when that has ended

    @property
    def is_open(self) -> bool:
        """Whether what is enqueued now belongs to it."""
        return self._state is _State.OPEN

    def query(
        self, sql: str, /, *parameters: object, deadline: float | None = None, int8: Int8 = "number"
    ) -> Query[Rows]:
        """As `parkade.query`, in this transaction. Only to be awaited, one at a time."""
        within = options(self._begin.options.database, deadline, int8, within=True)
        return Statement(statement(sql, parameters, within), self)

    async def rollback(self) -> None:
        """Rolls back; the rest of the block has no transaction. Raises `QueryError` when that fails."""
        self._check()
        await self._end(p.Rollback(_END))

    def _check(self) -> None:
        """Raises `WaitError` unless a statement may be executed in it now."""
        if self._state is _State.NEW:
            raise WaitError("a transaction begins with its block: async with transaction() as t")
        if self._state is _State.OVER:
            raise WaitError("this transaction has ended: begin another")
        if port.exchange.get() is not self._exchange:
            raise WaitError("this transaction belongs to another request")

    async def run(self, statement: Coroutine[Any, Any, T]) -> T:
        """Runs a statement in it, alone. Raises `WaitError` while another one runs."""
        try:
            self._check()
            if self._runs is not None:
                raise WaitError(_BUSY)
        except WaitError:
            statement.close()
            raise
        self._runs = asyncio.current_task()
        self._idle = asyncio.get_running_loop().create_future()
        try:
            return await statement
        finally:
            self._runs = None
            self._idle.set_result(None)

    async def _stop(self) -> None:
        """Cancels the task that still awaits a statement: the connection is needed for the end."""
        if self._runs is not None and self._idle is not None:
            self._runs.cancel("its transaction is over")
            await self._idle

    async def __aenter__(self) -> Transaction:
        if self._state is not _State.NEW:
            raise WaitError("a transaction begins only once: make another with transaction()")
        if self._exchange in _begun:
            raise WaitError("this request already has an open transaction: end that before you begin another")
        _begun[self._exchange] = self
        self._state = _State.OPEN
        try:
            await self._ask(self._begin)
        except CancelledError:  # by asyncio.timeout, perhaps just when it had begun
            await self._take_back()
            raise
        except BaseException:
            self._over()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state is _State.OVER:
            return
        if error is None and self._runs is not None:
            await self._take_back()
            raise WaitError(_STILL_RUNS)
        if error is None:
            await self._end(p.Commit(_END))
        elif isinstance(error, GeneratorExit):  # the coroutine is being thrown away, and may not await
            self._over()
        else:
            await self._take_back()

    async def _take_back(self) -> None:
        """Rolls back because of another exception, which is the one that is raised.

        When the client has left, the core has rolled back already and takes no frame for this request: a `WaitError`.
        """
        with suppress(HTTPError, WaitError):
            await self._end(p.Rollback(_END))

    async def _end(self, how: p.Commit | p.Rollback) -> None:
        self._state = _State.OVER
        committed = False
        try:
            await self._stop()
            await self._ask(how)
            committed = isinstance(how, p.Commit)
        finally:
            self._over(committed)

    async def _ask(self, wait: p.Begin | p.Commit | p.Rollback) -> None:
        value_of_query(await self._exchange.wait(encode_park(wait, AWAIT)))

    def _over(self, committed: bool = False) -> None:
        self._state = _State.OVER
        _begun.pop(self._exchange, None)
        enqueued = self._exchange.enqueued
        if enqueued is not None and committed:
            enqueued.committed()
        elif enqueued is not None:
            enqueued.rolled_back()


def open_transaction() -> Transaction | None:
    """The open transaction of the request that is being answered."""
    exchange = port.exchange.get()
    begun = None if exchange is None else _begun.get(exchange)
    return begun if begun is not None and begun.is_open else None


class Statement(Query[T_co]):
    """A query in a transaction. It can only be awaited, and only while the transaction is open."""

    __slots__ = ("_transaction",)

    def __init__(self, wait: p.Query, transaction: Transaction, convert: Conversion | None = None) -> None:
        super().__init__(wait, convert=convert)
        self._transaction = transaction

    def shared(self, key: str, ttl: float = 0) -> NoReturn:
        raise WaitError("a query of a transaction cannot be shared")

    def then(self, function: Callable[..., Any], /, *args: Any, **state: Any) -> NoReturn:
        raise WaitError("a query of a transaction is awaited: the transaction ends with its block")

    async def _outcome(self) -> Any:
        return await self._transaction.run(super()._outcome())

    def _copied(self, wait: p.Query, convert: Conversion | None) -> Query[Any]:
        return Statement(wait, self._transaction, convert)


class _State(Enum):
    NEW = 1
    OPEN = 2
    OVER = 3


_ELSEWHERE = (
    "a transaction is for the async def that answers a request or is a job: a plain function, or a view of WSGI, has "
    "query(…) for one statement, and the transactions of its own database library"
)
_BUSY = (
    "this transaction is executing another statement: a transaction has one connection, which executes one statement "
    "at a time. Await one query after the other, or use query(…) without the transaction, on another connection"
)
_STILL_RUNS = (
    "a statement of this transaction was still running at the end of its block, so the transaction was rolled back: "
    "await every query in the block"
)
_ISOLATIONS = (None, "read committed", "repeatable read", "serializable")
_END = p.EndOptions()
_begun: dict[port.Exchange, Transaction] = {}  # the open transactions; each is removed at the end of its block
