"""JSON Schemas of annotations: those of msgspec, and of pydantic where the application uses it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from .._validation.models import is_pydantic


@dataclass(frozen=True, slots=True)
class Schema:
    """Stands in a description for the schema of an annotation, until all annotations are known. `also`: keywords that
    hold besides; of two limits the stricter one.
    """

    annotation: Any
    also: Mapping[str, Any] = field(default_factory=dict)


def resolved(description: Any) -> tuple[Any, dict[str, Any]]:
    """A description with schemas in the place of each `Schema`, and the components that they refer to.

    All are made together, so that classes of the same name in different modules get different names.
    """
    schemas = list(_schemas_in(description))
    plain = [one for one in schemas if not is_pydantic(one.annotation) and _is_known(one.annotation)]
    made, components = _by_msgspec(plain)
    made |= _by_pydantic([schema for schema in schemas if id(schema) not in made], components)
    found = {id(schema): _both(made.get(id(schema), {}), schema.also) for schema in schemas}
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


_Made: TypeAlias = dict[int, dict[str, Any]]
"""By the `id` of a `Schema`. One that is missing has the empty schema, which allows everything."""


def _by_msgspec(schemas: list[Schema]) -> tuple[_Made, dict[str, Any]]:
    made, components, number = dict[int, dict[str, Any]](), dict[str, Any](), 1
    while schemas:
        group, schemas = _nameable(schemas)
        template = _REFERENCE + ("{name}" if number == 1 else f"{{name}}-{number}")
        found, own = _components([schema.annotation for schema in group], template)
        made |= {id(schema): value for schema, value in zip(group, found, strict=True)}
        components |= {name if number == 1 else f"{name}-{number}": value for name, value in own.items()}
        number += 1
    return made, components


def _nameable(schemas: list[Schema]) -> tuple[list[Schema], list[Schema]]:
    """Those for whose classes msgspec has different names, and the others: it has one name for `Page[a.Item]` and
    `Page[b.Item]`, and for two classes that functions of a module have made under the same name.
    """
    if _is_known(*(schema.annotation for schema in schemas)):
        return schemas, []
    group: list[Schema] = []
    for schema in schemas:
        if _is_known(*(one.annotation for one in group), schema.annotation):
            group.append(schema)
    return group, [schema for schema in schemas if not any(schema is one for one in group)]


def _is_known(*annotations: Any) -> bool:
    """Whether msgspec describes these together."""
    try:
        _components(annotations, _REFERENCE)
    except (TypeError, RuntimeError, KeyError):  # KeyError: two classes have the same name
        return False
    return True


def _components(annotations: Iterable[Any], template: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    return msgspec.json.schema_components(annotations, ref_template=template)


def _by_pydantic(schemas: list[Schema], components: dict[str, Any]) -> _Made:
    """Adds the components that they need."""
    if "pydantic" not in sys.modules or not schemas:
        return {}
    adapter: Any = importlib.import_module("pydantic").TypeAdapter
    adapters = [(id(schema), "validation", made) for schema in schemas if (made := _described(adapter, schema))]
    template = _REFERENCE + "{model}"
    found, whole = adapter.json_schemas(adapters, ref_template=template)
    if components.keys() & whole.get("$defs", {}).keys():  # classes of msgspec have these names
        found, whole = adapter.json_schemas(adapters, ref_template=_REFERENCE + "pydantic.{model}")
        components |= {f"pydantic.{name}": value for name, value in whole["$defs"].items()}
    else:
        components |= whole.get("$defs", {})
    return {number: value for (number, _), value in found.items()}


def _described(adapter: Any, schema: Schema) -> Any:
    """What pydantic makes of an annotation; None if it cannot describe it."""
    try:
        made = adapter(schema.annotation)
        made.json_schema()
    except Exception:  # pydantic has many errors for it
        return None
    return made
