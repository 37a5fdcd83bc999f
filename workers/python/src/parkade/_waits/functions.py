"""Functions that are called after a wait: named so that any worker finds them, their state as MessagePack."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import msgspec
from msgspec import Raw

from .._job import Job, JobState
from .._limits import INLINE_MAX, NAME_MAX
from .._requests.request import Request
from .._validation.annotations import bare, hints_of, members, without_none
from .._validation.decodable import check_decodable
from .._validation.models import decode_model, is_pydantic, json_validator, validated
from .._validation.records import whole
from .._validation.values import Conversion, conversion
from .._wire import payloads as p
from ..errors import SignatureError
from .first import First
from .message import History, Message, encode_other


@dataclass(frozen=True, slots=True)
class Function:
    """What is known of such a function.

    `outcome` is the parameter that gets the outcome, by its place: the first, which may be that of a decorator's
    `*arguments`. All others are given by name: `request` is the one that gets the request, `job` the one that gets the
    job which waited. A first parameter that is only named `job` is both: a request's function gets the outcome.
    """

    name: str  # module:qualname
    call: Callable[..., Any]
    asynchronous: bool
    outcome: str | None
    request: str | None
    job: str | None
    decoders: Mapping[str, Callable[[Raw], Any]]
    convert: Conversion | None = None  # makes the outcome what its parameter is annotated with

    @property
    def kind(self) -> Literal["sync", "async"]:
        """Whether it takes a thread of the worker that calls it, or its loop."""
        return "async" if self.asynchronous else "sync"

    def prepared(self, state: Mapping[str, Raw], given: dict[str, Any]) -> Callable[[], Any]:
        """The call with these values of its state, and with what else it is given. Raises the errors of decoding."""
        named = {name: self.decoders[name](value) for name, value in state.items()} | given
        first = () if self.outcome is None else (named.pop(self.outcome),)
        return partial(self.call, *first, **named)


@lru_cache(maxsize=1_024)
def describe(function: Callable[..., Any], state: frozenset[str], hears: bool = False) -> Function:
    """A function to be called with `state` by name. Its first parameter gets the outcome unless the state names it.
    `hears`: that is what the client of a WebSocket says (see `said`).

    Raises `SignatureError` when no worker could import it, or when it does not take that state.
    """
    name = _name(function)
    hints = _hints(function)
    parameters = inspect.signature(function).parameters
    request = next((key for key in parameters if hints.get(key) is Request), None)
    typed = {key for key in parameters if _is_job_type(hints.get(key))}
    jobs = (key for key in parameters if key in typed or (key not in state and is_job(parameters[key], hints)))
    job = next(jobs, None)
    first = next(iter(parameters), None)
    rest = next((key for key, each in parameters.items() if each.kind is inspect.Parameter.VAR_KEYWORD), None)
    outcome = first if first is not None and first not in {*state, *typed, request, rest} else None
    others = {key: each for key, each in parameters.items() if key != outcome}
    if nameless := [key for key, each in others.items() if each.kind is inspect.Parameter.POSITIONAL_ONLY]:
        raise SignatureError(
            f"{name}{inspect.signature(function)} is called with its arguments by name, except for the outcome: write "
            f"{', '.join(nameless)} after the /"
        )
    named = {key for key, each in others.items() if each.kind not in _VARIADIC} - {request, job}
    if rest is None and (unknown := sorted(state - named)):
        raise SignatureError(f"{name}{inspect.signature(function)} takes no {', '.join(unknown)}")
    required = {key for key in named if parameters[key].default is inspect.Parameter.empty}
    if missing := sorted(required - state):
        raise SignatureError(
            f"{name}{inspect.signature(function)} needs {', '.join(missing)}, which the state does not have"
        )
    decoders = {key: _decoder(name, key, hints.get(key if key in named else rest or "", Any)) for key in named | state}
    convert = None if outcome is None or hears else _conversion(name, outcome, hints.get(outcome, Any))
    return Function(name, function, inspect.iscoroutinefunction(function), outcome, request, job, decoders, convert)


def _conversion(name: str, outcome: str, annotation: Any) -> Conversion | None:
    if typing.get_origin(annotation) is First:
        return _conversion_of_first(name, outcome, annotation)
    if typing.get_origin(annotation) is tuple and ... not in typing.get_args(annotation):
        return _conversion_of_all(name, outcome, annotation)
    convert = conversion(annotation)
    is_bytes = without_none(annotation)[0] is bytes
    if convert is None:
        return None

    def convert_outcome(value: Any) -> Any:
        if isinstance(value, Message) and not takes_messages:
            value = value.body if is_bytes else value.value
        elif isinstance(value, History):
            value = [message.value for message in value]
        try:
            return convert(value)
        except TypeError as error:
            raise TypeError(f"{name}: its parameter {outcome}: {error}") from error

    takes_messages = any(bare(member) is Message for member in members(annotation))
    return convert_outcome


def _conversion_of_first(name: str, outcome: str, annotation: Any) -> Conversion | None:
    (of_value,) = typing.get_args(annotation)
    convert = _conversion(name, outcome, of_value)
    if convert is None:
        return None
    return lambda first: First(first.index, convert(first.value)) if isinstance(first, First) else first


def _conversion_of_all(name: str, outcome: str, annotation: Any) -> Conversion:
    """A tuple is what several waits gave, each its own; or one value."""
    converts = [_conversion(name, outcome, of_one) for of_one in typing.get_args(annotation)]
    whole = conversion(annotation)

    def convert_all(values: Any) -> Any:
        if type(values) is list and len(values) == len(converts):
            each = zip(converts, values, strict=True)
            return tuple(value if convert is None else convert(value) for convert, value in each)
        value = values.value if isinstance(values, Message) else values
        return value if whole is None else whole(value)

    return convert_all


def find(name: str, state: frozenset[str], hears: bool = False) -> Function:
    """The function that `module:qualname` names, described.

    Raises `LookupError` when there is none, `SignatureError` as `describe`.
    """
    module_name, _, qualname = name.partition(":")
    try:
        value: Any = importlib.import_module(module_name)
        for part in qualname.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"no function {name}: it existed when the request parked ({error})") from error
    return describe(value, state, hears)


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a view is that has parked its request, if several applications of a framework are served as one."""

    application: int
    """Which of them."""
    script_name: str
    path: str
    """`SCRIPT_NAME` and `PATH_INFO` of the request, as that application has them."""


