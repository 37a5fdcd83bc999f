"""One operation: what a route takes, and what it answers, as its annotations tell."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Iterator
from typing import Any

from .._requests.forms import Upload
from .._responses.problems import PROBLEM
from .._responses.response import BYTES, JSON, TEXT, Response
from .._routing.parameters import parameters_of
from .._routing.patterns import Parameter as PathParameter
from .._routing.routes import Route, is_handler
from .._routing.sources import Parameter
from .._sql.queries import Query
from .._sql.rows import Rows
from .._validation.annotations import EMPTY, bare, hints_of, members, without_none
from .._validation.converters import item_of_list
from .._waits.message import History, Message
from .._waits.wait import Wait
from .._wire import payloads as p
from ..errors import phrase
from .schemas import Schema, reference

_SHOWN_DEFAULTS = (bool, int, float, str)
_WITH_BODY = ("POST", "PUT", "PATCH")
_KINDS: dict[str, dict[str, Any]] = {
    "str": {"type": "string", "minLength": 1},
    "path": {"type": "string", "minLength": 1},
    "int": {"type": "integer", "minimum": -(10**18) + 1, "maximum": 10**18 - 1},
    "float": {"type": "number"},
    "uuid": {"type": "string", "format": "uuid"},
}


def operation(route: Route, method: str, id: str) -> dict[str, Any]:
    """The Operation Object of a route's method."""
    arguments = _arguments(route) if is_handler(route.target) else []
    streams = route.streaming is not None
    has_form = method in _WITH_BODY and not streams and not any(argument.place == "body" for argument in arguments)
    described: dict[str, Any] = {"operationId": id}
    described |= _told_by_docstring(route.target)
    if route.about.tag is not None:
        described["tags"] = [route.about.tag]
    parameters = _path_parameters(route, arguments) + [
        _parameter(argument)
        for argument in arguments
        if argument.place in ("header", "cookie") or (argument.place == "field" and not has_form)
    ]
    if parameters:
        described["parameters"] = parameters
    body: dict[str, Any] | None = {"content": {BYTES: {}}} if streams else _body(arguments, has_form)
    if body is not None:
        described["requestBody"] = body
    described["responses"] = _responses(route, arguments, body is not None and not streams)
    return described


def _arguments(route: Route) -> list[Parameter]:
    """What the handler takes, but for the request itself."""
    found = parameters_of(route.target, route.pattern.names, route.pattern.types)
    return [argument for argument in found if argument.place != "request"]


def _kind(argument: Parameter) -> Any:
    return without_none(argument.annotation)[0]


def _is_list(argument: Parameter) -> bool:
    return item_of_list(bare(_kind(argument))) is not None


def _told_by_docstring(target: Any) -> dict[str, str]:
    text = inspect.getdoc(target) if inspect.isroutine(target) else None
    if not text:
        return {}
    summary, _, rest = text.partition("\n\n")
    told = {"summary": " ".join(summary.split())}
    return told | {"description": rest.strip()} if rest.strip() else told


# What it takes


def _path_parameters(route: Route, arguments: list[Parameter]) -> list[dict[str, Any]]:
    """Those of the pattern, whether the handler takes them or not: a client has to send them."""
    taken = {argument.name: argument for argument in arguments if argument.place == "path"}
    found = []
    for segment in route.pattern.segments:
        if isinstance(segment, PathParameter):
            own = _KINDS[segment.kind]
            argument = taken.get(segment.name)
            is_told = argument is not None and argument.annotation is not EMPTY
            schema: Any = Schema(_kind(argument)) if argument is not None and is_told else own
            if is_told and segment.kind in ("str", "path") and bare(schema.annotation) is str:
                schema = Schema(schema.annotation, own)  # an empty segment is another path
            if is_told and segment.kind == "int" and bare(schema.annotation) is int:
                schema = Schema(schema.annotation, own)  # more digits are another path
            found.append({"name": segment.name, "in": "path", "required": True, "schema": schema})
    return found


