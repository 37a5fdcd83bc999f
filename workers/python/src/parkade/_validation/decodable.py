"""Which types a value from outside can become. Any other is refused when the application loads: a decoder would accept
it, and then blame everyone that sends a value.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from .annotations import is_record, name_of, parts_in
from .constraints import is_constraint
from .models import is_model
from .records import kinds_in


def check_decodable(annotation: Any) -> None:
    """Raises `TypeError` for a type with a class in it that nothing can become, or with a demand that nothing enforces.

    Not for types that pydantic decodes as a whole.
    """
    for kind in kinds_in(annotation):
        if isinstance(kind, inspect.CustomType):
            _check_class(kind.cls)
        elif isinstance(kind, inspect.DataclassType) and is_model(kind.cls):
            raise TypeError(
                f"pydantic would not check {name_of(kind.cls)} there: make the type that contains it a model, too"
            )
    for kind, added in parts_in(annotation, is_record):
        for each in filter(is_constraint, added):
            raise TypeError(f"{each!r} of {name_of(kind)} would not be enforced: write msgspec.Meta(…)")


def _check_class(kind: type) -> None:
    if kind is not object and not is_model(kind):
        raise TypeError(
            f"no input can be converted to {name_of(kind)}: write a dataclass, a msgspec.Struct, a TypedDict or a "
            "pydantic model"
        )
