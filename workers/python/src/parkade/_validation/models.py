"""Models of pydantic, where the application uses them. Nothing here imports pydantic: it is there if a model is.

A model is a class that pydantic validates: a subclass of its `BaseModel`, or one of its dataclasses.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from .._limits import FAULTS_MAX, MODEL_FAULTS_MAX
from .annotations import unwrapped
from .constraints import is_constraint

Problem = tuple[str, str, object]
"""A place, what is wrong there, and what was sent."""

_SHOWN = (str, int, float, bool, type(None))


def is_model(kind: Any) -> bool:
    """Whether pydantic validates values of this class."""
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def is_pydantic(annotation: Any) -> bool:
    """Whether a model, or a type or a constraint of pydantic, occurs in an annotation (not: in the fields of a record
    of another kind).
    """
    if "pydantic" not in sys.modules:
        return False
    return any(
        is_model(kind) or hasattr(kind, "__get_pydantic_core_schema__") or any(map(is_constraint, added))
        for kind, added in _arguments(annotation)
    )


def _arguments(annotation: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    kind, added = unwrapped(annotation)
    yield kind, added
    for argument in typing.get_args(kind):
        yield from _arguments(argument)


def text_converter(annotation: Any) -> Callable[[str], Any]:
    """Makes text a value of a type of pydantic. Raises `TypeError` for a type that pydantic does not know."""
    validate = _adapter(annotation).validate_strings

    def convert(text: str) -> Any:
        try:
            return validate(text)
        except ValueError as error:
            raise ValueError("; ".join(reason for _, reason, _ in problems_of(error))) from error

    return convert


def json_validator(annotation: Any) -> Callable[[bytes], Any]:
    """Makes JSON a value of a type of pydantic; the function raises a `ValueError`, see `problems_of`.

    Raises `TypeError` for a type that pydantic does not know.
    """
    validate: Callable[[bytes], Any] = _adapter(annotation).validate_json
    return validate


def python_validator(annotation: Any) -> Callable[[Any], Any]:
    """As `json_validator`, for a value that is decoded already."""
    validate: Callable[[Any], Any] = _adapter(annotation).validate_python
    return validate


def problems_of(error: ValueError) -> list[Problem]:
    """What pydantic found wrong: the first problems. pydantic describes all of them or none, and a description is three
    hundred times as long as the shortest wrong item of a body. Of very many, this says only how many there are.
    """
    count, errors = _count_of(error), getattr(error, "errors", None)
    if errors is None:
        return [("", str(error), None)]
    if count > MODEL_FAULTS_MAX:
        return [("", f"{count} parts of it are wrong", None)]
    return [
        (_place(each["loc"]), each["msg"], each["input"] if type(each["input"]) in _SHOWN else None)
        for each in errors(include_url=False, include_context=False)[:FAULTS_MAX]
    ]


def _count_of(error: ValueError) -> int:
    count: Callable[[], int] | None = getattr(error, "error_count", None)
    return 0 if count is None else count()


def _place(parts: Iterable[str | int]) -> str:
    """As msgspec writes it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")


def is_no_json(error: ValueError) -> str | None:
    """Why a body is not JSON, if that is what pydantic found."""
    if _count_of(error) != 1:
        return None
    (found,) = error.errors(include_url=False)  # type: ignore[attr-defined]
    return str(found["msg"]) if found["type"] == "json_invalid" else None


def decode_model(kind: type, value: Any) -> Any:
    """For decoders of msgspec: a model inside another value. Raises `ValueError`."""
    if not is_model(kind):
        raise NotImplementedError(f"no input can be converted to {kind.__name__}")
    return validated(_validator(kind), value)


def validated(validate: Callable[[bytes], Any], value: Any) -> Any:
    """A value that JSON can express, as `json_validator` reads it. Raises `ValueError`."""
    try:
        return validate(msgspec.json.encode(value))
    except ValueError as error:
        told = (f"{place}: {reason}" if place else reason for place, reason, _ in problems_of(error))
        raise ValueError("; ".join(told)) from error


def encode_model(value: Any) -> Any:
    """For encoders of msgspec: what pydantic makes of a model for JSON, by the aliases that it is read with.

    Raises `TypeError` for anything but a model.
    """
    if isinstance(value, type) or not hasattr(value, "__pydantic_serializer__"):
        raise TypeError(f"{type(value).__name__} is not JSON-able")
    return value.__pydantic_serializer__.to_python(value, mode="json", by_alias=True)


def _adapter(annotation: Any) -> Any:
    pydantic: Any = sys.modules["pydantic"]
    try:
        return pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(str(error).splitlines()[0]) from error


@lru_cache(maxsize=1_024)
def _validator(kind: type) -> Callable[[bytes], Any]:
    return json_validator(kind)
