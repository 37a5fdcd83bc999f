"""What `Annotated[…, Meta(…)]` demands of a value that was made of text: compiled once, when the application loads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from msgspec import Meta

from .annotations import name_of

Check = Callable[[Any], None]
"""Raises `ValueError`, with a reason for people."""


def constrained(convert: Callable[[str], Any], kind: Any, added: Iterable[Any]) -> Callable[[str], Any]:
    """`convert`, and then what `added` demands of its value. Raises `TypeError` for a demand that nothing enforces."""
    checks = list(checks_of(kind, added))
    if not checks:
        return convert

    def convert_checked(text: str) -> Any:
        value = convert(text)
        for check in checks:
            check(value)
        return value

    return convert_checked


def checks_of(kind: Any, added: Iterable[Any]) -> Iterable[Check]:
    """One for each demand."""
    for each in added:
        if isinstance(each, Meta):
            for name in _DEMANDS:
                if (bound := getattr(each, name)) is not None:
                    yield _check(kind, name, bound)
        elif is_constraint(each):
            raise TypeError(f"{each!r} would not be enforced: write msgspec.Meta(…)")


def is_constraint(added: Any) -> bool:
    """Whether it is a demand of pydantic, which only that enforces."""
    return type(added).__module__.partition(".")[0] in ("annotated_types", "pydantic")


_NUMBERS = (int, float, Decimal)

_DEMANDS: dict[str, tuple[tuple[Any, ...], Callable[[Any, Any], bool], str]] = {
    "ge": (_NUMBERS, lambda value, bound: value >= bound, "a number of at least {} is expected"),
    "gt": (_NUMBERS, lambda value, bound: value > bound, "a number above {} is expected"),
    "le": (_NUMBERS, lambda value, bound: value <= bound, "a number of at most {} is expected"),
    "lt": (_NUMBERS, lambda value, bound: value < bound, "a number below {} is expected"),
    "multiple_of": (_NUMBERS, lambda value, bound: _is_multiple(value, bound), "a multiple of {} is expected"),
    "min_length": ((str, list, bytes), lambda value, bound: len(value) >= bound, "at least {} {} expected"),
    "max_length": ((str, list, bytes), lambda value, bound: len(value) <= bound, "at most {} {} expected"),
    "pattern": ((str,), lambda value, bound: bound.search(value) is not None, "text that matches {} is expected"),
    "tz": ((datetime, time), lambda value, bound: (value.tzinfo is not None) is bound, ""),
}
"""By the names of `Meta`: the types that it is for, the rule, and what is said when it is broken."""


def _check(kind: Any, name: str, bound: Any) -> Check:
    kinds, holds, text = _DEMANDS[name]
    if kind not in kinds:
        raise TypeError(f"Meta({name}={bound!r}) does not apply to {name_of(kind)}")
    reason = _reason(kind, name, bound, text)
    if name == "pattern":
        bound = re.compile(bound)

    def check(value: Any) -> None:
        if not holds(value, bound):
            raise ValueError(reason)

    return check


def _reason(kind: Any, name: str, bound: Any, text: str) -> str:
    if name == "tz":
        return "a time zone is expected" if bound else "no time zone is expected"
    if name.endswith("_length"):
        thing = {str: "character", bytes: "byte"}.get(kind, "value")
        return text.format(bound, f"{thing} is" if bound == 1 else f"{thing}s are")
    return text.format(bound)


def _is_multiple(value: Any, bound: Any) -> bool:
    if isinstance(value, Decimal):
        return value % Decimal(str(bound)) == 0
    return math.fmod(value, bound) == 0 if isinstance(value, float) or isinstance(bound, float) else value % bound == 0
