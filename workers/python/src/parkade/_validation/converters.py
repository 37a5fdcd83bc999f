"""Text to what an annotation asks for: one function for each type, found once when the application loads."""

from __future__ import annotations

import contextlib
import enum
import math
import typing
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import msgspec

from .._limits import DIGITS_MAX
from .annotations import bare, unwrapped
from .constraints import constrained
from .decimals import is_reasonable
from .models import is_pydantic, text_converter

Convert = Callable[[str], Any]


def converter(annotation: Any) -> Convert | None:
    """Makes text into a value of that type; the function raises `ValueError` with a reason for people.

    None when text cannot become one. Raises `TypeError` for what `Annotated` demands and nothing enforces.
    """
    if is_pydantic(annotation):
        return text_converter(annotation)
    kind, added = unwrapped(annotation)
    convert = _converter(kind)
    return convert if convert is None else constrained(convert, kind, added)


def _converter(kind: Any) -> Convert | None:
    if kind in (str, Any):
        return str
    if kind in _OWN:
        return _OWN[kind]
    if kind in _BY_MSGSPEC or _is_enum(kind) or typing.get_origin(kind) is Literal:
        return _by_msgspec(kind)
    return None


def item_of_list(annotation: Any) -> Any | None:
    """`X` for `list[X]` (Any for a bare list), else None."""
    kind = bare(annotation)
    if kind is list:
        return Any
    if typing.get_origin(kind) is list:
        return typing.get_args(kind)[0]
    return None


_BY_MSGSPEC = frozenset({UUID, datetime, date, time})

_TRUE = frozenset({"true", "1", "on", "yes"})  # "on" is what a browser sends for a checkbox
_FALSE = frozenset({"false", "0", "off", "no"})


def _bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("true or false is expected")


# int, float and Decimal are stricter than Python's, which take "1_000", " 7 " and "nan"; msgspec's are too strict, they
# refuse the "007" that a path may have.


def _int(text: str) -> int:
    if len(text) > DIGITS_MAX or not (text.isascii() and text.removeprefix("-").isdigit()):
        raise ValueError("an integer is expected")
    return int(text)


def _float(text: str) -> float:
    if 0 < len(text) <= DIGITS_MAX and _NUMERIC.issuperset(text):
        try:
            value = float(text)
        except ValueError:
            value = math.inf
        if math.isfinite(value):
            return value
    raise ValueError("a number is expected")


def _decimal(text: str) -> Decimal:
    if 0 < len(text) <= DIGITS_MAX and _NUMERIC.issuperset(text):
        with contextlib.suppress(ArithmeticError):
            value = Decimal(text)
            if is_reasonable(value):
                return value
    raise ValueError("a decimal number is expected")


_OWN: dict[Any, Convert] = {bool: _bool, int: _int, float: _float, Decimal: _decimal}
_NUMERIC = frozenset("0123456789+-.eE")


def _by_msgspec(annotation: Any) -> Convert:
    name = _name(annotation)

    def convert(text: str) -> Any:
        try:
            return msgspec.convert(text, annotation, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} is expected") from error

    return convert


def _name(annotation: Any) -> str:
    if _is_enum(annotation):
        return "one of " + ", ".join(str(member.value) for member in annotation)
    if typing.get_origin(annotation) is Literal:
        return "one of " + ", ".join(str(value) for value in typing.get_args(annotation))
    return _WORDS[annotation]


_WORDS: dict[Any, str] = {
    UUID: "a UUID",
    datetime: "a date and time (RFC 3339)",
    date: "a date (RFC 3339)",
    time: "a time (RFC 3339)",
}


def _is_enum(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, enum.Enum)
