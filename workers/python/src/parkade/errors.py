"""What can go wrong, named by whose fault it is."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus


class ParkadeError(Exception):
    """The base of everything that this package raises, except `HTTPError`."""


class Violation(ParkadeError):
    """The other end broke a rule of the protocol (PROTOCOL.md, section 4). The text says which."""


class LoadError(ParkadeError):
    """The application cannot be loaded: the operator's or the author's to mend. The text says how."""


class SignatureError(ParkadeError, TypeError):
    """A handler, hook or wait function asks for something that nobody can give it.

    Raised while the application loads.
    """


class WaitError(ParkadeError, RuntimeError):
    """A wait was used where it cannot be: awaited outside a request, or twice at a time."""


class HTTPError(Exception):
    """Raise it in a handler to answer with an error status.

    `status` is 400 to 599, `detail` the text for the client (default: the status's own phrase), `headers` are added to
    the answer.
    """

    def __init__(self, status: int, detail: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        if not 400 <= status <= 599:
            raise ValueError(f"an HTTPError has a status of 400 to 599, not {status}")
        self.status = int(status)
        self.detail = phrase(status) if detail is None else detail
        self.headers: dict[str, str] = dict(headers or {})
        super().__init__(f"{self.status} {self.detail}")


class InvalidParameter(HTTPError):
    """A request whose parameters do not fit the handler: 422. `parameters` names every one of them at once.

    Each is a map of `name`, `where` (path, query, form or body), `reason` and `value` (what was sent, or None).
    """

    def __init__(self, parameters: list[dict[str, object]]) -> None:
        self.parameters = parameters
        names = ", ".join(str(parameter["name"]) for parameter in parameters)
        super().__init__(422, f"invalid or missing: {names}")


class InvalidChannel(HTTPError, ValueError):
    """A channel's name that no core accepts. It is 400: such a name comes from the client, in a path or a query."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


class Refused(HTTPError):
    """The core would not take the wait, because a limit was reached: 503."""

    def __init__(self, reason: str) -> None:
        super().__init__(503, reason, {"retry-after": "1"})


def phrase(status: int) -> str:
    """The reason phrase of a status (RFC 9110, section 15), or `Error` for one that has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
