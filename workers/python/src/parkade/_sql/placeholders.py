"""Values for the placeholders of a statement, encoded for the link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from .._waits.message import encode_other
from .._wire.payloads import ARRAY_DEPTH_MAX
from ..errors import InvalidText

Parameter: TypeAlias = Any
"""None, bool, int (64 bits), float, str, bytes, a list of these, or `{"json": text}`."""


class Json:
    """A JSON document for a placeholder: any value that JSON can express. A dict needs no `Json`; a list without it
    is an array.

    Raises `TypeError` for what is not JSON-able.
    """

    __slots__ = ("text",)

    text: str
    """The document as JSON."""

    def __init__(self, value: object) -> None:
        self.text = _json(value).decode()

    def __repr__(self) -> str:
        return f"<Json of {len(self.text)} characters>"


def carried(values: Iterable[Any]) -> list[Parameter]:
    """The values for `$1`, `$2`…

    Raises `TypeError` for one that no database takes, `InvalidText` for a NUL, `ValueError` for arrays that are too
    deep in one another.
    """
    done: list[Parameter] = []
    try:
        for value in values:
            kind = type(value)
            is_plain = (kind is str and "\0" not in value) or kind in _PLAIN or (kind is int and value in _INT8)
            done.append(value if is_plain else _carried(value))
    except InvalidText as error:
        raise InvalidText(f"${len(done) + 1} {error.detail}") from None
    except ValueError as error:
        raise ValueError(f"${len(done) + 1} {error}") from error
    except TypeError as error:
        raise TypeError(f"${len(done) + 1} {error}") from error
    return done


_PLAIN = frozenset({type(None), bool, float, bytes})  # most values are these, str and int: the way below takes 1 µs
_INT8 = range(-(2**63), 2**63)

_json = msgspec.json.Encoder(enc_hook=encode_other).encode


def _carried(value: object, depth: int = 0) -> Parameter:
    match value:
        case Enum():
            return _carried(value.value, depth)
        case str():
            return _text(value)
        case None | bool() | float() | bytes():
            return value
        case int():
            return value if value in _INT8 else str(value)
        case Decimal() | UUID():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"
        case list() | tuple():
            return _array(value, depth + 1)
        case dict():
            return {"json": Json(value).text}
        case Json():
            return {"json": value.text}
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            raise TypeError(f"is of the type {type(value).__name__}: give text or a number, {_INSTEAD}")


_INSTEAD = "list(value) for an array, Json(value) for a JSON document"


def _text(text: str) -> str:
    if "\0" in text:
        raise InvalidText("contains a NUL, which no database accepts in a text")
    return text


def _array(values: Sequence[object], depth: int) -> list[Parameter]:
    if depth > ARRAY_DEPTH_MAX:
        raise ValueError(f"has more than {ARRAY_DEPTH_MAX} nested arrays")
    return [_carried(value, depth) for value in values]
