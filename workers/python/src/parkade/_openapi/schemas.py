"""JSON Schemas of annotations: those of msgspec, and of pydantic where the application uses it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .._validation.models import is_model


@dataclass(frozen=True, slots=True)
class Schema:
    """Stands in a description for the schema of an annotation, until all annotations are known. `also`: keywords that
    hold besides; of two limits the stricter one.
    """

    annotation: Any
    also: Mapping[str, Any] = field(default_factory=dict)


def resolved(description: Any) -> tuple[Any, dict[str, Any]]:
    """A description with schemas in the place of each `Schema`, and the components that they refer to.

    All are made at once, so that classes of the same name in different modules get different names.
    """
    schemas = list(_schemas_in(description))
    plain = [schema for schema in schemas if _is_known(schema.annotation)]
    made, components = msgspec.json.schema_components(
        [schema.annotation for schema in plain], ref_template=_REFERENCE + "{name}"
    )
    found: dict[int, Any] = {id(schema): value for schema, value in zip(plain, made, strict=True)}
    for schema in schemas:
        if id(schema) not in found:
            found[id(schema)] = _by_pydantic(schema.annotation, components)
        found[id(schema)] = _both(found[id(schema)], schema.also)
    return _replaced(description, found), components


def reference(name: str) -> dict[str, str]:
    """A schema that stands among the components."""
    return {"$ref": _REFERENCE + name}


def _both(schema: dict[str, Any], also: Mapping[str, Any]) -> dict[str, Any]:
    strict: dict[str, Callable[[Any, Any], Any]] = {"minLength": max, "minimum": max, "maximum": min}
    return schema | {
        name: strict[name](value, schema[name]) if name in strict and name in schema else value
        for name, value in also.items()
    }


_REFERENCE = "#/components/schemas/"


def _schemas_in(description: Any) -> Iterator[Schema]:
    if isinstance(description, Schema):
        yield description
    elif isinstance(description, dict | list):
        for part in description.values() if isinstance(description, dict) else description:
            yield from _schemas_in(part)


def _replaced(description: Any, found: dict[int, Any]) -> Any:
    if isinstance(description, Schema):
        return found[id(description)]
    if isinstance(description, dict):
        return {name: _replaced(part, found) for name, part in description.items()}
    if isinstance(description, list):
        return [_replaced(part, found) for part in description]
    return description


def _is_known(annotation: Any) -> bool:
    try:
        msgspec.json.schema(annotation)
    except (TypeError, RuntimeError):
        return False
    return True


def _by_pydantic(annotation: Any, components: dict[str, Any]) -> Any:
    """An empty schema, which allows everything, for what nobody can describe."""
    if "pydantic" not in sys.modules:
        return {}
    try:
        adapter = importlib.import_module("pydantic").TypeAdapter(annotation)
        made: dict[str, Any] = adapter.json_schema(ref_template=_REFERENCE + "{model}")
    except Exception:  # pydantic has many errors for it
        return {}
    components.update(made.pop("$defs", {}))
    if is_model(annotation) and "$ref" not in made and components.setdefault(annotation.__name__, made) == made:
        return reference(annotation.__name__)
    return made