def _parameter(argument: Parameter) -> dict[str, Any]:
    where = {"field": "query"}.get(argument.place, argument.place)
    told = {"name": argument.name_in_request, "in": where, "schema": _schema(argument)}
    return told | {"required": True} if argument.is_required and not _is_list(argument) else told


def _schema(argument: Parameter) -> Any:
    if argument.place == "file":
        one = {"type": "string", "contentMediaType": BYTES}
        return {"type": "array", "items": one} if _is_list(argument) else one
    if argument.annotation is EMPTY:
        return {"type": "string"}
    default = argument.default
    return Schema(_kind(argument), {"default": default} if type(default) in _SHOWN_DEFAULTS else {})


def _body(arguments: list[Parameter], has_form: bool) -> dict[str, Any] | None:
    for argument in arguments:
        if argument.place == "body":
            kind = bare(_kind(argument))
            if kind in (str, EMPTY):
                text: Any = {"type": "string"} if kind is EMPTY else Schema(_kind(argument))
                content: dict[str, Any] = {TEXT.partition(";")[0]: {"schema": text}}
            elif kind is bytes:
                content = {BYTES: {}}
            else:
                content = {JSON: {"schema": Schema(_kind(argument))}}
            # An empty text is a text, so a body that is text is never missing.
            is_required = argument.is_required and kind not in (str, bytes, EMPTY)
            return {"required": is_required, "content": content}
    fields = [argument for argument in arguments if argument.place in ("field", "file")]
    if not has_form or not fields:
        return None
    needed = [argument.name for argument in fields if argument.is_required and not _is_list(argument)]
    schema = {"type": "object", "properties": {argument.name: _schema(argument) for argument in fields}}
    media = {"schema": schema | ({"required": needed} if needed else {})}
    content = {"multipart/form-data": media}
    if not any(argument.place == "file" for argument in fields):
        content = {"application/x-www-form-urlencoded": media} | content
    return {"required": bool(needed), "content": content}


# What it answers


