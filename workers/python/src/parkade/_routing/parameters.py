"""Gives a handler its arguments by name and annotation. A signature is compiled once, when the application loads.

A parameter is, by the first of these that fits: in the path pattern; annotated `Request`; named `body`, or annotated
with a dataclass, `msgspec.Struct`, `TypedDict` or `dict` (the body, one at most); annotated `Upload` (a form's file);
else a field, of the form when the request has one, then of the query.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any

from .._requests.request import Request
from .._validation.converters import Convert, converter, without_none
from .._wire import payloads as p
from ..errors import InvalidParameter, SignatureError
from .sources import EMPTY, Problem, Take, is_body, source

Call = Callable[[p.Request, Request | None], Any]
"""A bound handler: takes the request as it came, and the `Request` if one was made already."""


def bind(
    handler: Callable[..., Any],
    names: Sequence[str],
    types: Sequence[type],
    make: Callable[[p.Request], Request],
    optional: Collection[str] = (),
) -> Call:
    """Compiles a handler.

    `names` are its path's parameters in order, `types` what the pattern says they are, for those without an annotation.
    The handler need not take those that are `optional`.

    Raises `SignatureError` for a parameter that no request has, and for a path parameter that the handler does not
    take.
    """
    parameters = _parameters(handler)
    if missing := [name for name in names if name not in parameters and name not in optional]:
        raise SignatureError(f"{_told(handler)} has no parameter for {', '.join(missing)} in the path")
    if tuple(parameters) == tuple(names):
        converts = [_path_convert(handler, parameters[name], kind) for name, kind in zip(names, types, strict=True)]
        return _path_only(handler, tuple(names), converts, parameters)
    takes = []
    for name, (annotation, default, _) in parameters.items():
        if name in names:
            at = list(names).index(name)
            takes.append((name, _from_path(name, _path_convert(handler, parameters[name], types[at]))))
        else:
            takes.append((name, source(_told(handler), name, annotation, default)))
    _check_one_body(handler, parameters, names)
    positional = [name for name, (_, _, kind) in parameters.items() if kind is inspect.Parameter.POSITIONAL_ONLY]
    return _general(handler, takes, len(positional), make)


_Parameter = tuple[Any, Any, Any]  # annotation, default, kind


def _parameters(handler: Callable[..., Any]) -> dict[str, _Parameter]:
    try:
        hints = typing.get_type_hints(handler if inspect.isroutine(handler) else type(handler).__call__)
    except NameError as error:
        raise SignatureError(f"{_told(handler)}: {error}; annotations are read when the application loads") from error
    parameters = {}
    for name, parameter in inspect.signature(handler).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise SignatureError(
                f"{_told(handler)} takes {parameter}: parameters are passed by name, so each must be declared"
            )
        parameters[name] = (hints.get(name, EMPTY), parameter.default, parameter.kind)
    return parameters


def _told(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__qualname__', repr(handler))}{inspect.signature(handler)}"


def _path_convert(handler: Callable[..., Any], parameter: _Parameter, kind: type) -> Convert:
    annotation = kind if parameter[0] is EMPTY else without_none(parameter[0])[0]
    convert = converter(annotation)
    if convert is None:
        raise SignatureError(f"{_told(handler)}: a path's parameter cannot be {annotation!r}")
    return convert


def _path_only(
    handler: Callable[..., Any], names: tuple[str, ...], converts: list[Convert], parameters: dict[str, _Parameter]
) -> Call:
    """Binds the most common kind of handler: one that takes only path parameters, and needs no `Request`."""
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
            problems.append(Problem(name, "path", str(error), value).told)
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
                problems.append(problem.told)
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


def _check_one_body(handler: Callable[..., Any], parameters: dict[str, _Parameter], names: Sequence[str]) -> None:
    bodies = [
        name for name, (kind, _, _) in parameters.items() if name not in names and is_body(name, without_none(kind)[0])
    ]
    if len(bodies) > 1:
        raise SignatureError(f"{_told(handler)}: {' and '.join(bodies)} cannot both be the body")
