"""Transactions: several statements of one request on one connection. For plain code: `plain_transactions`."""

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
from .open_transactions import note_begin, note_end, requester
from .outcomes import value_of_query
from .plain_transactions import PlainTransaction
from .queries import Int8, Query, named, options, statement
from .rows import Rows

T = TypeVar("T")

Isolation = Literal["read committed", "repeatable read", "serializable"]


def transaction(database: str = "default", isolation: Isolation | None = None, read_only: bool = False) -> Transaction:
    """Several statements on one connection, in the code that answers a request or is a job:

    ```python
    async def move(amount: int, payer: int, payee: int) -> None:
        async with transaction() as t:
            await t.query("update accounts set amount = amount - $1 where id = $2", amount, payer)
            await t.query("update accounts set amount = amount + $1 where id = $2", amount, payee)

    def pay_in(amount: int, payee: int) -> None:  # plain code: `with`, and each statement is executed at once
        with transaction() as t:
            t.query("update accounts set amount = amount + $1 where id = $2", amount, payee)
    ```

    Plain code keeps its worker, or its thread, until the block ends; a coroutine does not.

    The end of the block commits. An exception that leaves the block rolls back, and so does a client that leaves
    before the COMMIT. `isolation` None is the database's default. A request has one transaction at a time; `query`
    without `t` runs on another connection.

    A job that is enqueued in the block is stored when the transaction commits, and not at all when it does not. Where
    the jobs are in the same PostgreSQL database, the transaction itself stores it.

    Entering and leaving the block may raise `QueryError`: then nothing has changed, unless its `effect` says otherwise.
    Raises `WaitError` where there is neither a request nor a job.
    """
    return Transaction(database, isolation, read_only)


class Transaction:
    """A transaction, which begins with its block: what `async with transaction()` gives, once it is open. `with` gives
    a `PlainTransaction`.
    """

    __slots__ = ("_begin", "_exchange", "_holder", "_idle", "_of_server", "_plain", "_runs", "_state", "_who")

    def __init__(
        self,
        database: str,
        isolation: Isolation | None,
        read_only: bool,
        of_server: Callable[[], port.Holder] | None = None,
    ) -> None:
        if isolation not in _ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(filter(None, _ISOLATIONS))}, not {isolation!r}")
        self._of_server = of_server  # that of a connection to a server
        self._who: object = None  # the request that it belongs to
        self._exchange: port.Exchange | None = None  # its statements are awaited with this
        self._holder: port.Holder | None = None  # or, by a coroutine that has its worker to itself, executed with this
        self._plain: PlainTransaction | None = None  # that of `with`
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
        if requester() != self._who:
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
        if self._of_server is not None:
            raise WaitError("a connection to a server is for plain code: with server.transaction() as t")
        self._holder, self._exchange = port.port().holder(), port.exchange.get()
        if self._holder is None and self._exchange is None:
            raise WaitError(_ELSEWHERE)
        self._who = requester()
        note_begin(self._who, self)
        try:
            await self._ask(self._begin)
        except CancelledError:  # by asyncio.timeout, perhaps just when it had begun
            await self._take_back()
            raise
        except BaseException:
            self._over()
            raise
        self._state = _State.OPEN  # what other tasks have enqueued before is not part of it
        return self

    def __enter__(self) -> PlainTransaction:
        if self._state is not _State.NEW:
            raise WaitError("a transaction begins only once: make another with transaction()")
        holder = port.port().holder() if self._of_server is None else self._of_server()
        if holder is None:
            raise WaitError(_ELSEWHERE if port.exchange.get() is None else _AWAITS)
        self._state = _State.OVER  # as far as `async with` is concerned
        self._plain = PlainTransaction(holder, self._begin)
        self._plain._enter()
        return self._plain

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._plain is not None:
            self._plain._exit(error)

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
        value_of_query(await self._outcome_of(wait))

    async def _outcome_of(self, wait: port.Statement) -> p.Outcome:
        """The outcome of a statement of it."""
        if self._holder is not None:
            return self._holder.ask(wait)
        assert self._exchange is not None, "it has begun"
        return await self._exchange.wait(encode_park(wait, AWAIT))

    def _over(self, committed: bool = False) -> None:
        self._state = _State.OVER
        note_end(self._who)
        if self._holder is not None:
            self._holder.over(committed)
        elif self._exchange is not None:
            port.tell_enqueued(self._exchange, committed)


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
        return await self._transaction.run(self._found())

    async def _found(self) -> Any:
        self._used = True
        value = self._value(await self._transaction._outcome_of(self._wait))
        return value if self._convert is None else self._convert(value)

    def _copied(self, wait: p.Query, convert: Conversion | None) -> Query[Any]:
        return Statement(wait, self._transaction, convert)


class _State(Enum):
    NEW = 1
    OPEN = 2
    OVER = 3


_ELSEWHERE = (
    "a transaction belongs to the request or job for which its code runs, and there is none here: a thread needs the "
    "context of its request, as asyncio.to_thread copies it"
)
_AWAITS = "in an async def, write: async with transaction() as t, and await t.query(…)"
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
