"""Gives a handler its arguments by name and annotation. A signature is compiled once, when the application loads.

A parameter is, by the first of these that fits: in the path pattern; annotated `Request`; annotated with `Header` or
`Cookie`; named `body`, or annotated with a dataclass, `msgspec.Struct`, `TypedDict`, `dict` or pydantic model (the
body, one at most); annotated `Upload` (a form's file, or a list of them); else a field, of the form when the request
has one, then of the query.

The handler of a WebSocket also has a parameter for that: named `socket`, or annotated `WebSocket`. There is no body.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .._requests.request import Request
from .._validation.annotations import EMPTY, hints_of, name_of, without_none
from .._validation.converters import Convert, converter
from .._wire import payloads as p
from ..errors import InvalidParameter, SignatureError
from .sources import Parameter, Problem, Take, place_of, source

Call = Callable[[p.Request, Request | None], Any]
"""A bound handler: takes the request as it came, and the `Request` if one was made already."""


def bind(
    handler: Callable[..., Any],
    names: Sequence[str],
    types: Sequence[type],
    make: Callable[[p.Request], Request],
    optional: Collection[str] = (),
    streams: bool = False,
    is_socket: bool = False,
) -> Call:
    """Compiles a handler, `is_socket` one of a WebSocket.

    `names` are its path's parameters in order, `types` what the pattern says they are, for those without an annotation.
    The handler need not take those that are `optional`. If its route `streams`, it takes nothing that is in the body.

    Raises `SignatureError` for a parameter that no request has, and for a path parameter that the handler does not
    take.
    """
    parameters = parameters_of(handler, names, types)
    told = _told(handler)
    if is_socket:
        parameters = [_of_socket(told, each) for each in parameters]
        if not any(each.place == "socket" for each in parameters):
            raise SignatureError(f"{told} takes no WebSocket: give it a parameter `socket: WebSocket`")
    elif named := [each.name for each in parameters if each.place == "socket"]:
        raise SignatureError(f"{told}: only a handler of app.websocket gets a WebSocket (the parameter {named[0]})")
    taken = {each.name for each in parameters}
    if missing := [name for name in names if name not in taken and name not in optional]:
        raise SignatureError(f"{told} has no parameter for {', '.join(missing)} in the path")
    bodies = [each.name for each in parameters if each.place == "body"]
    if streams and (whole := [each.name for each in parameters if each.place in ("body", "file")]):
        raise SignatureError(
            f"{told}: {' and '.join(whole)} needs the whole body, but the route has stream=True: take the request, and "
            "read request.stream()"
        )
    if len(bodies) > 1:
        raise SignatureError(f"{told}: {' and '.join(bodies)} cannot both be the body")
    if [each.name for each in parameters] == list(names):
        return _path_only(handler, parameters, [_path_convert(told, each) for each in parameters])
    takes = [
        (each.name, _from_path(each.name, _path_convert(told, each)) if each.place == "path" else source(told, each))
        for each in parameters
    ]
    positional = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    return _general(handler, takes, len(positional), make)


def _of_socket(told: str, parameter: Parameter) -> Parameter:
    """As the handler of a WebSocket has it."""
    if parameter.name == "socket" and parameter.place == "field" and parameter.annotation is EMPTY:
        return replace(parameter, place="socket")
    if parameter.place in ("body", "file"):
        raise SignatureError(f"{told}: a request for a WebSocket has no body (the parameter {parameter.name})")
    return parameter


def parameters_of(handler: Callable[..., Any], names: Sequence[str], types: Sequence[type]) -> list[Parameter]:
    """The parameters of a handler, and where in a request each is found. Raises `SignatureError`."""
    return list(_parameters(handler, dict(zip(names, types, strict=True))))


def _parameters(handler: Callable[..., Any], in_path: dict[str, type]) -> Iterator[Parameter]:
    try:
        hints = hints_of(handler if inspect.isroutine(handler) else type(handler).__call__)
    except NameError as error:
        raise SignatureError(f"{_told(handler)}: {error}; annotations are read when the application loads") from None
    for name, parameter in inspect.signature(handler).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise SignatureError(
                f"{_told(handler)} takes {parameter}: parameters are passed by name, so each must be declared"
            )
        annotation = hints.get(name, EMPTY)
        if annotation is EMPTY:
            annotation = in_path.get(name, _type_of(parameter.default))
        place = "path" if name in in_path else place_of(name, annotation)
        yield Parameter(name, place, annotation, parameter.default, parameter.kind)


def _type_of(default: Any) -> Any:
    """The type of a parameter without an annotation: that of its default, `n=5`, where text can become that."""
    if default is EMPTY or default is None or converter(type(default)) is None:
        return EMPTY
    return type(default)


def _told(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__qualname__', repr(handler))}{inspect.signature(handler)}"


def _path_convert(told: str, parameter: Parameter) -> Convert:
    annotation, _ = without_none(parameter.annotation)
    try:
        convert = converter(annotation)
    except TypeError as error:
        raise SignatureError(f"{told}: {error} (the parameter {parameter.name})") from None
    if convert is None:
        raise SignatureError(f"{told}: a path's parameter cannot be {name_of(annotation)}")
    return convert


def _path_only(handler: Callable[..., Any], parameters: list[Parameter], converts: list[Convert]) -> Call:
    """Binds the most common kind of handler: one that takes only path parameters, and needs no `Request`."""
    names = tuple(each.name for each in parameters)
    if any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters):
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
            problems.extend(Problem(name, "path", str(error), value).told)
    if problems:
        raise InvalidParameter(problems)
    return found


def _general(
    handler: Callable[..., Any], takes: list[tuple[str, Take]], positional: int, make: Callable[[p.Request], Request]
) -> Call:
    def call(raw: p.Request, request: Request | None) -> Any:
        if request is None:
            request = make(raw)
        values: dict[str, Any] = {}
        problems: list[dict[str, object]] = []
        for name, take in takes:
            try:
                values[name] = take(request)
            except Problem as problem:
                problems.extend(problem.told)
        if problems:
            raise InvalidParameter(problems)
        if positional:
            first = [values.pop(name) for name, _ in takes[:positional]]
            return handler(*first, **values)
        return handler(**values)

    return call


def _from_path(name: str, convert: Convert) -> Take:
    def take(request: Request) -> Any:
        value = request.parameters[name]
        try:
            return convert(value)
        except ValueError as error:
            raise Problem(name, "path", str(error), value) from error

    return take
