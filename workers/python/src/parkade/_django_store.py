"""The job store in PostgreSQL, as a connection of Django reaches it: what it stores is in Django's transaction."""

from __future__ import annotations

from typing import Any

from ._hosting.origin import origin
from ._job import text_of_id
from ._wire import payloads as p
from .errors import ConnectError
from .jobs._admin import own_address
from .jobs._client import Connection, connect

_PROBE = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = 'parkade' AND p.proname = 'enqueue'
       AND pg_catalog.oidvectortypes(p.proargtypes)
           = 'uuid, uuid, text, text, smallint, bigint, bytea, text, text'
       AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
"""
"""Whether the database may be the one, and the role may ask it. It never fails: that would end the transaction."""

_ENQUEUE = """
SELECT parkade.enqueue(
    %s::uuid, %s::uuid, %s::text, %s::text, %s::int2, %s::int8, %s::bytea, %s::text, %s::text)
"""

_QUEUE = "default"

_instances: dict[str | None, str] = {}
"""That of a server in its store, by the address that was given for the server, as of the last look."""


def store_within(
    connection: Any,
    server: str | None,
    is_trusted: bool,
    id: bytes,
    name: str,
    arguments: bytes,
    told: p.EnqueueOptions,
) -> bool:
    """Stores a job through this connection, in its transaction. Returns whether it did: the store is in that database,
    and the role has the rights.

    That is proved by the row of the server's instance, which is in the store alone: addresses do not tell, and copies
    of a database have the same tables. The instance is another one after a pause of the server. `is_trusted`: no proof
    is needed, and no server.
    """
    if connection.vendor != "postgresql" or connection.needs_rollback:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_PROBE)
        if not cursor.fetchone()[0]:
            return False
        due = None if told.at is None else int(told.at * 1000)
        rest = (
            text_of_id(id),
            name,
            told.queue or _QUEUE,
            told.priority or 0,
            due,
            arguments,
            *(origin() or (id.hex(), None)),
        )
        if is_trusted:
            return _is_stored(cursor, None, rest)
        known = _instances.get(server)
        if known is not None and _is_stored(cursor, known, rest):
            return True
        found = _ask(server)
        return found is not None and found != known and _is_stored(cursor, found, rest)


def _is_stored(cursor: Any, instance: str | None, rest: tuple[Any, ...]) -> bool:
    cursor.execute(_ENQUEUE, (instance, *rest))
    return bool(cursor.fetchone()[0])


def _ask(server: str | None) -> str | None:
    """The instance of the server; None if its jobs are not in PostgreSQL, or nobody knows."""
    try:
        with connect_to(server) as connection:
            found = connection._instance()
    except ConnectError:
        found = None
    if found is None:
        _instances.pop(server, None)
    else:
        _instances[server] = found
    return found


def connect_to(server: str | None) -> Connection:
    """To the server that gets the jobs: in a worker its own, elsewhere the one at this address."""
    return connect(own_address() or server)
