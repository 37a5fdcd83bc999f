"""Queries: one statement, executed by the core, and cancelled when no request waits for it any more."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeVar, overload

import msgspec

from .._validation.annotations import article_of
from .._validation.values import Conversion, conversion
from .._waits.wait import T_co, Wait, check_seconds
from .._wire import payloads as p
from .outcomes import value_of_query
from .placeholders import carried
from .rows import Row, Rows

T = TypeVar("T")

Int8 = Literal["number", "string"]
Shape = Literal["rows", "one", "value"]


def query(
    sql: str,
    /,
    *parameters: object,
    database: str = "default",
    deadline: float | None = None,
    int8: Int8 = "number",
) -> Query[Rows]:
    """Waits until a database has executed one statement; `parameters` are the values for `$1`, `$2`…

    ```python
    @app.get("/sales/{id:int}")
    def sale(id: int) -> Wait:
        return query("select * from sales where id = $1", id, deadline=5).one()
    ```

    Returned, its rows go to the client as JSON while they arrive. With `.then` and awaited it gives `Rows`, or what
    `.one()` or `.value()` make of them. When the client leaves before that, the statement is cancelled.

    A parameter is None, bool, int, float, str, bytes, a datetime, date, time or timedelta, a Decimal, UUID or Enum, a
    list of these (an array), or a dict or `Json` (a JSON document). `deadline`: seconds, including time in the queue (0
    for none, None for the server's). `int8="string"` gives 64-bit integers as text, since JavaScript misreads those
    over 2^53.

    Awaited, a query that fails raises `QueryError`; for one that is returned, also with `.then`, the core answers.
    Raises `TypeError` and `ValueError` for values that cannot be sent.
    """
    return Query(statement(sql, parameters, options(database, deadline, int8)))


class Query(Wait[T_co]):
    """A statement that a request waits for. Make it with `query`. It is immutable: each method returns another one.

    The function of `.then` gets what awaiting would give. It is not called when the query fails.
    """

    __slots__ = ()

    _wait: p.Query

    @overload
    def rows(self) -> Query[Rows]: ...
    @overload
    def rows(self, type: type[T]) -> Query[list[T]]: ...
    def rows(self, type: Any = None) -> Query[Any]:
        """All rows: returned `[{…}, {…}]`, awaited `Rows`; with a `type`, a list of that (a dataclass, for instance).
        This is the default.
        """
        return self._shaped("rows", None if type is None else list[type])

    @overload
    def one(self) -> Query[Row | None]: ...
    @overload
    def one(self, type: type[T]) -> Query[T | None]: ...
    def one(self, type: Any = None) -> Query[Any]:
        """One row: returned `{…}`, or 404 when there is none; awaited a dict, or a `type`, or None. A second row is an
        error.
        """
        return self._shaped("one", type)

    @overload
    def value(self) -> Query[Any]: ...
    @overload
    def value(self, type: type[T]) -> Query[T | None]: ...
    def value(self, type: Any = None) -> Query[Any]:
        """The first column of the only row: returned as JSON, or 404 when there is none; awaited the value, as a `type`
        if that is given, or None. A second row is an error.
        """
        return self._shaped("value", type)

    def shared(self, key: str, ttl: float = 0) -> Query[T_co]:
        """Requests that wait with the same key (1 to 200 bytes) share one execution, which is cancelled when the last
        of them has gone. A request that comes within `ttl` seconds after the execution gets the same rows.

        Only the same statement, parameters and shape are shared: a key that is reused by mistake mixes nothing up.
        """
        if not isinstance(key, str):
            raise TypeError(f"a shared key is text, not {article_of(type(key).__name__)}")
        known = msgspec.structs.asdict(self._wait.options)
        return self._with(p.QueryOptions(**known | {"shared": key, "ttl": check_seconds(ttl)}), self._convert)

    def _value(self, outcome: p.Outcome) -> Any:
        return value_of_query(outcome, self._wait.options.shape)

    def _shaped(self, shape: Shape, type: Any) -> Query[Any]:
        usual = self._wait.options is _USUAL["rows"]
        options = _USUAL[shape] if usual else msgspec.structs.replace(self._wait.options, shape=shape)
        return self._with(options, None if type is None else conversion(type))

    def _with(self, options: p.QueryOptions, convert: Conversion | None) -> Query[Any]:
        self._used = True
        return self._copied(p.Query(self._wait.text, self._wait.parameters, options), convert)

    def _copied(self, wait: p.Query, convert: Conversion | None) -> Query[Any]:
        made: Query[Any] = Query(wait, None, self._function, self._state, convert)
        made._added = self._added
        return made

    def __repr__(self) -> str:
        """Without its parameters, which may be secrets."""
        then = f".then({self._function.name})" if self._function is not None else ""
        return f"<Query {self._wait.text!r} {self._wait.options.shape}{then}>"


def statement(sql: str, parameters: tuple[object, ...], options: p.QueryOptions) -> p.Query:
    """A statement, for PARK. Raises as `query` does."""
    if not isinstance(sql, str):
        raise TypeError(f"a statement is text, not {article_of(type(sql).__name__)}")
    if parameters and "$" not in sql and "?" not in sql and (other := _OTHER_PLACEHOLDER.search(sql)):
        raise ValueError(f"the placeholders of a statement are $1, $2…, not {other[0]}: {sql}")
    return p.Query(sql, carried(parameters), options)


_OTHER_PLACEHOLDER = re.compile(r"%s|%\(\w+\)s|(?<![:\w]):[a-z_]\w*", re.ASCII | re.IGNORECASE)
"""Those of psycopg and SQLAlchemy; `::` is a cast."""


def options(database: str, deadline: float | None, int8: Int8, within: bool = False) -> p.QueryOptions:
    """The options of a query, for PARK. Raises `TypeError` and `ValueError`."""
    if deadline is None and database == "default" and int8 == "number" and not within:
        return _USUAL["rows"]
    if int8 not in ("number", "string"):
        raise ValueError(f"int8 is 'number' or 'string', not {int8!r}")
    seconds = None if deadline is None else check_seconds(deadline)
    return p.QueryOptions(database=named(database), deadline=seconds, int8=int8, within=within)


def named(database: str) -> str:
    """A database's name. Raises `TypeError` unless it is text."""
    if not isinstance(database, str):
        raise TypeError(f"the name of a database must be a str, not {article_of(type(database).__name__)}")
    return database


_USUAL: dict[Shape, p.QueryOptions] = {
    "rows": p.QueryOptions(),
    "one": p.QueryOptions(shape="one"),
    "value": p.QueryOptions(shape="value"),
}
"""The options of most queries, made once."""
