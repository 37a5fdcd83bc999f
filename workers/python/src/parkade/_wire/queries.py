"""Queries and transactions of a request: their waits and outcomes in PROTOCOL.md."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from .._limits import INLINE_MAX
from .values import Array, Count, FaultStatus, Map, Seconds, byte_length

STATEMENT_MAX = 262_144  # bytes of a statement; then: ValueError
PARAMETERS_MAX = 65_535  # PostgreSQL counts them in 16 bits; then: ValueError
ARRAY_DEPTH_MAX = 6  # nested arrays, as many as PostgreSQL accepts (MAXDIM); then: ValueError
SHARED_MAX = 200  # bytes of the key of a shared query, as of a channel's name; then: ValueError


class QueryOptions(Map, frozen=True):
    """`deadline` and `ttl` in seconds; `ttl` requires `shared`, and `shared` excludes `within`."""

    database: str = "default"
    shape: Literal["rows", "one", "value"] = "rows"
    deadline: Seconds | None = None
    int8: Literal["number", "string"] = "number"
    shared: str | None = None
    ttl: Seconds = 0
    within: bool = False

    def __post_init__(self) -> None:
        if self.shared is None:
            if self.ttl:
                raise ValueError("a ttl goes with shared")
            return
        if not 1 <= byte_length(self.shared) <= SHARED_MAX:
            raise ValueError(f"a shared key must have 1 to {SHARED_MAX} bytes")
        if self.within:
            raise ValueError("a query within a transaction cannot be shared")


class Query(Array, frozen=True, tag="query"):
    """`parameters` contain None, bool, int (64 bits), float, str, bytes, lists of these and `{"json": text}`."""

    text: str
    parameters: list[Any]
    options: QueryOptions

    def __post_init__(self) -> None:
        if not 1 <= byte_length(self.text) <= STATEMENT_MAX:
            raise ValueError(f"a statement must have 1 to {STATEMENT_MAX} bytes")
        if "\0" in self.text:
            raise ValueError("a statement must not contain NUL")
        if len(self.parameters) > PARAMETERS_MAX:
            raise ValueError(f"a statement has at most {PARAMETERS_MAX} parameters")


class BeginOptions(Map, frozen=True):
    database: str = "default"
    isolation: Literal["read committed", "repeatable read", "serializable"] | None = None
    read_only: bool = False
    deadline: Seconds | None = None


class Begin(Array, frozen=True, tag="begin"):
    options: BeginOptions


class EndOptions(Map, frozen=True):
    """Nothing yet."""


class Commit(Array, frozen=True, tag="commit"):
    options: EndOptions


class Rollback(Array, frozen=True, tag="rollback"):
    options: EndOptions


class Rows(Array, frozen=True, tag="rows"):
    """A query that completed. `columns` are names and types, `body` is JSON text; None if it follows."""

    columns: list[tuple[str, str]]
    command: str
    count: Count
    body: Annotated[bytes, Meta(max_length=INLINE_MAX)] | None


class Failed(Array, frozen=True, tag="failed"):
    """A query that failed. `text` is for logs and developers; `status`, `fault` and `detail` are what a client would
    get.
    """

    reason: str
    sqlstate: str | None
    text: str
    effect: Literal["none", "completed", "unknown", "cancelled"]
    status: FaultStatus
    fault: str
    detail: str
