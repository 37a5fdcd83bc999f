"""Values that came from elsewhere (results of jobs, rows, messages) as what an annotation says."""

from __future__ import annotations

import typing
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from .annotations import bare, members, name_of, union
from .decodable import check_decodable
from .models import decode_model, is_pydantic, python_validator
from .records import whole

Conversion = Callable[[Any], Any]
"""Raises `TypeError` for a value that cannot become that type. None stays None: the time is up, or there is no row."""


def conversion(annotation: Any) -> Conversion | None:
    """Makes a value one of that type; None where nothing is to be done.

    Members of a union that nothing can become (`Message`, `Rows`, `Response`) are passed on as they are.
    """
    try:
        return _conversion(annotation)
    except TypeError:  # an annotation that cannot be a key
        return _conversion.__wrapped__(annotation)


@lru_cache(maxsize=1_024)
def _conversion(annotation: Any) -> Conversion | None:
    told = [member for member in members(annotation) if bare(member) is not type(None)]
    made = [member for member in told if _can_be_made(member)]
    given = tuple(kind for member in told if isinstance(kind := _class_of(member), type) and member not in made)
    if all(_is_plain(member) for member in made):
        return None
    target = union(made)
    convert = _converter(target)

    def convert_checked(value: Any) -> Any:
        if value is None or (given and isinstance(value, given)):
            return value
        try:
            return convert(value)
        except (ValueError, msgspec.ValidationError) as error:
            raise TypeError(
                f"a value of type {type(value).__name__} cannot become {name_of(target)}: {error}"
            ) from error

    return convert_checked


def _converter(annotation: Any) -> Conversion:
    if is_pydantic(annotation):
        return python_validator(annotation)
    return whole(lambda value: msgspec.convert(value, annotation, dec_hook=decode_model), annotation)


def _can_be_made(annotation: Any) -> bool:
    if is_pydantic(annotation):
        return True
    try:
        msgspec.json.Decoder(annotation)
        check_decodable(annotation)
    except TypeError:
        return False
    return True


def _class_of(annotation: Any) -> Any:
    kind = bare(annotation)
    return typing.get_origin(kind) or kind


def _is_plain(annotation: Any) -> bool:
    """Whether any decoded value is of that type already, as far as it says."""
    kind = bare(annotation)
    if kind in (Any, object, list, dict):
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return _is_plain(arguments[0])
    return origin is dict and arguments[0] is str and _is_plain(arguments[1])
