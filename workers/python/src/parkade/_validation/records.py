"""Makes decoded dataclasses whole.

msgspec gives an object of a dataclass only the fields that were sent, and what its factories make: the other defaults
are read from the class. It also writes only what the object itself has, so that a body which is published, returned,
or kept as the state of a wait would lose its defaults on the way (msgspec 0.22). Slotted dataclasses and its own
`Struct` have all of their fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from .models import is_model

D = TypeVar("D")

_Classes: TypeAlias = dict[type, tuple[str, ...]]  # dataclasses that may lack something, with all their fields


def whole(decode: Callable[[D], Any], annotation: Any) -> Callable[[D], Any]:
    """`decode` for values of that type, followed by what makes them whole; where nothing can be missing, as it is."""
    classes = {
        kind.cls: tuple(field.name for field in kind.fields)
        for kind in kinds_in(annotation)
        if isinstance(kind, inspect.DataclassType) and _may_lack(kind)
    }
    if not classes:
        return decode

    def decode_whole(data: D) -> Any:
        value = decode(data)
        _complete(value, classes)
        return value

    return decode_whole


def kinds_in(annotation: Any) -> Iterator[inspect.Type]:
    """Every type that occurs in a type, itself too."""
    return _kinds(inspect.type_info(annotation), set())


def _may_lack(kind: inspect.DataclassType) -> bool:
    has_dict = kind.cls.__dictoffset__ != 0
    return has_dict and any(field.default is not msgspec.NODEFAULT for field in kind.fields)


def _kinds(node: object, seen: set[int]) -> Iterator[inspect.Type]:
    if isinstance(node, tuple):
        for part in node:
            yield from _kinds(part, seen)
    elif isinstance(node, inspect.Type | inspect.Field) and id(node) not in seen:
        seen.add(id(node))  # a type may occur in itself
        if isinstance(node, inspect.Type):
            yield node
        yield from _kinds(msgspec.structs.astuple(node), seen)


def _complete(value: object, classes: _Classes) -> None:
    """JSON is a tree, but a `__post_init__` may tie its objects to each other: each is looked at once."""
    seen: set[int] = set()
    rest = [value]
    while rest:
        value = rest.pop()
        if type(value) is not list and type(value) is not dict:
            if id(value) in seen:
                continue
            seen.add(id(value))
            _complete_one(value, classes.get(type(value), ()))
        rest.extend(part for part in parts_of(value) if type(part) not in LEAVES)


def _complete_one(value: object, names: tuple[str, ...]) -> None:
    if names:
        has = vars(value)
        for name in names:
            if name not in has:
                has[name] = getattr(value, name)


LEAVES = frozenset({str, int, float, bool, type(None)})
"""What most parts are, and has none itself."""


def parts_of(value: object) -> Iterable[object]:
    """What a decoded value is made of."""
    kind: Any = type(value)
    if kind is list:
        return value  # type: ignore[return-value]
    if kind is dict:
        return value.values()  # type: ignore[attr-defined, no-any-return]
    return _reader(kind)(value)


def named_parts_of(value: object) -> Iterator[tuple[object, object]]:
    """As `parts_of`, each with its place, as msgspec writes it, or its position. Keys are not shown: a client
    chooses them.
    """
    if isinstance(value, dict):
        return (("[...]", part) for part in value.values())
    if isinstance(value, msgspec.Struct):
        names = (f".{field.encode_name}" for field in msgspec.structs.fields(value))
        return zip(names, msgspec.structs.astuple(value), strict=True)
    if dataclasses.is_dataclass(value):
        fields = (field.name for field in dataclasses.fields(value))
        return ((f".{name}", getattr(value, name)) for name in fields if hasattr(value, name))
    if is_model(type(value)):
        return ((f".{name}", part) for name, part in vars(value).items())
    return enumerate(parts_of(value))


@lru_cache(maxsize=1_024)
def _reader(kind: type) -> Callable[[Any], Iterable[object]]:
    if issubclass(kind, dict):
        return kind.values
    if issubclass(kind, list | tuple | set | frozenset):
        return iter
    if issubclass(kind, msgspec.Struct):
        return msgspec.structs.astuple
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return lambda value: [getattr(value, name) for name in names if hasattr(value, name)]
    if is_model(kind):
        return lambda value: vars(value).values()
    return lambda value: ()
