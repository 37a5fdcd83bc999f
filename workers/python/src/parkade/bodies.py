"""A body of JSON as a value: of the type that is asked for, whole, and no deeper than an application expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from .decimals import check_decimals
from .errors import HTTPError
from .limits import JSON_DEPTH_MAX
from .records import LEAVES, is_recursive, kinds_in, parts_of, whole

Decode = Callable[[bytes], Any]


def json_decoder(annotation: Any) -> Decode:
    """What decodes a body as that type.

    It raises `HTTPError` 400 for a body that is not JSON or too deep, `msgspec.ValidationError` for one that is not of
    the type. Raises `TypeError` itself for a type that JSON cannot become.
    """
    decode = msgspec.json.Decoder(annotation).decode
    complete = whole(_as_it_is, annotation)
    kinds = list(kinds_in(annotation))
    may_be_deep = any(isinstance(kind, inspect.AnyType) or is_recursive(kind) for kind in kinds)
    has_decimals = any(isinstance(kind, inspect.DecimalType) for kind in kinds)

    def decode_body(body: bytes) -> Any:
        try:
            value = decode(body)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeError) as error:
            raise HTTPError(400, f"the body is not JSON: {error}") from error
        except RecursionError as error:
            raise HTTPError(400, _TOO_DEEP) from error
        if may_be_deep and _openings(body) > JSON_DEPTH_MAX and _is_deep(value):
            raise HTTPError(400, _TOO_DEEP)
        if has_decimals:
            check_decimals(value)
        return complete(value)

    return decode_body


_TOO_DEEP = f"the body is JSON with more than {JSON_DEPTH_MAX} arrays and objects in one another"


def _as_it_is(value: Any) -> Any:
    return value


def _openings(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


def _is_deep(value: object) -> bool:
    """Level by level, since a function that calls itself would meet the end of the stack."""
    level = [value]
    for _ in range(JSON_DEPTH_MAX):
        level = [part for each in level for part in parts_of(each) if type(part) not in LEAVES]
        if not level:
            return False
    return True
