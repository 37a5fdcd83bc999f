"""Results of jobs as MessagePack: a value, or an extension of type 1 that is an HTTP response."""

from __future__ import annotations

import typing
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from .._job import text_of_id
from .._limits import JOB_VALUE_MAX
from .._responses.encoding import flat_of
from .._responses.response import Response
from .._sql.outcomes import value_of_query
from .._validation.annotations import bare, members, union
from .._validation.values import Conversion, conversion
from .._waits.first import First
from .._waits.message import encode_other
from .._waits.wait import T_co, Wait
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import InvalidResult, JobError

RESPONSE = 1  # the type of the extension


def encode_result(value: object) -> bytes:
    """Encodes what a job returned. Raises `InvalidResult` for what no job may return."""
    try:
        encoded = _encode(
            Ext(RESPONSE, encode_payload(flat_of(value))) if isinstance(value, Response) else _tellable(_plain(value))
        )
    except InvalidResult:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidResult(
            f"returned a value of type {type(value).__name__} that cannot be encoded as MessagePack: {error}"
        ) from error
    if len(encoded) > JOB_VALUE_MAX:
        raise InvalidResult(
            f"returned {len(encoded)} bytes, a job's result has at most {JOB_VALUE_MAX}: return a reference instead"
        )
    return encoded


def decode_result(result: bytes) -> Any:
    """The value, or a `Response`. Raises `ValueError` for bytes that are not a result."""
    return _decode(result)


def value_of(outcome: p.Outcome, shape: str | list[str] = "rows") -> Any:
    """As `value_of_query`; for a job its result, None when the time is up; for several waits the value of each, or a
    `First`. Raises `JobError` for no result.
    """
    if isinstance(outcome, p.Outcomes):
        first, outcomes = outcome.first, p.read_outcomes(outcome.body or b"")
        shapes = shape if first is None else [shape[first]]
        values = [value_of(*each) for each in zip(outcomes, shapes, strict=True)]
        return values if first is None else First(first, values[0])
    shape = shape if isinstance(shape, str) else "rows"
    match outcome:
        case p.Completed(result=result):
            return decode_result(result)
        case p.NoResult(id=id, reason=reason, text=text):
            raise JobError(text, reason=reason, id=text_of_id(id))
        case _:
            return value_of_query(outcome, shape)


def result_conversion(name: str, annotation: Any) -> Conversion | None:
    """Makes a result what the job says that it returns. A wait that it returns gives what awaiting that would give."""
    told = [each for member in members(annotation) for each in members(_awaited(member))]
    convert = conversion(union(told))
    if convert is None:
        return None

    def convert_result(value: Any) -> Any:
        if isinstance(value, Response):
            return value
        try:
            return convert(value)
        except TypeError as error:
            raise TypeError(f"the result of the job {name}: {error}") from error

    return convert_result


def _awaited(annotation: Any) -> Any:
    kind = bare(annotation)
    wait = typing.get_origin(kind) or kind
    if not (isinstance(wait, type) and issubclass(wait, Wait)):
        return annotation
    return next(iter(typing.get_args(kind)), Any)


class ResultWait(Wait[T_co]):
    """A wait for the end of a job."""

    __slots__ = ()

    def _value(self, outcome: p.Outcome) -> Any:
        return value_of(outcome)


def _read_extension(code: int, data: memoryview) -> object:
    if code != RESPONSE:
        return Ext(code, bytes(data))
    status, headers, body = _read_response(bytes(data))
    pairs = iter([text.decode("latin-1") if isinstance(text, bytes) else text for text in headers or ()])
    return Response(body, status, list(zip(pairs, pairs, strict=True)))


def _plain(value: object) -> Any:
    """The value as for JSON, so with times as text, which MessagePack has its own type for; bytes stay bytes."""
    return msgspec.to_builtins(value, builtin_types=(bytes, bytearray, memoryview), enc_hook=encode_other)


def _tellable(plain: Any) -> Any:
    """Raises `TypeError` for what MessagePack can express and JSON cannot: no client could be sent the result."""
    if isinstance(plain, dict | list):
        try:
            _encode_json(plain)
        except TypeError:
            _check_keys(plain)  # it refuses keys, too, that are written as the standard library writes them
    return plain


def _check_keys(plain: Any) -> None:
    left = [plain]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str | int | float | bytes | None):
                    raise TypeError(f"a client gets it as JSON, where {key!r} cannot be a key")
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)


_encode_json = msgspec.json.Encoder().encode
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ext_hook=_read_extension).decode
_read_response = msgspec.msgpack.Decoder(tuple[int, list[Any] | None, Any]).decode
