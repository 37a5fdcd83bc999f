"""The errors, named by whose fault they are."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["none", "completed", "unknown", "cancelled"]
Fault: TypeAlias = Literal["client", "application", "worker", "server", "operator"]


class ParkadeError(Exception):
    """The base of everything that this package raises, except `HTTPError`."""


class Violation(ParkadeError):
    """The other end violated a rule of the protocol (PROTOCOL.md, section 4). The text says which."""


class LoadError(ParkadeError):
    """The application cannot be loaded; its operator or author must fix it. The text says how."""


class SignatureError(ParkadeError, TypeError):
    """A handler, hook or wait function has a parameter that cannot be provided.

    Raised while the application loads.
    """


class WaitError(ParkadeError, RuntimeError):
    """A wait or a transaction was used where it cannot be: awaited outside a request, or twice at a time."""


class InvalidResult(ParkadeError, TypeError):
    """A handler, job or access function returned something that it may not return. The text says what is allowed."""


class BodyError(ParkadeError, RuntimeError):
    """The body of a request was read in a way that its route does not allow. The text says which way it allows."""


class IncompleteBody(ParkadeError, OSError):
    """The rest of a request's body will not come: its client has left, has stalled, or has sent too much. Raised where
    `Request.stream` is read. Nobody gets the response.
    """


class HTTPError(Exception):
    """Raise it in a handler to answer with an error status.

    ```python
    @app.get("/orders/{id:int}")
    def order(id: int) -> str:
        raise HTTPError(404, f"there is no order {id}")
    ```

    `status` is 400 to 599, `detail` the text for the client (default: the status's own phrase), `headers` are added to
    the answer. `fault` says whose fault it is: that of the client if the status is below 500.
    """

    status: int
    """400 to 599."""
    detail: str
    """The text for the client."""
    headers: dict[str, str]
    """They are added to the answer."""
    fault: Fault
    """Whose fault it is."""

    def __init__(self, status: int, detail: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"an HTTPError has a status of 400 to 599, not {status}")
        self.status = int(status)
        self.detail = phrase(status) if detail is None else detail
        self.headers: dict[str, str] = dict(headers or {})
        self.fault = "client" if status < 500 else "application"
        super().__init__(f"{self.status} {self.detail}")


class InvalidParameter(HTTPError):
    """A request whose parameters do not fit the handler: 422. `parameters` names every one of them at once.

    Each is a map of `name`, `where` (path, query, header, cookie, form or body), `reason` and `value` (what was sent,
    or None).
    """

    parameters: list[dict[str, object]]
    """What is wrong: a map for each parameter, as above."""

    def __init__(self, parameters: list[dict[str, object]]) -> None:
        self.parameters = parameters
        names = ", ".join(str(parameter["name"]) for parameter in parameters)
        super().__init__(422, f"invalid or missing: {names}")


class InvalidChannel(HTTPError, ValueError):
    """An invalid channel name. It is 400: such a name comes from the client, in a path or a query."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


class InvalidMessage(ParkadeError, ValueError):
    """A message whose body does not match its content type, or is nested too deeply for Python. Its publisher is at
    fault, not the client: 500, unless it is caught. `body` and `text` can still be read.
    """


class InvalidText(HTTPError, ValueError):
    """Text with a NUL, which no database accepts. It is 400: such text comes from the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


class InvalidJobId(HTTPError, ValueError):
    """An invalid job id. It is 404: such an id comes from the client, and there is no such job."""

    def __init__(self, reason: str) -> None:
        super().__init__(404, reason)


class QueryError(HTTPError):
    """A query that was not carried out, or a transaction that did not begin or end as it should. Its text is for
    developers and may quote the statement; the client gets only `detail`.

    `reason` says why in a word or two: `refused` (by the database, `sqlstate` says more), `parameters`, `columns`,
    `too large`, `not one`, `unsupported`, `queue full`, `unreachable`, `denied`, `lost`, `no transaction`, `deadline`,
    `operator`, `stopping`, `unknown database`. `sqlstate` has five characters (SQL:2016, clause 24), or is None.
    `effect` is what is known about its changes: `none`, `cancelled` (it had begun; nothing has changed), `completed`
    (it was carried out nevertheless) or `unknown`. `status`, `detail` and `fault` are those of the response, unless the
    exception is caught; without `detail` and `fault`, the `reason` decides.
    """

    reason: str
    """Why, in a word or two, as above."""
    sqlstate: str | None
    """Five characters (SQL:2016, clause 24), or None."""
    effect: Effect
    """What is known about its changes: `none`, `cancelled`, `completed` or `unknown`."""

    def __init__(
        self,
        text: str,
        *,
        reason: str = "refused",
        sqlstate: str | None = None,
        effect: Effect = "none",
        status: int = 500,
        detail: str | None = None,
        fault: Fault | None = None,
    ) -> None:
        told = _told(reason, status) if detail is None else detail
        super().__init__(status, told, {"retry-after": "1"} if status == 503 else None)
        self.fault = fault or _FAULTS.get(reason) or ("server" if status == 503 else self.fault)
        self.reason = reason
        self.sqlstate = sqlstate
        self.effect: Effect = effect
        self.args = (text,)


class Refused(HTTPError):
    """The core refused the wait because a limit was reached (503), or a job cannot be stored: 507 if the store is full,
    otherwise 503.
    """

    def __init__(self, reason: str, status: int = 503) -> None:
        super().__init__(status, reason, {"retry-after": "1"} if status == 503 else None)
        self.fault = "operator" if status == 507 else "server"


class JobError(HTTPError):
    """A job without a result: `reason` is `dead` (it failed for good), `cancelled`, or `missing` (it does not exist, or
    no longer).

    `id` is the job's id. The text is for developers; the client gets only `detail`.
    """

    reason: str
    """`dead`, `cancelled` or `missing`."""
    id: str
    """The job's id, a UUID as text."""

    def __init__(self, text: str, *, reason: str, id: str) -> None:
        status, detail = _NO_RESULT.get(reason, (500, "the job gave no result"))
        super().__init__(status, detail)
        self.reason = reason
        self.id = id
        self.args = (text or detail,)


_NO_RESULT = {
    "dead": (500, "the job failed; the log says why"),
    "cancelled": (410, "the job was cancelled"),
    "missing": (404, "no such job; it may have been deleted"),
}


class Retry(ParkadeError):
    """Raise it in a job to retry it `after` this many seconds (None: as after any other failure). It counts as an
    attempt; when all are used up, the job is dead.

    `text` is stored with the job; by default it is that of the exception that this one was raised from.
    """

    after: float | None
    """Seconds until the next attempt; None as after any other failure."""

    def __init__(self, after: float | None = None, text: str = "") -> None:
        if after is not None and not (isinstance(after, int | float) and 0 <= after <= 1e15):
            raise ValueError(f"seconds must be a finite number, 0 or more, not {after!r}")
        super().__init__(text)
        self.after = after


class Discard(ParkadeError):
    """Raise it in a job that should not be retried: the job is dead. The text is stored with the job."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)


class WebSocketClosed(ParkadeError, ConnectionError):
    """The WebSocket has ended: nothing more is received or sent. `code` and `reason` say how (RFC 6455, section 7.4.1).

    1000 and 1001 are what clients usually close it with, 1005 is a client that gave no code, 1006 a connection that
    broke. Raised out of a handler after its client has left, it is not a fault, and nothing is logged.
    """

    code: int
    """1000 to 4999."""
    reason: str
    """The text that came with the code, often empty."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"the WebSocket is closed: {code} {reason}".rstrip())


class ConnectError(ParkadeError, ConnectionError):
    """No server could be reached to enqueue a job, or it refused. The text says what to do."""


_TOLD: dict[tuple[str, int | None], str] = {
    ("refused", 400): "the database does not accept a value of this request",
    ("refused", 409): "this conflicts with data in the database",
    ("refused", 503): "the database cannot carry out the query now",
    ("parameters", None): "the query's placeholders do not match its parameters",
    ("columns", None): "two columns of the result have the same name",
    ("too large", None): "the result is larger than the server allows",
    ("not one", 404): "no such row",
    ("not one", None): "the query returned several rows where one was expected",
    ("unsupported", None): "this kind of query is not supported",
    ("queue full", None): "too many queries are waiting for the database",
    ("unreachable", None): "the database cannot be reached",
    ("denied", None): "the database denied the server access",
    ("lost", None): "the connection to the database broke while the query ran",
    ("no transaction", None): "the transaction has ended already",
    ("deadline", None): "the deadline of the query passed",
    ("operator", None): "an operator ended the query",
    ("stopping", None): "the server is stopping",
    ("unknown database", None): "the server has no such database",
}
"""The details for clients, in the same words as the core's: by reason, and by status where that is more precise."""


_FAULTS: dict[str, Fault] = {
    "denied": "operator",
    "operator": "operator",
    "unknown database": "operator",
    "deadline": "application",
}
"""Whose fault it is, where the status does not say it."""


def _told(reason: str, status: int) -> str:
    return _TOLD.get((reason, status)) or _TOLD.get((reason, None), "the database rejected the query; the log says why")


_NAMES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    418: "I'm a teapot",
    422: "Unprocessable Content",
}
"""Where the names differ between releases of Python."""


def phrase(status: int) -> str:
    """The name of a status (RFC 9110, section 15), or `Error` for one that has none."""
    if status in _NAMES:
        return _NAMES[status]
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
