"""Makes decoded dataclasses whole.

msgspec gives an object of a dataclass only the fields that were sent, and what its factories make: the other defaults
are read from the class. It also writes only what the object itself has, so that a body which is published, returned,
or kept as the state of a wait would lose its defaults on the way (msgspec 0.22). Slotted dataclasses and its own
`Struct` have all of their fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

D = TypeVar("D")

_Classes: TypeAlias = dict[type, tuple[str, ...]]  # dataclasses that may lack something, with all their fields


def whole(decode: Callable[[D], Any], annotation: Any) -> Callable[[D], Any]:
    """`decode` for values of that type, followed by what makes them whole; where nothing can be missing, as it is."""
    classes = {
        kind.cls: tuple(field.name for field in kind.fields)
        for kind in _kinds(inspect.type_info(annotation), set())
        if isinstance(kind, inspect.DataclassType) and _may_lack(kind)
    }
    if not classes:
        return decode

    def decode_whole(data: D) -> Any:
        value = decode(data)
        _complete(value, classes, set())
        return value

    return decode_whole


def _may_lack(kind: inspect.DataclassType) -> bool:
    has_dict = kind.cls.__dictoffset__ != 0
    return has_dict and any(field.default is not msgspec.NODEFAULT for field in kind.fields)


def _kinds(node: object, seen: set[int]) -> Iterator[inspect.Type]:
    """Every type that occurs in a type."""
    if isinstance(node, tuple):
        for part in node:
            yield from _kinds(part, seen)
    elif isinstance(node, inspect.Type | inspect.Field) and id(node) not in seen:
        seen.add(id(node))  # a type may occur in itself
        if isinstance(node, inspect.Type):
            yield node
        yield from _kinds(msgspec.structs.astuple(node), seen)


def _complete(value: object, classes: _Classes, seen: set[int]) -> None:
    if id(value) in seen:
        return  # JSON is a tree, but a __post_init__ may tie its objects to each other
    seen.add(id(value))
    for name in classes.get(type(value), ()):
        vars(value).setdefault(name, getattr(value, name))
    for part in _parts(value):
        _complete(part, classes, seen)


def _parts(value: object) -> Iterator[object]:
    match value:
        case str() | bytes() | int() | float() | None:
            pass
        case dict():
            yield from value.values()
        case list() | tuple() | set() | frozenset():
            yield from value
        case msgspec.Struct():
            yield from msgspec.structs.astuple(value)
        case _ if dataclasses.is_dataclass(value):
            yield from (getattr(value, field.name) for field in dataclasses.fields(value))
