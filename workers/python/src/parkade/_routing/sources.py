"""Finds a handler's parameters in the request: a function for each, which extracts and converts it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import msgspec

from .._requests.forms import Upload, is_form
from .._requests.request import Request
from .._validation.annotations import EMPTY, bare, is_record, name_of, unwrapped, without_none
from .._validation.constraints import Check, checks_of
from .._validation.converters import Convert, converter, item_of_list
from .._validation.faults import Mismatch
from .._validation.json import json_decoder
from .._validation.models import is_model, is_pydantic
from .._websocket import SocketRequest, WebSocket
from ..errors import HTTPError, SignatureError
from .markers import Cookie, Header

Take = Callable[[Request], Any]
"""Gives a parameter's value. Raises `Problem`, or `HTTPError` when the whole body is of another kind."""

Place: TypeAlias = Literal["path", "request", "socket", "header", "cookie", "body", "file", "field"]
"""Where a parameter is found. A field is one of the form or of the query."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a handler: its annotation (`EMPTY` for none), its default (`EMPTY` for none), and its kind as
    `inspect` has it.
    """

    name: str
    place: Place
    annotation: Any
    default: Any
    kind: Any

    @property
    def is_required(self) -> bool:
        """Whether a request without it is refused."""
        return self.default is EMPTY and not without_none(self.annotation)[1]

    @property
    def name_in_request(self) -> str:
        """The name of its header or cookie; its own for any other."""
        marker = _marker(self.annotation)
        if marker is None:
            return self.name
        return marker.name or (self.name.replace("_", "-") if isinstance(marker, Header) else self.name)


class Problem(Exception):
    """Parameters that are wrong or missing: one, or several parts of a body. `told` is what the client hears."""

    def __init__(self, name: str, where: str, reason: str, value: object = None) -> None:
        super().__init__(reason)
        self.told: list[dict[str, object]] = [{"name": name, "where": where, "reason": reason, "value": value}]


def place_of(name: str, annotation: Any) -> Place:
    """Where a parameter that is not in the path is found."""
    marker, kind = _marker(annotation), bare(without_none(annotation)[0])
    if kind is Request:
        return "request"
    if kind is WebSocket:
        return "socket"
    if marker is not None:
        return "header" if isinstance(marker, Header) else "cookie"
    if kind is Upload or item_of_list(kind) is Upload:
        return "file"
    return "body" if name == "body" or _is_of_body(kind) else "field"


def _marker(annotation: Any) -> Header | Cookie | None:
    _, added = unwrapped(annotation)
    for each in added:
        if isinstance(each, Header | Cookie):
            return each
        if each is Header or each is Cookie:
            return each()
    return None


def _is_of_body(kind: Any) -> bool:
    whole = typing.get_origin(kind) or kind
    return whole in (bytes, dict) or is_record(whole) or is_model(whole)


def source(told: str, parameter: Parameter) -> Take:
    """Makes the function for a parameter of the handler `told`, as errors name it. Raises `SignatureError` for one that
    no request has.
    """
    name, (kind, optional) = parameter.name, without_none(parameter.annotation)
    default = None if parameter.default is EMPTY and optional else parameter.default
    if parameter.place == "request":
        return lambda request: request
    if parameter.place == "socket":
        return lambda request: cast(SocketRequest, request).socket
    if parameter.place == "body":
        return _from_body(told, name, str if kind is EMPTY else kind, default)
    if parameter.place == "file":
        return _from_files(name, default) if bare(kind) is Upload else _from_file_list(told, name, kind, default)
    item = item_of_list(kind)
    convert = _convert(told, name, str if kind is EMPTY else kind, item)
    find, where = _finder(parameter)
    if item is None:
        return _from_one(name, find, where, convert, default)
    return _from_list(name, find, where, convert, default, _checks_of_list(told, name, kind))


def _convert(told: str, name: str, kind: Any, item: Any) -> Convert:
    try:
        convert = converter(kind if item is None else item)
    except TypeError as error:
        raise SignatureError(f"{told}: {error} (the parameter {name})") from None
    if convert is None:
        raise SignatureError(
            f"{told}: no part of a request can become {name_of(kind)} (the parameter {name}); {_instead_of(kind, item)}"
        )
    return convert


def _instead_of(kind: Any, item: Any) -> str:
    """What to annotate a parameter with, instead of what no request has."""
    if bare(kind if item is None else item) in (bytes, bytearray):
        return "a file is Upload, several are list[Upload], and bytes are the whole body if the parameter is named body"
    return "a field is text, a number, a date, a UUID, an Enum or a list of these; objects come in the parameter body"


def _checks_of_list(told: str, name: str, kind: Any) -> list[Check]:
    try:
        return list(checks_of(list, unwrapped(kind)[1]))
    except TypeError as error:
        raise SignatureError(f"{told}: {error} (the parameter {name})") from None


# Fields of the query and of forms, headers, cookies

_Find: TypeAlias = Callable[[Request], list[str]]


