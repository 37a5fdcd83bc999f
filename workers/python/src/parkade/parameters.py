"""Gives a handler its arguments by name and annotation. A signature is compiled once, when the application loads.

A parameter is, by the first of these that fits: in the path pattern; annotated `Request`; named `body`, or annotated
with a dataclass, `msgspec.Struct`, `TypedDict` or `dict` (the body, one at most); annotated `Upload` (a form's file);
else a field, of the form when the request has one, then of the query.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ._wire import payloads as p
from .converters import Convert, converter, item_of_list, without_none
from .errors import HTTPError, InvalidParameter, SignatureError
from .forms import Upload, is_form
from .request import Request

Call = Callable[[p.Request, Request | None], Any]
"""A handler, bound: takes the request as it came, and as a `Request` if somebody has made one already."""


def bind(
    handler: Callable[..., Any], names: Sequence[str], types: Sequence[type], make: Callable[[p.Request], Request]
) -> Call:
    """Compiles a handler.

    `names` are its path's parameters in order, `types` what the pattern says they are, for those without an annotation.

    Raises `SignatureError` for a parameter that nobody can give, and for a path parameter that the handler does not
    take.
    """
    parameters = _parameters(handler)
    if missing := [name for name in names if name not in parameters]:
        raise SignatureError(f"{_told(handler)} lacks the path's parameter {', '.join(missing)}")
    if tuple(parameters) == tuple(names):
        converts = [_path_convert(handler, parameters[name], kind) for name, kind in zip(names, types, strict=True)]
        return _path_only(handler, tuple(names), converts, parameters)
    takes = []
    for name, (annotation, default, _) in parameters.items():
        if name in names:
            at = list(names).index(name)
            takes.append((name, _from_path(name, _path_convert(handler, parameters[name], types[at]))))
        else:
            takes.append((name, _source(handler, name, annotation, default)))
    _check_one_body(handler, parameters, names)
    positional = [name for name, (_, _, kind) in parameters.items() if kind is inspect.Parameter.POSITIONAL_ONLY]
    return _general(handler, takes, len(positional), make)


_Parameter = tuple[Any, Any, Any]  # annotation, default, kind
_Take = Callable[[Request], Any]
_EMPTY = inspect.Parameter.empty


class _Problem(Exception):
    """One parameter that is wrong or missing."""

    def __init__(self, name: str, where: str, reason: str, value: object = None) -> None:
        super().__init__(reason)
        self.told = {"name": name, "where": where, "reason": reason, "value": value}


def _parameters(handler: Callable[..., Any]) -> dict[str, _Parameter]:
    try:
        hints = typing.get_type_hints(handler if inspect.isroutine(handler) else type(handler).__call__)
    except NameError as error:
        raise SignatureError(f"{_told(handler)}: {error}; annotations are read when the application loads") from error
    parameters = {}
    for name, parameter in inspect.signature(handler).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise SignatureError(
                f"{_told(handler)} takes {parameter}: parameters are given by name, so each must be written"
            )
        parameters[name] = (hints.get(name, _EMPTY), parameter.default, parameter.kind)
    return parameters


def _told(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__qualname__', repr(handler))}{inspect.signature(handler)}"


def _path_convert(handler: Callable[..., Any], parameter: _Parameter, kind: type) -> Convert:
    annotation = kind if parameter[0] is _EMPTY else without_none(parameter[0])[0]
    convert = converter(annotation)
    if convert is None:
        raise SignatureError(f"{_told(handler)}: a path's parameter cannot be {annotation!r}")
    return convert


def _path_only(
    handler: Callable[..., Any], names: tuple[str, ...], converts: list[Convert], parameters: dict[str, _Parameter]
) -> Call:
    """The commonest handler takes the path's parameters and nothing else; no `Request` is made for it."""
    if any(kind is inspect.Parameter.KEYWORD_ONLY for _, _, kind in parameters.values()):
        return lambda raw, request: handler(
            **dict(zip(names, _converted(names, converts, raw.parameters), strict=True))
        )
    if not names:
        return lambda raw, request: handler()
    if all(convert is str for convert in converts):
        if len(names) == 1:
            return lambda raw, request: handler(raw.parameters[0])
        return lambda raw, request: handler(*raw.parameters)
    return lambda raw, request: handler(*_converted(names, converts, raw.parameters))


def _converted(names: tuple[str, ...], converts: list[Convert], values: list[str]) -> list[Any]:
    found: list[Any] = []
    problems: list[dict[str, object]] = []
    for name, convert, value in zip(names, converts, values, strict=True):
        try:
            found.append(convert(value))
        except ValueError as error:
            problems.append(_Problem(name, "path", str(error), value).told)
    if problems:
        raise InvalidParameter(problems)
    return found


def _general(
    handler: Callable[..., Any], takes: list[tuple[str, _Take]], positional: int, make: Callable[[p.Request], Request]
) -> Call:
    def call(raw: p.Request, request: Request | None) -> Any:
        if request is None:
            request = make(raw)
        values: dict[str, Any] = {}
        problems: list[dict[str, object]] = []
        for name, take in takes:
            try:
                values[name] = take(request)
            except _Problem as problem:
                problems.append(problem.told)
        if problems:
            raise InvalidParameter(problems)
        if positional:
            first = [values.pop(name) for name, _ in takes[:positional]]
            return handler(*first, **values)
        return handler(**values)

    return call


