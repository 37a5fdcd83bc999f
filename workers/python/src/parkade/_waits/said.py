"""What the client of a WebSocket has said, as the function that is called for it wants it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from .._validation.annotations import hints_of, members
from .._validation.json import json_decoder
from .._wire import payloads as p
from ..errors import HTTPError, SignatureError
from .functions import Function


class Unfit(Exception):
    """A message is not what the function takes: its client is told so."""


def value_of_said(function: Function, said: p.Said) -> Any:
    """A message as the function's first parameter is annotated: str for text, bytes for binary, or JSON as that type.

    Raises `Unfit` for a message that is none.
    """
    return _reader(function.call, function.outcome)(said)


def check_hears(function: Function) -> None:
    """Raises `SignatureError` for a function that can be given no message."""
    if function.outcome is None:
        raise SignatureError(f"{function.name} takes no message: give it a first parameter for it")
    try:
        _reader(function.call, function.outcome)
    except TypeError as error:
        raise SignatureError(
            f"{function.name}: its parameter {function.outcome} gets what the client says, as str, as bytes or as the "
            f"type that its JSON is converted to: {error}"
        ) from None


@lru_cache(maxsize=1_024)
def _reader(call: Callable[..., Any], parameter: str) -> Callable[[p.Said], Any]:
    annotation = hints_of(call).get(parameter, Any)
    kinds = set(members(annotation))
    if Any in kinds or object in kinds or kinds == {str, bytes}:
        return _as_it_is
    if kinds == {str}:
        return _text
    if kinds == {bytes}:
        return lambda said: said.body or b""
    decode = json_decoder(annotation)

    def read(said: p.Said) -> Any:
        try:
            return decode(said.body or b"")
        except HTTPError as error:
            raise Unfit(error.detail.replace("the body", "the message", 1)) from error
        except msgspec.ValidationError as error:
            raise Unfit(f"the message is not what is expected: {error}") from error

    return read


def _as_it_is(said: p.Said) -> str | bytes:
    body = said.body or b""
    return body.decode() if said.text else body


def _text(said: p.Said) -> str:
    if not said.text:
        raise Unfit("the message is binary, and text is expected")
    return (said.body or b"").decode()
