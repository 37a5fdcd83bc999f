"""Enqueues jobs and publishes from a script, or any other program that is not a worker, through a server's admin
address.
"""

from __future__ import annotations

import json
import math
import os
import time
from base64 import b64decode, b64encode
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec.structs import replace

from .._job import new_id, text_of_id
from .._limits import RESULT_WAIT_SECONDS
from .._link import port
from .._sql.transactions import Isolation, Transaction
from .._waits.channel import checked_channel, encode_message
from .._wire import payloads as p
from .._wire.codec import encode_payload
from .._wire.jobs import fault_of_job
from ..errors import JobError
from ._arguments import encode_arguments
from ._options import options
from ._script_port import ScriptPort, refused
from ._script_transaction import ScriptTransaction, close_transactions, open_here
from ._values import decode_result

if TYPE_CHECKING:
    from ._admin import Admin


def connect(url: str | None = None, *, token: str | None = None) -> Connection:
    """A connection to a server, for scripts and management commands.

    ```python
    def announce(text: str) -> None:
        with connect() as server:           # or connect("http://127.0.0.1:8001")
            server.publish("news", text)
            server.enqueue("write_log", text)
    ```

    Within the block, `channel(name).publish(…)` and a job's `enqueue(…)` go to that server, too, except in a worker,
    which has its own. Both are done when the call returns. Only the thread that made it may use it.

    `url` is the server's admin address, or `unix:FILE`; by default, in a worker its own server, elsewhere the first
    address in PARKADE_ADMIN, else the only server of this user on this machine. `token` is for a server with
    `--admin-writes token`; by default it is the value of PARKADE_ADMIN_TOKEN. Nothing is sent yet. Raises
    `ConnectError` where there is no server, or several.
    """
    from ._admin import Admin, address_of_server  # here, since it imports http.client, which only scripts need

    return Connection(Admin(url or address_of_server(), token or os.environ.get("PARKADE_ADMIN_TOKEN") or None))