def _from_path(name: str, convert: Convert) -> _Take:
    def take(request: Request) -> Any:
        value = request.parameters[name]
        try:
            return convert(value)
        except ValueError as error:
            raise _Problem(name, "path", str(error), value) from error

    return take


def _source(handler: Callable[..., Any], name: str, annotation: Any, default: Any) -> _Take:
    kind, optional = without_none(annotation)
    if default is _EMPTY and optional:
        default = None
    if kind is Request:
        return lambda request: request
    if _is_body(name, kind):
        return _from_body(handler, name, str if kind is _EMPTY else kind, default)
    if kind is Upload:
        return _from_files(name, default)
    item = item_of_list(kind)
    convert = converter(str if kind is _EMPTY else kind if item is None else item)
    if convert is None:
        raise SignatureError(f"{_told(handler)}: nothing in a request is {kind!r} (the parameter {name})")
    return _from_fields(name, convert, default) if item is None else _from_list(name, convert, default)


def _is_body(name: str, kind: Any) -> bool:
    return name == "body" or kind in (bytes, dict) or typing.get_origin(kind) is dict or _is_record(kind)


def _is_record(kind: Any) -> bool:
    kind = typing.get_origin(kind) or kind
    return (
        isinstance(kind, type)
        and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind))
        and kind is not Upload
    )


def _check_one_body(handler: Callable[..., Any], parameters: dict[str, _Parameter], names: Sequence[str]) -> None:
    bodies = [
        name for name, (kind, _, _) in parameters.items() if name not in names and _is_body(name, without_none(kind)[0])
    ]
    if len(bodies) > 1:
        raise SignatureError(f"{_told(handler)}: {' and '.join(bodies)} cannot both be the body")


# Fields of the query and of forms


def _from_fields(name: str, convert: Convert, default: Any) -> _Take:
    def take(request: Request) -> Any:
        value, where = _field(request, name)
        if value is None or (
            value == "" and default is None and convert is not str
        ):  # an empty field of an HTML form is none
            if default is _EMPTY:
                raise _Problem(name, where, "it is missing")
            return default
        try:
            return convert(value)
        except ValueError as error:
            raise _Problem(name, where, str(error), value) from error

    return take


def _from_list(name: str, convert: Convert, default: Any) -> _Take:
    def take(request: Request) -> Any:
        values, where = _field_list(request, name)
        if not values:
            return [] if default is _EMPTY else default
        try:
            return [convert(value) for value in values]
        except ValueError as error:
            raise _Problem(name, where, str(error), values) from error

    return take


def _from_files(name: str, default: Any) -> _Take:
    def take(request: Request) -> Any:
        value = request.form.get(name) if is_form(request.content_type) else None
        if isinstance(value, Upload) and (value.filename or value.body):
            return value
        if default is _EMPTY:
            raise _Problem(
                name,
                "form",
                "it is missing" if value is None else "a file is expected",
                value if isinstance(value, str) else None,
            )
        return default

    return take


def _field(request: Request, name: str) -> tuple[str | None, str]:
    values, where = _field_list(request, name)
    return (values[0] if values else None), where


def _field_list(request: Request, name: str) -> tuple[list[str], str]:
    if request.body and is_form(request.content_type):
        texts = [value for value in request.form.getlist(name) if isinstance(value, str)]
        if texts or name not in request.query:
            return texts, "form"
    return request.query.getlist(name), "query"


# The body


def _from_body(handler: Callable[..., Any], name: str, kind: Any, default: Any) -> _Take:
    if kind is bytes:
        return lambda request: request.body if request.body or default is _EMPTY else default
    if kind is str:
        return lambda request: request.text if request.body or default is _EMPTY else default
    try:
        decode = msgspec.json.Decoder(kind).decode
    except TypeError as error:
        raise SignatureError(
            f"{_told(handler)}: JSON cannot become {kind!r} (the parameter {name}): {error}"
        ) from error

    def take(request: Request) -> Any:
        if not request.body:
            if default is _EMPTY:
                raise _Problem(name, "body", "it is missing")
            return default
        if not _is_json(request.content_type):
            raise HTTPError(415, "the body must be application/json", {"accept": "application/json"})
        try:
            return decode(request.body)
        except msgspec.ValidationError as error:
            raise _problem_in_body(name, error) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HTTPError(400, f"the body is not JSON: {error}") from error

    return take


def _is_json(content_type: str) -> bool:
    """A body without a content type is taken for JSON, since the handler asks for that."""
    media = content_type.partition(";")[0].strip().lower()
    return media in ("", "application/json") or media.endswith("+json")


def _problem_in_body(name: str, error: msgspec.ValidationError) -> _Problem:
    """msgspec ends its text with the place, as in ``Expected `int`, got `str` - at `$.bid.amount` ``."""
    reason, _, place = str(error).partition(" - at `")
    path = place.rstrip("`").removeprefix("$").removeprefix(".")
    return _Problem(path or name, "body", reason)
