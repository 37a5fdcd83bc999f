"""A JSON body as a value: of the expected type, complete, and no deeper than an application expects."""

from __future__ import annotations

import gc
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec

from .._limits import JSON_DEPTH_MAX
from ..errors import HTTPError
from .annotations import is_record, parts_in
from .decimals import check_decimals
from .decodable import check_decodable
from .faults import Fault, Mismatch, faults_of
from .models import decode_model, is_model, is_no_json, is_pydantic, json_validator, problems_of
from .records import whole

Decode = Callable[[bytes], Any]


def json_decoder(annotation: Any) -> Decode:
    """What decodes a body as that type.

    It raises `HTTPError` 400 for a body that is not JSON or too deep, `msgspec.ValidationError` for one that is not of
    the type; where that has several faults, a `Mismatch`. Raises `TypeError` itself for a type that JSON cannot become.
    """
    decode = _decoder_of_models(annotation) if is_pydantic(annotation) else _decoder(annotation)
    has_decimals = any(kind is Decimal for kind, _ in parts_in(annotation, _has_fields))

    def decode_body(body: bytes) -> Any:
        has_many = body.count(b"[") + body.count(b"{") > JSON_DEPTH_MAX
        if has_many and depth(body) > JSON_DEPTH_MAX:
            raise HTTPError(400, _TOO_DEEP)
        try:
            value = _uncollected(decode, body) if has_many else decode(body)
        except msgspec.ValidationError as error:
            raise error if type(error) is Mismatch else Mismatch(faults_of(annotation, body, error)) from error
        except (msgspec.DecodeError, UnicodeError) as error:
            raise HTTPError(400, f"the body is not JSON: {error}") from error
        if has_decimals:
            check_decimals(value)
        return value

    return decode_body


def _decoder(annotation: Any) -> Decode:
    decode = msgspec.json.Decoder(annotation, dec_hook=decode_model).decode
    check_decodable(annotation)
    return whole(decode, annotation)


def _decoder_of_models(annotation: Any) -> Decode:
    validate = json_validator(annotation)

    def decode(body: bytes) -> Any:
        try:
            return validate(body)
        except ValueError as error:
            if (reason := is_no_json(error)) is not None:
                raise msgspec.DecodeError(reason) from error
            raise Mismatch([Fault(*each) for each in problems_of(error)]) from error

    return decode


def _has_fields(kind: Any) -> bool:
    return is_record(kind) or is_model(kind)


def decoder_of(annotation: Any) -> Decode:
    """As `json_decoder`, made once for a type. Raises `TypeError`."""
    try:
        return _made_decoder(annotation)
    except TypeError:  # an annotation that cannot be a key, or none that JSON can become: that is said again
        return _made_decoder.__wrapped__(annotation)


@lru_cache(maxsize=1_024)
def _made_decoder(annotation: Any) -> Decode:
    return json_decoder(annotation)


def depth(body: bytes) -> int:
    """How many levels deep JSON is nested. It is measured in the text, without building anything: 20 ms for each
    million brackets, 2 ms for a megabyte of ordinary JSON (CPython 3.11).
    """
    if b"\\" in body:  # from here on a quote begins or ends a string
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = body.translate(_STEPS, _OTHERS).replace(b'""', b"")  # no matter whether it is a string, or between two
    if b'"' in signs:
        signs = b"".join(signs.split(b'"')[::2])  # without the brackets that strings hold
    return max(accumulate(memoryview(signs).cast("b")), default=0)


_OTHERS = bytes(code for code in range(256) if code not in b'"[]{}')
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # one down, one up: 1 and -1 as signed bytes
_TOO_DEEP = f"the body is JSON nested more than {JSON_DEPTH_MAX} levels deep"


def _uncollected(decode: Decode, body: bytes) -> Any:
    """Without the collector of cycles, which would go through what is being built again and again: with millions of
    lists that takes six times as long as to build them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return decode(body)
    finally:
        if was_enabled:
            gc.enable()