class Connection:
    """A connection to a server. Make it with `connect`. One thread at a time may use it."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._is_port = False

    def __enter__(self) -> Connection:
        if not port.is_connected():
            port.connect(ScriptPort(self))
            self._is_port = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_port:
            port.connect(None)
            self._is_port = False
        self.close()

    def close(self) -> None:
        """Closes the connection; the next call would connect again. An open transaction is rolled back."""
        close_transactions(self)
        self._admin.close()

    def transaction(
        self, database: str = "default", isolation: Isolation | None = None, read_only: bool = False
    ) -> Transaction:
        """Several statements on one connection of that server's, for `with`: see `parkade.transaction`.

        Raises `ConnectError` at the beginning of the block when no server answers, or when it refuses. A thread has one
        at a time.
        """
        return Transaction(database, isolation, read_only, self._holder)

    def _holder(self) -> ScriptTransaction:
        """For a transaction of the calling thread."""
        return ScriptTransaction(self._admin.begin_transaction, self)

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> str:
        """Enqueues the job of that name and returns its id, or that of the existing job with its key. By then it is
        stored. `options(…)` says when and how it runs.

        Only the worker sees whether the arguments fit. Raises `ValueError` for an invalid name, `ConnectError` when no
        server answers, or when it cannot store the job.
        """
        return self._enqueue(_NO_OPTIONS, name, args, kwargs)

    def options(
        self,
        *,
        delay: float | None = None,
        at: datetime | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        queue: str | None = None,
    ) -> ConnectionWithOptions:
        """The options of a job function: `connection.options(delay=60).enqueue("send", 7)`."""
        return ConnectionWithOptions(self, options(delay, at, priority, key, queue))

    def _enqueue(self, told: p.EnqueueOptions, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        _check_name(name)
        return self._store(new_id(), name, encode_arguments(name, args, kwargs), told)

    def _store(self, id: bytes, name: str, arguments: bytes, told: p.EnqueueOptions) -> str:
        """For a job that is encoded."""
        if (transaction := open_here()) is not None and transaction.of is self:
            transaction.enqueue(encode_payload((id, name, arguments, replace(told, within=True))))
            return text_of_id(id)
        asked = {
            "id": text_of_id(id),
            "name": name,
            "arguments": b64encode(arguments).decode(),
            "delay": told.delay or None,
            "at": told.at,
            "priority": told.priority,
            "queue": told.queue,
            "key": told.key,
        }
        body = json.dumps({key: value for key, value in asked.items() if value is not None}).encode()
        status, answer = self._admin.ask("POST", "/jobs", body)
        if status not in (200, 201):
            raise refused(status, answer)
        return str(answer["id"])

    def publish(self, channel: str, value: object, content_type: str | None = None, *, event: str | None = None) -> str:
        """Publishes a message on the channel of that name, as `Channel.publish` does, and returns its cursor.

        Raises `InvalidChannel`, `TypeError` and `ValueError` as that does, `ConnectError` when no server answers.
        """
        return self._send(checked_channel(channel), *encode_message(value, content_type, event), event)

    def _send(self, channel: str, content_type: str, body: bytes, event: str | None) -> str:
        """For a message that is encoded."""
        query = "" if event is None else f"?event={quote(event, safe='')}"
        path = f"/publish/{quote(channel, safe='')}{query}"
        status, answer = self._admin.ask("POST", path, body, content_type, is_idempotent=False)
        if status != 202:
            raise refused(status, answer)
        return str(answer["cursor"])

    def _stored(self, id: str) -> dict[str, Any] | None:
        """What the server knows of a job; None if it is not there."""
        status, answer = self._admin.ask("GET", f"/jobs/{quote(id, safe='')}")
        if status in (400, 404):
            return None
        if status != 200:
            raise refused(status, answer)
        return answer

    def _instance(self) -> str | None:
        """That of the server in its store in PostgreSQL; None if it has none, or is not one of its servers yet."""
        status, answer = self._admin.ask("GET", "/jobs/store")
        if status in (400, 404):  # an older server
            return None
        if status != 200:
            raise refused(status, answer)
        found = answer.get("instance")
        return found if isinstance(found, str) else None

    def result(self, id: str, timeout: float | None = None) -> Any:
        """Waits until the job has ended, and returns its result.

        Raises `TimeoutError` after `timeout` seconds, `JobError` for a job that has no result.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = (
                RESULT_WAIT_SECONDS if until is None else max(0.0, min(RESULT_WAIT_SECONDS, until - time.monotonic()))
            )
            status, answer = self._admin.ask("GET", f"/jobs/{quote(id, safe='')}?wait={math.ceil(left)}")
            if status == 404:
                raise JobError(str(answer.get("error", "")), reason="missing", id=id)
            if status != 200:
                raise refused(status, answer)
            match answer.get("state"):
                case "completed":
                    return decode_result(b64decode(answer["result"])) if answer.get("result") is not None else None
                case "dead" | "cancelled" as reason:
                    raise JobError(str(answer.get("error") or ""), reason=reason, id=id)
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"the job {id} has not ended after {timeout} seconds")


class ConnectionWithOptions:
    """A connection with the options of a job. Make it with `Connection.options`."""

    __slots__ = ("_connection", "_options")

    def __init__(self, connection: Connection, options: p.EnqueueOptions) -> None:
        self._connection = connection
        self._options = options

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> str:
        """As `Connection.enqueue`, with these options."""
        return self._connection._enqueue(self._options, name, args, kwargs)


_NO_OPTIONS = p.EnqueueOptions()


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a job must be a str, not {name!r}")
    if (reason := fault_of_job(name)) is not None:
        raise ValueError(reason)


def _outside() -> ScriptTransaction:
    """For code of a worker that works for no request: it has a transaction like a script, on its own server."""
    from ._admin import Admin, address_of_server

    return ScriptTransaction(Admin(address_of_server()).begin_transaction, None)


port.outside = _outside
