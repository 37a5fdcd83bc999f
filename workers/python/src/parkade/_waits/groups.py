"""Several waits as one: until all of them are over, or the first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, overload

from .._limits import BRANCHES_MAX
from .._link import port
from .._link.exchange import AWAITED_ELSEWHERE
from .._validation.annotations import article_of
from .._wire import payloads as p
from ..errors import WaitError
from .first import First
from .functions import Function
from .wait import T_co, Wait

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@overload
def all_of(first: Wait[A], second: Wait[B], /) -> Wait[tuple[A, B]]: ...
@overload
def all_of(first: Wait[A], second: Wait[B], third: Wait[C], /) -> Wait[tuple[A, B, C]]: ...
@overload
def all_of(first: Wait[A], second: Wait[B], third: Wait[C], fourth: Wait[D], /) -> Wait[tuple[A, B, C, D]]: ...
@overload
def all_of(
    first: Wait[A], second: Wait[B], third: Wait[C], fourth: Wait[D], fifth: Wait[E], /
) -> Wait[tuple[A, B, C, D, E]]: ...
@overload
def all_of(*waits: Wait[T]) -> Wait[tuple[T, ...]]: ...
def all_of(*waits: Wait[Any]) -> Wait[Any]:
    """Waits until all of these are over. They wait at the same time, and their queries run at the same time.

    ```python
    @app.get("/dashboard")
    def dashboard() -> Wait:
        return all_of(
            query("select count(*) from orders").value(),
            query("select sum(amount) from orders").value(),
        ).then(page)

    def page(found: tuple[int, str]) -> dict[str, object]:
        orders, revenue = found
        return {"orders": orders, "revenue": revenue}
    ```

    With `.then` and awaited, it gives a list of what each would give, in their order (a tuple for type checkers, which
    know the type of each then, as of `asyncio.gather`). Returned, the answer is that as JSON. If one fails, so does the
    whole, and the others end; so do all of them if the client leaves, statements in the database included.

    Raises `TypeError` for anything but waits, `WaitError` for one with `.then` or headers, a stream, a file, and more
    than 100; and, unless it is awaited, for several waits within these, a query of a transaction, and `after` with a
    response.
    """
    return _group(p.AllOf, waits)


@overload
def first_of(first: Wait[A], second: Wait[B], /) -> Wait[First[A | B]]: ...
@overload
def first_of(first: Wait[A], second: Wait[B], third: Wait[C], /) -> Wait[First[A | B | C]]: ...
@overload
def first_of(first: Wait[A], second: Wait[B], third: Wait[C], fourth: Wait[D], /) -> Wait[First[A | B | C | D]]: ...
@overload
def first_of(*waits: Wait[T]) -> Wait[First[T]]: ...
def first_of(*waits: Wait[Any]) -> Wait[Any]:
    """Waits until one of these is over. The others end then, statements in the database included.

    ```python
    @app.get("/news/{topic}")
    async def news(topic: str) -> str:
        match await first_of(channel(topic).next(), channel("urgent").next(), after(30)):
            case First(value=Message() as message):
                return message.text
        return "nothing new"
    ```

    With `.then` and awaited, it gives a `First`, which says which wait it was; returned, the answer is that as JSON. If
    that wait has failed, so does the whole.

    Raises as `all_of` does, and `ValueError` without any wait.
    """
    if not waits:
        raise ValueError("first_of takes at least one wait: otherwise it would never be over")
    return _group(p.FirstOf, waits)


class Group(Wait[T_co]):
    """Several waits as one. Make it with `all_of` or `first_of`. It is immutable."""

    __slots__ = ("_waits",)

    _wait: p.AllOf | p.FirstOf

    def __init__(
        self,
        wait: p.AllOf | p.FirstOf,
        response: object = None,
        function: Function | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(wait, response, function, state)
        self._waits: tuple[Wait[Any], ...] = ()  # what is awaited; with a function, nothing is

    @classmethod
    def of(cls, wait: p.AllOf | p.FirstOf, waits: tuple[Wait[Any], ...]) -> Group[Any]:
        """One that can be awaited."""
        group: Group[Any] = Group(wait)
        group._waits = waits
        return group

    def then(self, function: Callable[..., Any], /, *args: Any, **state: Any) -> Wait[Any]:
        """See `Wait.then`."""
        for wait in self._waits:
            if isinstance(wait, Group):
                raise WaitError(f"{_name(wait._wait)} within another one can only be awaited, in an async def")
            if wait._response is not None:
                raise WaitError("after() with a response among several waits can only be awaited, in an async def")
            if isinstance(wait._wait, p.Query) and wait._wait.options.within:
                raise WaitError("a query of a transaction is awaited in its block")
        return super().then(function, *args, **state)

    def headers(self, headers: object = (), *, status: int | None = None) -> NoReturn:
        """Raises `WaitError`: a function gives the answer."""
        raise WaitError(f"after {_name(self._wait)} a function gives the answer: set its status and headers there")

    async def _outcome(self) -> Any:
        self._used = True
        if self._function is not None:
            raise WaitError("a wait with .then is returned, not awaited")
        if port.exchange.get() is None:
            raise WaitError(AWAITED_ELSEWHERE)
        tasks = [asyncio.ensure_future(wait._outcome()) for wait in self._waits]
        try:
            return await (_all(tasks) if isinstance(self._wait, p.AllOf) else _first(tasks))
        finally:
            for task in tasks:
                task.cancel()  # its statement ends in the database
            await asyncio.gather(*tasks, return_exceptions=True)

    def __repr__(self) -> str:
        """Without parameters of queries, which may be secrets."""
        then = f".then({self._function.name})" if self._function is not None else ""
        return f"<{_name(self._wait)} {len(self._wait.waits)} waits{then}>"


def give(value: Any) -> Any:
    """Called after several waits that were returned without a function: what they gave is the answer."""
    return value


def answered(wait: Wait[Any]) -> Wait[Any]:
    """The wait that is returned to the core: several waits always have a function."""
    return wait.then(give) if isinstance(wait, Group) and wait._function is None else wait


async def _all(tasks: list[asyncio.Task[Any]]) -> list[Any]:
    if tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    failed = (task for task in tasks if task.done() and (task.cancelled() or task.exception() is not None))
    for task in failed:
        task.result()
    return [task.result() for task in tasks]


async def _first(tasks: list[asyncio.Task[Any]]) -> First[Any]:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    index = next(index for index, task in enumerate(tasks) if task.done())
    return First(index, tasks[index].result())


def _group(kind: type[p.AllOf | p.FirstOf], waits: tuple[Wait[Any], ...]) -> Wait[Any]:
    made = kind([])
    for wait in waits:
        _check(_name(made), wait)
    if len(waits) > BRANCHES_MAX:
        raise WaitError(f"{_name(made)} takes at most {BRANCHES_MAX} waits, not {len(waits)}")
    for wait in waits:
        wait._used = True
    return Group.of(kind([wait._wait for wait in waits]), waits)


def _name(wait: p.AllOf | p.FirstOf) -> str:
    return "all_of" if isinstance(wait, p.AllOf) else "first_of"


def _check(kind: str, wait: object) -> None:
    """Raises `TypeError` and `WaitError` for what cannot be one of several."""
    if not isinstance(wait, Wait):
        raise TypeError(f"{kind} takes waits, not {article_of(type(wait).__name__)}")
    if isinstance(wait._wait, p.Stream | p.File | p.Files):
        raise WaitError(f"{kind} takes waits that can be awaited: a stream or a file goes straight to the client")
    if wait._function is not None or wait._added is not None:
        raise WaitError(f"{kind} takes waits without .then and headers: add .then to the whole")
