"""Finds a handler's parameters in the request: a function for each, which extracts and converts it."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from .._requests.forms import Upload, is_form
from .._requests.request import Request
from .._validation.converters import Convert, converter, item_of_list, without_none
from .._validation.json import json_decoder
from ..errors import HTTPError, SignatureError

Take = Callable[[Request], Any]
"""Gives a parameter's value. Raises `Problem`, or `HTTPError` when the whole body is of another kind."""

EMPTY = inspect.Parameter.empty


class Problem(Exception):
    """One parameter that is wrong or missing."""

    def __init__(self, name: str, where: str, reason: str, value: object = None) -> None:
        super().__init__(reason)
        self.told = {"name": name, "where": where, "reason": reason, "value": value}


def source(told: str, name: str, annotation: Any, default: Any) -> Take:
    """Makes the function for a parameter of the handler `told`, as errors name it. Raises `SignatureError` for one that
    no request has.
    """
    kind, optional = without_none(annotation)
    if default is EMPTY and optional:
        default = None
    if kind is Request:
        return lambda request: request
    if is_body(name, kind):
        return _from_body(told, name, str if kind is EMPTY else kind, default)
    if kind is Upload:
        return _from_files(name, default)
    item = item_of_list(kind)
    convert = converter(str if kind is EMPTY else kind if item is None else item)
    if convert is None:
        raise SignatureError(f"{told}: nothing in a request is {kind!r} (the parameter {name})")
    return _from_fields(name, convert, default) if item is None else _from_list(name, convert, default)


def is_body(name: str, kind: Any) -> bool:
    """Whether a parameter of that name and type is the request's body."""
    return name == "body" or kind in (bytes, dict) or typing.get_origin(kind) is dict or _is_record(kind)


def _is_record(kind: Any) -> bool:
    kind = typing.get_origin(kind) or kind
    return (
        isinstance(kind, type)
        and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind))
        and kind is not Upload
    )


# Fields of the query and of forms


def _from_fields(name: str, convert: Convert, default: Any) -> Take:
    def take(request: Request) -> Any:
        value, where = _field(request, name)
        empty = value == "" and default is None and convert is not str  # an empty field of an HTML form is none
        if value is None or empty:
            if default is EMPTY:
                raise Problem(name, where, "it is missing")
            return default
        try:
            return convert(value)
        except ValueError as error:
            raise Problem(name, where, str(error), value) from error

    return take


def _from_list(name: str, convert: Convert, default: Any) -> Take:
    def take(request: Request) -> Any:
        values, where = _field_list(request, name)
        if not values:
            return [] if default is EMPTY else default
        try:
            return [convert(value) for value in values]
        except ValueError as error:
            raise Problem(name, where, str(error), values) from error

    return take


def _from_files(name: str, default: Any) -> Take:
    def take(request: Request) -> Any:
        value = request.form.get(name) if is_form(request.content_type) else None
        if isinstance(value, Upload) and (value.filename or value.body):
            return value
        if isinstance(value, str):
            raise Problem(name, "form", "a file is expected", value)
        if default is EMPTY:
            raise Problem(name, "form", "it is missing")
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


def _from_body(told: str, name: str, kind: Any, default: Any) -> Take:
    if kind is bytes:
        return lambda request: request.body if request.body or default is EMPTY else default
    if kind is str:
        return lambda request: request.text if request.body or default is EMPTY else default
    try:
        decode = json_decoder(kind)
    except TypeError as error:
        raise SignatureError(f"{told}: JSON cannot become {kind!r} (the parameter {name}): {error}") from error

    def take(request: Request) -> Any:
        if not request.body:
            if default is EMPTY:
                raise Problem(name, "body", "it is missing")
            return default
        if not _is_json(request.content_type):
            raise HTTPError(415, "the body must be application/json", {"accept": "application/json"})
        try:
            return decode(request.body)
        except msgspec.ValidationError as error:
            raise _problem_in_body(name, error) from error

    return take


def _is_json(content_type: str) -> bool:
    """A body without a content type is taken for JSON, since the handler asks for that."""
    media = content_type.partition(";")[0].strip().lower()
    return media in ("", "application/json") or media.endswith("+json")


def _problem_in_body(name: str, error: msgspec.ValidationError) -> Problem:
    """msgspec ends its text with the place, as in ``Expected `int`, got `str` - at `$.bid.amount` ``."""
    reason, _, place = str(error).partition(" - at `")
    path = place.rstrip("`").removeprefix("$").removeprefix(".")
    return Problem(path or name, "body", reason)