def _finder(parameter: Parameter) -> tuple[_Find, Callable[[Request], str]]:
    """What gives every value of a name, and where they are from."""
    name = parameter.name_in_request
    if parameter.place == "header":
        return lambda request: request.headers.getlist(name), lambda request: "header"
    if parameter.place == "cookie":
        return lambda request: [request.cookies[name]] if name in request.cookies else [], lambda request: "cookie"
    return lambda request: _fields(request, name)[0], lambda request: _fields(request, name)[1]


def _from_one(name: str, find: _Find, where: Callable[[Request], str], convert: Convert, default: Any) -> Take:
    def take(request: Request) -> Any:
        values = find(request)
        # An empty field of an HTML form is none.
        if not values or (values[0] == "" and default is None and convert is not str):
            if default is EMPTY:
                raise Problem(name, where(request), "it is missing")
            return default
        try:
            return convert(values[0])
        except ValueError as error:
            raise Problem(name, where(request), str(error), values[0]) from error

    return take


def _from_list(
    name: str, find: _Find, where: Callable[[Request], str], convert: Convert, default: Any, checks: list[Check]
) -> Take:
    def take(request: Request) -> Any:
        values = find(request)
        if not values and default is not EMPTY:
            return default
        try:
            found = [convert(value) for value in values]
            for check in checks:
                check(found)
        except ValueError as error:
            raise Problem(name, where(request), str(error), values) from error
        return found

    return take


def _fields(request: Request, name: str) -> tuple[list[str], str]:
    if not request._streams and request.body and is_form(request.content_type):
        texts = [value for value in request.form.getlist(name) if isinstance(value, str)]
        if texts or name not in request.query:
            return texts, "form"
    return request.query.getlist(name), "query"


# Files


def _from_files(name: str, default: Any) -> Take:
    def take(request: Request) -> Any:
        files = _uploads(request, name)
        if not files and default is EMPTY:
            raise Problem(name, "form", "it is missing")
        return files[0] if files else default

    return take


def _from_file_list(told: str, name: str, kind: Any, default: Any) -> Take:
    checks = _checks_of_list(told, name, kind)

    def take(request: Request) -> Any:
        files = _uploads(request, name)
        if not files and default is not EMPTY:
            return default
        try:
            for check in checks:
                check(files)
        except ValueError as error:
            raise Problem(name, "form", str(error), [file.filename for file in files]) from error
        return files

    return take


def _uploads(request: Request, name: str) -> list[Upload]:
    """The files of that name; a browser sends an empty one where none was chosen."""
    values: Iterable[Any] = request.form.getlist(name) if is_form(request.content_type) else ()
    files = []
    for value in values:
        if isinstance(value, str):
            raise Problem(name, "form", "a file is expected", value)
        if value.raw_filename or value.body:
            files.append(value)
    return files


# The body


def _from_body(told: str, name: str, kind: Any, default: Any) -> Take:
    plain, added = unwrapped(kind)
    if plain in (bytes, str) and not is_pydantic(kind):
        return _from_plain_body(name, plain, default, _checks_of_text(told, name, plain, added))
    try:
        decode = json_decoder(kind)
    except TypeError as error:
        raise SignatureError(f"{told}: JSON cannot become {name_of(kind)} (the parameter {name}): {error}") from None

    def take(request: Request) -> Any:
        if not request.body:
            if default is EMPTY:
                raise Problem(name, "body", "it is missing")
            return default
        if not _is_json(request.content_type):
            told = f"the body must be application/json, not {request.content_type:.100}"
            raise HTTPError(415, told, {"accept": "application/json"})
        try:
            return decode(request.body)
        except msgspec.ValidationError as error:
            raise _problem_in_body(name, error) from error

    return take


def _checks_of_text(told: str, name: str, kind: Any, added: Iterable[Any]) -> list[Check]:
    try:
        return list(checks_of(kind, added))
    except TypeError as error:
        raise SignatureError(f"{told}: {error} (the parameter {name})") from None


def _from_plain_body(name: str, kind: Any, default: Any, checks: list[Check]) -> Take:
    def take(request: Request) -> Any:
        if not request.body and default is not EMPTY:
            return default
        return request.body if kind is bytes else request.text

    def take_checked(request: Request) -> Any:
        value = take(request)
        try:
            for check in checks:
                check(value)
        except ValueError as error:
            raise Problem(name, "body", str(error)) from error
        return value

    return take_checked if checks else take


def _is_json(content_type: str) -> bool:
    """A body without a content type is taken for JSON, since the handler asks for that."""
    media = content_type.partition(";")[0].strip().lower()
    return media in ("", "application/json") or media.endswith("+json")


def _problem_in_body(name: str, error: msgspec.ValidationError) -> Problem:
    """msgspec ends its text with the place, as in ``Expected `int`, got `str` - at `$.bid.amount` ``."""
    if not isinstance(error, Mismatch):
        reason, _, place = str(error).partition(" - at `")
        return Problem(place.rstrip("`").removeprefix("$").removeprefix(".") or name, "body", reason)
    problem = Problem(name, "body", str(error))
    problem.told = [
        {"name": fault.place or name, "where": "body", "reason": fault.reason, "value": fault.value}
        for fault in error.faults
    ]
    return problem
