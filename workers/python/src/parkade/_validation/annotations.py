"""Annotations, looked through: what an alias stands for, what `Annotated` adds, which classes occur in one."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Union

import msgspec

EMPTY = inspect.Parameter.empty


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, with what `Annotated` adds. Raises `NameError` for one that means nothing yet."""
    return typing.get_type_hints(function, include_extras=True)


def bare(annotation: Any) -> Any:
    """An annotation without `Annotated`, and what an alias or a `NewType` stands for."""
    return unwrapped(annotation)[0]


def unwrapped(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """As `bare`, and what `Annotated` adds to it."""
    added: tuple[Any, ...] = ()
    while True:
        if typing.get_origin(annotation) is Annotated:
            added = (*annotation.__metadata__, *added)
            annotation = annotation.__origin__
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # `type X = …`, from Python 3.12 on
            annotation = annotation.__value__
        else:
            return annotation, added


def members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union; of anything else, that alone."""
    kind = bare(annotation)
    return typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (annotation,)


def without_none(annotation: Any) -> tuple[Any, bool]:
    """`X` and whether None was allowed: (X, True) for `X | None`."""
    kind, added = unwrapped(annotation)
    told = members(kind)
    left = [member for member in told if member is not type(None)]
    if len(left) == len(told) or not left:
        return annotation, False
    return annotated(union(left), added), True


def union(kinds: list[Any]) -> Any:
    """`A | B` of values."""
    return kinds[0] if len(kinds) == 1 else Union[tuple(kinds)]  # noqa: UP007 (made of values)


def annotated(kind: Any, added: tuple[Any, ...]) -> Any:
    """`Annotated[kind, …]`, or the kind itself when nothing is added."""
    arguments = (kind, *added)
    return Annotated[arguments] if added else kind


def parts_in(annotation: Any, is_entered: Callable[[Any], bool]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every type that occurs in one, itself too, with what `Annotated` adds to each; also in the fields of the classes
    that are entered.
    """
    seen: list[Any] = []
    rest = [annotation]
    while rest:
        kind, added = unwrapped(rest.pop())
        yield kind, added
        rest.extend(typing.get_args(kind))
        record = typing.get_origin(kind) or kind
        if not any(record is known for known in seen) and is_entered(record):
            seen.append(record)
            with contextlib.suppress(NameError, TypeError):  # decoding it reports what is wrong
                rest.extend(hints_of(record).values())


def is_record(kind: Any) -> bool:
    """Whether it is a class with fields that msgspec decodes."""
    return isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)
    )


def name_of(annotation: Any) -> str:
    """An annotation as a person writes it."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def article_of(name: str) -> str:
    """A name with its article: `an int`."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