class State(msgspec.Struct, array_like=True, frozen=True):
    """What a wait keeps for its function: the values stay encoded until the function's annotations give their types.

    `shape` is a query's, since the outcome does not say it, or those of several waits; `job` is there when it is a job
    that waits, `added` when headers of the answer were set before.
    """

    values: dict[str, Raw]
    request: p.Request | None
    shape: str | list[str] = "rows"
    job: JobState | None = None
    added: p.Added | None = None
    place: Place | None = None


def encode_state(
    function: str,
    state: Mapping[str, Any],
    request: p.Request | None,
    shape: str | list[str] = "rows",
    job: JobState | None = None,
    added: p.Added | None = None,
    place: Place | None = None,
) -> bytes:
    """A `State` for PARK.

    Raises `TypeError` for what is not MessagePack-able, `ValueError` when it is too long.
    """
    try:
        told: list[Any] = [state, request]
        if not (shape == "rows" and job is None and added is None and place is None):
            told += shape, job, added, place
            while told[-1] is None:
                told.pop()
        encoded = msgspec.msgpack.encode(told, enc_hook=encode_other)
    except TypeError as error:
        raise TypeError(f"the state of {function} cannot be encoded as MessagePack: {error}") from error
    if len(encoded) > INLINE_MAX:
        raise ValueError(f"the state of {function} can have at most {INLINE_MAX} bytes, not {len(encoded)}")
    return encoded


def decode_state(state: bytes) -> State:
    """What `encode_state` made."""
    return _decode_state(state)


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_decode_state = msgspec.msgpack.Decoder(State).decode


def _name(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", None)
    if not callable(function):
        raise SignatureError(f".then takes a function, not {function!r:.100}: write .then(page), not .then(page())")
    if module is None or qualname is None or "<" in qualname:
        raise SignatureError(
            f"{qualname or function!r} cannot be called after a wait: "
            "any worker must find it, so define it at the top level of a module"
        )
    if len(f"{module}:{qualname}".encode()) > NAME_MAX:
        raise SignatureError(
            f"{qualname}: the name is too long: with the module's it can have at most {NAME_MAX} bytes"
        )
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is not function:
        raise SignatureError(
            f"{module}:{qualname} cannot be called after a wait: that name means something else in its module"
        )
    return f"{module}:{qualname}"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return hints_of(function)
    except NameError as error:
        raise SignatureError(f"{function.__qualname__}: {error}") from None


def is_job(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Whether it gets the `Job`: it is annotated so, or is named `job` and has no type of its own."""
    if parameter.kind in _VARIADIC:
        return False
    annotation = hints.get(parameter.name, Any)
    return _is_job_type(annotation) or (parameter.name == "job" and annotation is Any)


def _is_job_type(annotation: Any) -> bool:
    return without_none(annotation)[0] is Job


def _decoder(name: str, parameter: str, annotation: Any) -> Callable[[Raw], Any]:
    try:
        return value_decoder(annotation)
    except TypeError as error:
        raise SignatureError(f"{name}: its parameter {parameter}: {error}") from None


def value_decoder(annotation: Any) -> Callable[[Raw], Any]:
    """Makes what was carried as MessagePack a value of that type.

    Raises `TypeError` for a type that nothing can become.
    """
    if is_pydantic(annotation):
        validate = json_validator(annotation)
        return lambda raw: validated(validate, _plain(raw))
    decode = msgspec.msgpack.Decoder(annotation, dec_hook=decode_model).decode
    check_decodable(annotation)
    return whole(decode, annotation)


_plain = msgspec.msgpack.Decoder().decode
