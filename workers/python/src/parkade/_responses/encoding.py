"""Responses, encoded for the link: whole, or a head that the pieces of a streamed body follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import CoroutineType
from typing import Any, TypeAlias

import msgspec

from .._limits import HEADERS_MAX, INLINE_MAX
from .._link.answers import AsyncChunks, Chunks, Streamed
from .._waits.message import encode_other
from .._waits.wait import Wait
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import InvalidResult
from .response import BYTES, JSON, TEXT, Response, shortened


def encode(response: Response) -> bytes | Streamed:
    """A whole RESPONSE, or one whose body follows: a long body, or an iterator, whose first piece is made here.

    Raises `InvalidResult`.
    """
    body = response.body
    if type(body) not in _WHOLE:
        if isinstance(body, Iterator):
            first = next(body, None)
            return Streamed(_head(response, _type_of_piece(first)), _Pieces(first, body))
        if isinstance(body, AsyncIterator):
            raise InvalidResult("returned an asynchronous iterator from a plain function: write async def")
    content, content_type = _content(body)
    if content is not None and _is_long(content):
        content = content.encode() if isinstance(content, str) else content
        response.headers.setdefault("content-length", str(len(content)))
        return Streamed(_head(response, content_type), _Pieces(content, iter(())))
    return encode_payload(_flat(response, content, content_type))


InThread: TypeAlias = Callable[[Callable[[], "bytes | Streamed"]], Awaitable["bytes | Streamed"]]
"""Runs a function in a thread, for a coroutine."""


async def encode_async(response: Response, streams: Callable[[], None], in_thread: InThread | None) -> bytes | Streamed:
    """As `encode`, and the body may be an asynchronous iterator: then it `streams`. The first piece of a plain one is
    made `in_thread`, if that is given.
    """
    body = response.body
    if type(body) in _WHOLE:
        return encode(response)
    if isinstance(body, AsyncIterator):
        streams()
        first = await anext(body, None)
        return Streamed(_head(response, _type_of_piece(first)), _PiecesAsync(first, body))
    if in_thread is not None and isinstance(body, Iterator):
        return await _encode_in_thread(response, in_thread)
    return encode(response)


async def _encode_in_thread(response: Response, in_thread: InThread) -> bytes | Streamed:
    """A request that is cancelled meanwhile also ends the iterator in the thread: only this knows that it has begun."""
    has_begun = False

    def begin() -> bytes | Streamed:
        nonlocal has_begun
        has_begun = True
        return encode(response)

    def end() -> bytes:
        _Pieces(None, response.body).close()
        return b""

    try:
        return await in_thread(begin)
    except asyncio.CancelledError:
        if has_begun:
            await in_thread(end)
        raise


def inline(response: Response) -> p.Response:
    """A response that the core keeps, for a timer or a constant route.

    Raises `InvalidResult` for one that does not fit into a frame.
    """
    return p.Response(*_kept(response))


def flat_of(response: Response) -> _Flat:
    """As `inline`, of any length: what a job returned. Raises `InvalidResult` for an iterator."""
    body = response.body
    if type(body) not in _WHOLE and isinstance(body, Iterator | AsyncIterator):
        raise InvalidResult("returned an iterator, which cannot be kept for later")
    return _flat(response, *_content(body))


def encode_kept(response: Response) -> bytes:
    """As `inline`, encoded."""
    return encode_payload(_kept(response))


def _kept(response: Response) -> _Flat:
    body = response.body
    if type(body) not in _WHOLE and isinstance(body, Iterator | AsyncIterator):
        raise InvalidResult("an iterator cannot be kept for later: use .then and return it there")
    content, content_type = _content(body)
    if content is not None and _is_long(content):
        raise InvalidResult(
            f"an answer that is kept for later has at most {INLINE_MAX} bytes: use .then and make it there"
        )
    return _flat(response, content, content_type)


def json_encode(value: object) -> bytes:
    """JSON as Parkade writes it: by msgspec, a `Message` as its value. Raises `TypeError`."""
    return _json(value)


encode_string: Callable[[str], bytes] = msgspec.msgpack.Encoder().encode

# A RESPONSE of 200 with a short text is TEXT_HEAD + encode_string(text): nine answers in ten, so it takes no Response.
TEXT_HEAD = b"\x93" + encode_payload(200) + encode_payload(["content-type", TEXT])  # of an array of three
SHORT_TEXT = INLINE_MAX // 4  # characters; each has at most four bytes

_WHOLE = frozenset({str, bytes, dict, list, type(None)})  # no iterators: to ask an abstract class takes 0.3 µs

_json = msgspec.json.Encoder(enc_hook=encode_other).encode


def _content(body: object) -> tuple[bytes | str | None, str | None]:
    match body:
        case None:
            return None, None
        case str():
            return body, TEXT
        case bytes():
            return body, BYTES
        case bytearray() | memoryview():
            return bytes(body), BYTES
        case _:
            try:
                return _json(body), JSON
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidResult(
                    f"returned {shortened(body)}, which is not an answer ({error}); {_instead_of(body)}"
                ) from error


def check_content(body: object) -> None:
    """Raises `InvalidResult` for a whole body that cannot be sent, however long it is."""
    _content(body)


def _instead_of(body: object) -> str:
    """What to return instead."""
    parts = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    if any(isinstance(part, Wait) for part in parts):
        return "await the waits in it, in an async def, or return all_of(…).then(function)"
    if isinstance(body, CoroutineType):
        body.close()  # or Python would say that it was never awaited
        return "write async def, and await it"
    instead: str = getattr(type(body), "_instead", _MAY_BE)
    return instead


_MAY_BE = "it may be str, bytes, None, JSON, Status, Response, html(...), an iterator of str or bytes, or a wait"


_Flat: TypeAlias = tuple[int, list[str] | None, bytes | str | None]
"""A RESPONSE: what makes it here has checked what `payloads.Response` would."""


def _is_long(content: bytes | str) -> bool:
    """Whether it is too long for a frame; most are so short that their bytes need not be counted."""
    return len(content) > SHORT_TEXT and p.byte_length(content) > INLINE_MAX


def _flat(response: Response, content: bytes | str | None, content_type: str | None) -> _Flat:
    flat = response.headers._flat()
    if flat and sum(map(len, flat)) > HEADERS_MAX:
        raise InvalidResult(f"returned headers of more than {HEADERS_MAX} characters")
    if content_type is not None and "content-type" not in flat[::2]:
        flat[:0] = ["content-type", content_type]
    return response.status or 200, flat or None, content


def _head(response: Response, content_type: str | None) -> bytes:
    return encode_payload(_flat(response, None, content_type))


def _type_of_piece(piece: object) -> str:
    return BYTES if isinstance(piece, bytes | bytearray | memoryview) else TEXT


def _piece(piece: object) -> bytes:
    match piece:
        case str():
            return piece.encode()
        case bytes():
            return piece
        case bytearray() | memoryview():
            return bytes(piece)
        case _:
            raise InvalidResult(f"a streamed answer must consist of str or bytes, not {shortened(piece)}")


class _Pieces(Chunks):
    """A class rather than a generator: closing it must reach the application's one even when it was never begun."""

    def __init__(self, first: object, rest: Iterator[Any]) -> None:
        self._first = first
        self._rest = rest

    def __next__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return _piece(first)
        return _piece(next(self._rest))

    def close(self) -> None:
        close = getattr(self._rest, "close", None)
        if close is not None:
            close()


class _PiecesAsync(AsyncChunks):
    def __init__(self, first: object, rest: AsyncIterator[Any]) -> None:
        self._first = first
        self._rest = rest

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return _piece(first)
        return _piece(await anext(self._rest))

    async def aclose(self) -> None:
        close = getattr(self._rest, "aclose", None)
        if close is not None:
            await close()
