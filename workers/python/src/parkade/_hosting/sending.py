"""The response of a WSGI application, from `start_response` to its last piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from .._compiled import accelerator
from .._limits import INLINE_MAX
from .._link.answers import Answer, Handed, Sent
from .._waits.wait import Wait
from .._wire.codec import encode_payload
from ..errors import InvalidResult
from .file_part import length_of, park_of
from .file_wrapper import FileWrapper
from .park import ParkedResponse, parked
from .parking import parked_with, refused

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Stream(Protocol):
    """Sends the answer of the running request piece by piece."""

    def stream(self) -> int:
        """Its number."""

    def begin_answer(self, head: bytes, first: bytes) -> None:
        """Sends the head, a RESPONSE with nil for its body, and the first piece."""

    def send_answer(self, piece: bytes) -> None:
        """Sends a piece. Returns when the client has room for more; raises `ClientLeft` when nobody wants it."""

    def send_file(self, park: bytes) -> bool:
        """Has the core send a part of a file. Returns when that may be closed, or False if the core does not."""


class Sending:
    """One response. Its head is sent with the first bytes of its body, and can be replaced until then."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._head: tuple[int, list[Any]] | None = None
        self.has_begun = False
        self.is_handed = False
        """The core sends the body, which is a file: the stream is closed."""
        self.wait: Wait[Any] | None = None
        """What the response stands for, if it is one of `park`. Then nothing of it is sent."""

    @property
    def head(self) -> tuple[int, list[Any]]:
        """The status, and the headers: name, value, name…"""
        assert self._head is not None
        return self._head

    def start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
    ) -> Callable[[bytes], None]:
        """See PEP 3333. Returns `write`."""
        if exc_info:
            try:
                if self.has_begun and exc_info[1] is not None:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None  # no cycle of this frame and its traceback
        elif self._head is not None:
            raise InvalidResult("start_response was called a second time, without exc_info")
        self._head = accelerator.wsgi_head(status, headers) or (_status_of(status), _flat(headers))
        return self.send

    def send(self, piece: bytes) -> None:
        """Sends a piece of the body: also what the application writes with `write`."""
        if type(piece) is not bytes:
            piece = _bytes_of(piece)
        head = self._begun()
        if not piece:
            return
        if self.wait is not None:
            raise refused(len(piece))
        if self.has_begun:
            self._stream.send_answer(piece)
        else:
            self.has_begun = True
            self._stream.begin_answer(encode_payload((*head, None)), piece)

    def started(self, response: ParkedResponse) -> Iterable[bytes]:
        """The body of a response that was returned as it is, with `start_response` or without it."""
        status, headers = self._head or (200, [])
        self._head = status, [*headers, *(text for pair in response.headers.items() for text in pair)]
        return ()

    def answer(self, body: Iterable[bytes]) -> Answer:
        """Sends the body. What is one piece is one frame."""
        if (type(body) is list or type(body) is tuple) and len(body) == 1 and not self.has_begun:
            piece = body[0] if type(body[0]) is bytes else _bytes_of(body[0])
            if len(piece) <= INLINE_MAX:
                head = self._begun()
                if self.wait is not None and piece:
                    raise refused(len(piece))
                return accelerator.response(head, piece) or encode_payload((*head, piece))
        if type(body) is FileWrapper and not self.has_begun:
            body.length = length_of(self._begun()[1])
            if self._hand_over(body):
                return Handed()
        for piece in body:
            self.send(piece)
        return Sent() if self.has_begun else encode_payload((*self._begun(), b""))

    def _hand_over(self, wrapper: FileWrapper) -> bool:
        """Whether the core sends the file."""
        head = self._begun()
        if self.wait is None and (place := wrapper.place()) is not None:
            park = park_of(head, *place)
            self.is_handed = park is not None and self._stream.send_file(park)
        return self.is_handed

    def _begun(self) -> tuple[int, list[Any]]:
        if self._head is None:
            raise InvalidResult("the application did not call start_response before its body")
        if parked and self.wait is None and not self.has_begun:
            self.wait = parked_with(self._stream.stream(), self._head[1])
        return self._head


def _status_of(status: str) -> int:
    if not isinstance(status, str):
        raise InvalidResult(f"the status is a str such as '200 OK', not {type(status).__name__}")
    if not (status[:3].isdecimal() and status[3:4] in ("", " ")):
        raise InvalidResult(f"the status is a number and a reason, such as '200 OK', not {status!r}")
    number = int(status[:3])
    if not 200 <= number <= 599:
        raise InvalidResult(f"the status is a number from 200 to 599, not {number}")
    return number


def _flat(headers: list[tuple[str, str]]) -> list[Any]:
    flat: list[Any] = []
    for name, value in headers:
        if not (isinstance(name, str) and isinstance(value, str)):
            raise InvalidResult(f"the name and the value of a header must be str, not {name!r}: {value!r}")
        try:
            flat += _plain(name), _plain(value) if value.isascii() else value.encode("latin-1")
        except UnicodeEncodeError as error:
            raise InvalidResult(f"header {name}: {value!r} has characters beyond ISO-8859-1") from error
    return flat


def _plain(text: str) -> str:
    """The text, of which an application may have a class of its own, as Django has for safe HTML."""
    return text if type(text) is str else str.__str__(text)


def _bytes_of(piece: object) -> bytes:
    if isinstance(piece, bytes):
        return bytes(piece)
    raise InvalidResult(f"a piece of the body is {type(piece).__name__}, not bytes")