def _responses(route: Route, arguments: list[Parameter], has_body: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_known = True
    for status, content in _contents(route):
        is_known = is_known and status is not None
        if status is not None:
            found[str(status)] = _response(status, content)
    if any(argument.place != "path" for argument in arguments) or _is_converted(route, arguments):
        found["422"] = {"description": "A parameter or the body is invalid", "content": _INVALID}
    if has_body:
        found["400"] = {"description": "The body cannot be read", "content": _FAILED}
        found["415"] = {"description": "The content type of the body is not supported", "content": _FAILED}
    if route.pattern.names:
        found["404"] = {"description": phrase(404), "content": _FAILED}
    for status, told in route.about.responses.items():
        found[str(status)] = {"description": told} if isinstance(told, str) else _response(status, _content(told))
    if not is_known and all(status >= 400 for status in route.about.responses):
        found["default"] = {"description": "What the handler decides"}
    return dict(sorted(found.items()))


def _response(status: int, content: dict[str, Any] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"description": phrase(status)}
    return told | {"content": content} if content else told


def _is_converted(route: Route, arguments: list[Parameter]) -> bool:
    return any(argument.place == "path" and bare(_kind(argument)) is not str for argument in arguments)


def _contents(route: Route) -> list[tuple[int | None, dict[str, Any] | None]]:
    """The statuses that it is known to answer with, and their contents; None for one that its code decides."""
    target = route.target
    if isinstance(target, Response):
        media = target.headers.get("content-type", _media_of(target.body))
        return [(target.status or 200, {media: {}} if media and target.body is not None else None)]
    if isinstance(target, Wait):
        return _contents_of_wait(target)
    called = target if inspect.isroutine(target) else type(target).__call__
    told = hints_of(called).get("return", EMPTY)
    kinds = members(told)
    found: list[tuple[int | None, dict[str, Any] | None]] = []
    values = [kind for kind in kinds if bare(kind) is not type(None)]
    if any(_decides(kind) for kind in values):
        found.append((None, None))
        values = [kind for kind in values if not _decides(kind)]
        kinds = tuple(kind for kind in kinds if not _decides(kind))
    if any(_is_open(kind) for kind in values):
        found.append((None, None))
    if values:
        contents = [_content(kind) for kind in values]
        merged = {media: one for content in contents if content for media, one in content.items()}
        # A member that may be anything, as Response, says that nothing is certain.
        found.append((200, merged if len(values) == 1 or _is_json_alone(values) else None))
        if len(values) > 1 and _is_json_alone(values):
            found[-1] = (200, {JSON: {"schema": {"anyOf": [Schema(kind) for kind in values]}}})
    if len(values) < len(kinds):
        found.append((204, None))
    return found


def _is_open(kind: Any) -> bool:
    """Whether a value of that type may be answered with any status."""
    origin = typing.get_origin(bare(kind)) or bare(kind)
    return origin in (EMPTY, Any, object) or (isinstance(origin, type) and issubclass(origin, Wait))


def _decides(kind: Any) -> bool:
    """Whether a value of that type has a status of its own."""
    origin = typing.get_origin(bare(kind)) or bare(kind)
    return isinstance(origin, type) and issubclass(origin, Response)


def _is_json_alone(kinds: list[Any]) -> bool:
    return all((_content(kind) or {}).keys() == {JSON} for kind in kinds)


def _contents_of_wait(wait: Wait) -> list[tuple[int | None, dict[str, Any] | None]]:
    if wait._function is not None:
        return [(200, None)]
    match wait._wait:
        case p.Query(options=p.QueryOptions(shape="rows")) | p.AllOf() | p.FirstOf():
            return [(200, {JSON: {}})]
        case p.Query():
            return [(200, {JSON: {}}), (404, _FAILED)]
        case p.Stream():
            return [(200, {"text/event-stream": {}})]
        case p.File() | p.Files():
            return [(200, None)]
        case p.Next():
            return [(200, None), (204, None)]
        case _:
            return [(204 if wait._response is None else 200, None)]


def _content(kind: Any) -> dict[str, Any] | None:
    """What a returned value of that type is sent as; None where that is not known."""
    plain = bare(kind)
    origin = typing.get_origin(plain) or plain
    if plain in (EMPTY, Any, object):
        return None
    if isinstance(origin, type):
        if issubclass(origin, Response | Wait | Query | Message | History) or origin is Upload:
            return None
        if issubclass(origin, Rows):
            return {JSON: {"schema": {"type": "array", "items": {"type": "object"}}}}
        if issubclass(origin, str) and origin is str:
            return {TEXT.partition(";")[0]: {"schema": {"type": "string"}}}
        if origin in (bytes, bytearray, memoryview):
            return {BYTES: {}}
        if issubclass(origin, Iterator | AsyncIterator) or origin.__module__ == "collections.abc":
            pieces = typing.get_args(plain)[:1]
            return {BYTES if pieces == (bytes,) else TEXT.partition(";")[0]: {}}
    return {JSON: {"schema": Schema(kind)}}


def _media_of(body: object) -> str | None:
    return TEXT if isinstance(body, str) else BYTES if isinstance(body, bytes) else None if body is None else JSON


_INVALID_PART = {
    "type": "object",
    "required": ["name", "where", "reason"],
    "properties": {
        "name": {"type": "string"},
        "where": {"enum": ["path", "query", "header", "cookie", "form", "body"]},
        "reason": {"type": "string"},
        "value": {},
    },
}
PROBLEMS: dict[str, dict[str, Any]] = {
    "parkade.Problem": {
        "title": "Problem",
        "description": "An error (RFC 9457)",
        "type": "object",
        "required": ["title", "status", "detail", "fault"],
        "properties": {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "fault": {"enum": ["client", "application", "worker", "server", "operator"]},
        },
    },
    "parkade.Invalid": {
        "title": "Invalid",
        "description": "What is invalid in a request",
        "allOf": [reference("parkade.Problem")],
        "required": ["parameters"],
        "properties": {"parameters": {"type": "array", "items": _INVALID_PART}},
    },
}
"""The components that operations refer to."""

_INVALID = {PROBLEM: {"schema": reference("parkade.Invalid")}}
_FAILED = {PROBLEM: {"schema": reference("parkade.Problem")}}
