"""What `enqueue` returns: the job's id, and its result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from .._job import text_of_id
from .._link import port
from .._sql.open_transactions import OpenTransaction
from .._validation.values import Conversion
from .._waits.wait import Wait, check_seconds
from .._wire import payloads as p
from ..errors import InvalidJobId, WaitError
from ._values import ResultWait

if TYPE_CHECKING:  # only checkers know defaults before Python 3.13: `Handle` alone is `Handle[Any]`
    from typing_extensions import TypeVar as TypeVarWithDefault

    R_co = TypeVarWithDefault("R_co", covariant=True, default=Any)
else:
    R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """A job that was enqueued; its result is an `R`."""

    __slots__ = ("_asked", "_convert", "_id", "_transaction")
    _instead = "return its result(timeout=…), which is a wait, or its id"

    def __init__(
        self, id: bytes, transaction: OpenTransaction | None = None, convert: Conversion | None = None
    ) -> None:
        self._asked = self._id = id  # the id that it was enqueued with, and the one that it has
        self._transaction = transaction
        self._convert = convert  # makes the result what the job's function says that it returns

    @classmethod
    def of(cls, id: str | UUID) -> Handle[Any]:
        """The handle of a job by its id. Raises `InvalidJobId`, a `ValueError` that is 404, if that is not a UUID."""
        try:
            return cls((id if isinstance(id, UUID) else UUID(id)).bytes)
        except (ValueError, TypeError, AttributeError) as error:  # UUID tries to read whatever it is given
            raise InvalidJobId(f"a job's id is a UUID, not {id!r:.100}") from error

    @property
    def id(self) -> str:
        """A UUID as text.

        With `key` or `unique` there may be such a job already. Then this is an id that no job has, until the handle is
        awaited; so a plain function, which cannot await, should not hand out the ids of such jobs. In the request that
        has enqueued it, `result` finds the existing job all the same.
        """
        return text_of_id(self._id)

    def result(self, timeout: float | None = None) -> Wait[R_co | None]:
        """Waits until the job has ended, or for `timeout` seconds.

        ```python
        @app.job
        def report(year: int) -> str:
            return f"all of {year}"

        @app.post("/reports/{year:int}")
        def make(year: int) -> Wait:
            return report.enqueue(year).result(timeout=20)
        ```

        Returned, the answer is what the job returned, or 202 with its `Location` when the time is up. With `.then` and
        awaited it gives what the job returned, awaited as its function is annotated; None when the time is up. Both
        raise `JobError` for a job that has failed for good, was cancelled, or does not exist.
        """
        options = p.ResultOptions(None if timeout is None else check_seconds(timeout))
        return ResultWait(p.UntilResult(self._id, options), convert=self._convert)

    def __await__(self) -> Generator[Any, None, Handle[R_co]]:
        """Waits until the job is stored; then `id` is its id, or that of the existing job with its key. Several handles
        may be awaited at the same time.

        Raises `Refused` when it cannot be stored, `WaitError` outside the coroutine that has enqueued it.
        """
        return self._stored().__await__()

    async def _stored(self) -> Handle[R_co]:
        exchange = port.exchange.get()
        enqueued = None if exchange is None else exchange.enqueued
        if exchange is None or enqueued is None or self._asked not in enqueued:
            if exchange is not None and self._transaction is not None:
                raise WaitError("its transaction was rolled back: the job was not enqueued")
            raise WaitError("a job is awaited in the async def that enqueued it; elsewhere await its result()")
        self._id = await enqueued.id_of(self._asked, exchange)
        return self

    def __repr__(self) -> str:
        return f"<job {self.id}>"
