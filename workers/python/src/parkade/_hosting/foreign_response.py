"""Responses of frameworks, as those of Parkade: what a function after a wait has returned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .._link import port
from .._responses.response import Response
from ..errors import InvalidResult
from .park import MARK, parked


def own_result(result: Any) -> Any:
    """The result of a function: a response of a framework as one of Parkade's, or the wait that it stands for; anything
    else as it is.
    """
    status = getattr(result, "status_code", None)
    headers = getattr(result, "headers", None)
    if isinstance(result, Response) or headers is None or not (isinstance(status, int) or hasattr(result, "_wsgi")):
        return result
    if getattr(result, "background", None) is not None:  # Starlette
        raise InvalidResult(
            "returned a response with a background task after a wait, where none runs: enqueue a job, or give the task "
            "to the response of park(wait, response)"
        )
    pairs = _pairs(result)
    if any(name.lower() == MARK for name, _ in pairs):
        wait = parked.pop(port.stream(), None)
        pairs = [(name, value) for name, value in pairs if name.lower() not in _OF_THE_PLACE]
        return result if wait is None else Response(wait, None, pairs) if wait._function is None else wait
    pairs = [(name, value) for name, value in pairs if name.lower() != "content-length"]
    return Response(_body(result), status, pairs)


_OF_THE_PLACE = (MARK, "content-length")


def _pairs(result: Any) -> list[tuple[str, str]]:
    if (raw := getattr(result, "raw_headers", None)) is not None:  # Starlette
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
    if (cookies := getattr(result, "cookies", None)) is not None and hasattr(cookies, "values"):  # Django
        lines = [
            ("Set-Cookie", cookie.OutputString()) for cookie in cookies.values() if hasattr(cookie, "OutputString")
        ]
        return [*result.headers.items(), *lines]
    return [(str(name), str(value)) for name, value in result.headers.items()]


def _body(result: Any) -> Any:
    for name in ("body_iterator", "streaming_content", "iter_encoded"):
        pieces = getattr(result, name, None)
        if name == "iter_encoded" and pieces is not None:  # Werkzeug
            return pieces() if result.is_streamed else b"".join(pieces())
        if pieces is not None:
            return _Closing(iter(pieces), result) if hasattr(pieces, "__next__") else pieces
    for name in ("content", "body", "data"):  # Django, Starlette, Quart
        body = getattr(result, name, None)
        if isinstance(body, bytes | memoryview):
            return bytes(body)
    with suppress(AttributeError):
        if isinstance(body := result.response.data, bytes):  # Quart
            return body
    raise InvalidResult(f"returned {type(result).__module__}.{type(result).__qualname__}, whose body cannot be read")


class _Closing(Iterator[bytes]):
    """Pieces of a body, and the response that is closed after them."""

    def __init__(self, pieces: Iterator[bytes], response: Any) -> None:
        self._pieces = pieces
        self._response = response

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """Closes what the response holds."""
        if (close := getattr(self._response, "close", None)) is not None:
            close()
