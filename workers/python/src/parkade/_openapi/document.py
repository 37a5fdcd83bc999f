"""The whole document, and the routes that give it and its page."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from .._responses.encoding import json_encode
from .._responses.response import JSON, Response, html
from .._routing.patterns import Parameter as PathParameter
from .._routing.patterns import Pattern
from .._routing.routes import Route
from .operations import PROBLEMS, operation
from .schemas import resolved


@dataclass(frozen=True, slots=True)
class Settings:
    """What the application says of itself, and where the document and its page are."""

    title: str
    version: str
    description: str
    path: str
    page: str | None


# OpenAPI 3.1 has no words for other methods, such as QUERY.
_METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"})


def document(
    settings: Settings, routes: Sequence[Route], jobs_pattern: Pattern | None, mount: str = ""
) -> dict[str, Any]:
    """The OpenAPI Object. `mount`: the prefix that clients put before all paths.

    Of two routes whose paths differ only in the kinds of their parameters, the first is told.
    """
    paths: dict[str, dict[str, Any]] = {}
    names: dict[tuple[str, ...], tuple[str, ...]] = {}  # of the parameters, by the path without them
    ids: set[str] = set()

    def add(pattern: Pattern, method: str, id: str, describe: Callable[[str], dict[str, Any]]) -> None:
        shape = tuple("{}" if isinstance(segment, PathParameter) else segment for segment in pattern.segments)
        told = names.setdefault(shape, pattern.names)
        operations = paths.setdefault(_template(shape, told), {})
        if method not in operations:
            described = describe(_unused(id, ids))
            operations[method] = _renamed(described, dict(zip(pattern.names, told, strict=True)))

    for route in routes:
        for method in () if route.about.hidden else route.methods:
            if method in _METHODS:
                add(route.pattern, method.lower(), _id(route, method.lower()), partial(operation, route, method))
    if jobs_pattern is not None:
        for method, id in (("get", "job"), ("delete", "job.cancel")):
            add(jobs_pattern, method, id, partial(_job_operation, method))
    made, components = resolved({path: operations for path, operations in paths.items() if operations})
    info = {"title": settings.title, "version": settings.version}
    info |= {"description": settings.description} if settings.description else {}
    servers = {"servers": [{"url": mount}]} if mount else {}
    whole = {"openapi": "3.1.0", "info": info} | servers | {"paths": made}
    tags = dict.fromkeys(route.about.tag for route in routes if route.about.tag and not route.about.hidden)
    whole |= {"tags": [{"name": tag} for tag in tags]} if tags else {}
    written = json_encode(made)
    components |= {name: told for name, told in PROBLEMS.items() if b"parkade." in written}
    return whole | ({"components": {"schemas": components}} if components else {})


def response(made: dict[str, Any]) -> Response:
    """The document as a response."""
    return Response(json_encode(made), headers={"content-type": JSON})


def page(settings: Settings, mount: str = "") -> Response:
    """The page that shows the document. It needs nothing from elsewhere, and its headers allow nothing from there."""
    text = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    allowed = "; ".join(
        f"{name} '{_hash(text, tag)}'" for name, tag in (("script-src", "script"), ("style-src", "style"))
    )
    policy = f"default-src 'none'; connect-src 'self'; {allowed}; base-uri 'none'; frame-ancestors 'none'"
    text = text.replace("%title%", escape(settings.title)).replace("%path%", escape(mount + settings.path))
    return html(text, headers={"content-security-policy": policy, "x-content-type-options": "nosniff"})


def _hash(text: str, tag: str) -> str:
    content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return "sha256-" + b64encode(sha256(content.encode()).digest()).decode()


def _template(shape: tuple[str, ...], names: tuple[str, ...]) -> str:
    left = iter(names)
    return "/" + "/".join(f"{{{next(left)}}}" if segment == "{}" else segment for segment in shape)


def _id(route: Route, method: str) -> str:
    if route.name == route.pattern.path:  # it has no name of its own
        return re.sub(r"\W+", "_", f"{method}{route.pattern.path}").strip("_")
    return route.name if len(route.methods) == 1 else f"{route.name}.{method}"


def _unused(id: str, ids: set[str]) -> str:
    number, found = 1, id
    while found in ids:
        number, found = number + 1, f"{id}.{number + 1}"
    ids.add(found)
    return found


def _renamed(described: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """With the names that the path's parameters have in the template."""
    for parameter in described.get("parameters", ()):
        if parameter["in"] == "path":
            parameter["name"] = names[parameter["name"]]
    return described


def _job_operation(method: str, id: str) -> dict[str, Any]:
    return {"operationId": id, "tags": ["jobs"], "parameters": [dict(_JOB_ID)], **_JOBS[method]}


_JOB_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
_JOBS: dict[str, Any] = {
    "get": {
        "summary": "The result of a job, or its state",
        "responses": {
            "200": {"description": "What the job returned"},
            "202": {"description": "It has not ended yet", "content": {JSON: {"schema": {"type": "object"}}}},
            "204": {"description": "It returned nothing"},
            "404": {"description": "There is no such job"},
            "default": {"description": "It failed, or was cancelled"},
        },
    },
    "delete": {
        "summary": "Cancels a job",
        "responses": {
            "200": {"description": "It is cancelled", "content": {JSON: {"schema": {"type": "object"}}}},
            "404": {"description": "There is no such job"},
            "default": {"description": "It has ended already"},
        },
    },
}
