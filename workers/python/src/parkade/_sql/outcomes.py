"""What a query gives: its rows, in the shape that was asked for, or the error that it failed with."""

from __future__ import annotations

from typing import Any

import msgspec

from .._waits.wait import value_of_outcome
from .._wire import payloads as p
from ..errors import QueryError
from .rows import value_of_rows


def value_of_query(outcome: p.Outcome, shape: str = "rows") -> Any:
    """As `value_of_outcome`, and for a query what it found, in its shape. Raises `QueryError` for one that failed."""
    match outcome:
        case p.Rows():
            return value_of_rows(outcome, shape)
        case p.Failed():
            raise error_of(outcome)
        case _:
            return value_of_outcome(outcome)


def shape_of(wait: p.Wait) -> str | list[str]:
    """Whether a query's outcome is `rows`, `one` or a `value`; `rows` for every other wait. For several waits, that of
    each.
    """
    if isinstance(wait, p.AllOf | p.FirstOf):
        return [wait.options.shape if type(wait) is p.Query else "rows" for wait in wait.waits]
    return wait.options.shape if type(wait) is p.Query else "rows"


def error_of(failed: p.Failed) -> QueryError:
    """The error that a failed query raises."""
    reason, state, text, effect, status, fault, detail = msgspec.structs.astuple(failed)
    return QueryError(
        text, reason=reason, sqlstate=state, effect=effect, status=status, detail=detail or None, fault=fault or None
    )


def failed_of(error: QueryError) -> p.Failed:
    """The outcome that raises this error."""
    return p.Failed(error.reason, error.sqlstate, str(error), error.effect, error.status, error.fault, error.detail)
