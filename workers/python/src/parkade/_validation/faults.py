"""Everything that is wrong with a body. msgspec stops at the first fault, so a body that is refused is read again, part
by part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, inspect

from .._limits import FAULT_DEPTH_MAX, FAULT_PARTS_MAX, FAULT_VALUE_MAX, FAULTS_MAX
from .annotations import bare, hints_of, is_record, without_none
from .models import decode_model


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at a place in a body (`bid.amount`, empty for the whole), and what was sent there, if short."""

    place: str
    reason: str
    value: object = None


class Mismatch(msgspec.ValidationError):
    """A body that is not of its type. `faults` are all that were found, at least one."""

    def __init__(self, faults: list[Fault]) -> None:
        told = (f"{each.reason} - at `$.{each.place}`" if each.place else each.reason for each in faults)
        super().__init__("; ".join(told))
        self.faults = faults


def faults_of(annotation: Any, body: bytes, error: msgspec.ValidationError) -> list[Fault]:
    """What is wrong with a body of that type, of which msgspec has found `error`."""
    try:
        faults = list(islice(_faults_in(annotation, Raw(body), "", 0, iter(range(FAULT_PARTS_MAX))), FAULTS_MAX))
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # what follows the first fault is not even JSON
        faults = []
    return faults or [_fault_of(error, "", None)]


def _faults_in(annotation: Any, raw: Raw, place: str, depth: int, budget: Iterator[int]) -> Iterator[Fault]:
    """Reads one part for each number of `budget`."""
    if next(budget, None) is None:
        return
    try:
        msgspec.json.decode(raw, type=annotation, dec_hook=decode_model)
    except msgspec.ValidationError as error:
        parts = _parts(annotation, raw, place, depth, budget) if depth < FAULT_DEPTH_MAX else iter(())
        first = next(parts, None)
        yield first or _fault_of(error, place, raw)
        yield from parts


def _parts(annotation: Any, raw: Raw, place: str, depth: int, budget: Iterator[int]) -> Iterator[Fault]:
    kind = bare(without_none(annotation)[0])
    try:
        fields = _fields(kind) if is_record(kind) else None
        if fields is not None:
            sent = msgspec.json.decode(raw, type=dict[str, Raw])
            for name, expected, is_required in fields:
                where = f"{place}.{name}" if place else name
                if name in sent:
                    yield from _faults_in(expected, sent[name], where, depth + 1, budget)
                elif is_required:
                    yield Fault(where, "it is missing")
        elif getattr(kind, "__origin__", None) is list:
            for index, item in enumerate(msgspec.json.decode(raw, type=list[Raw])):
                yield from _faults_in(kind.__args__[0], item, f"{place}[{index}]", depth + 1, budget)
    except msgspec.ValidationError:  # it is no object, or no list: that is the fault
        return


@lru_cache(maxsize=1_024)
def _fields(kind: type) -> tuple[tuple[str, Any, bool], ...] | None:
    """The fields of a class: names in JSON, types, whether they are required. None where msgspec alone knows them."""
    told: Any = inspect.type_info(kind)
    hints = hints_of(kind)
    if getattr(kind, "__parameters__", ()) or not all(field.name in hints for field in told.fields):
        return None
    return tuple((field.encode_name, hints[field.name], field.required) for field in told.fields)


def _fault_of(error: msgspec.ValidationError, place: str, raw: Raw | None) -> Fault:
    """msgspec ends its text with the place, as in ``Expected `int`, got `str` - at `$.bid.amount` ``."""
    reason, _, told = str(error).partition(" - at `")
    inner = told.rstrip("`").removeprefix("$")
    where = (place + inner) if place else inner.removeprefix(".")
    is_short = raw is not None and not inner and len(bytes(raw)) <= FAULT_VALUE_MAX
    return Fault(where, reason, msgspec.json.decode(bytes(raw)) if is_short and raw is not None else None)
