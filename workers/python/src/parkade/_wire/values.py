"""The building blocks of payloads: arrays and maps that later versions may extend, and bounded numbers."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from .._unicode import encoded

# No request waits for 10^15 seconds: the bound is there because it rejects infinity and NaN.
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e15)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
FaultStatus: TypeAlias = Annotated[int, Meta(ge=400, le=599)]
"""The status that a client would get for a failure."""


class Array(Struct, array_like=True, frozen=True, gc=False):
    """A payload: an array whose further elements, from a later version, are ignored."""


class Map(Struct, frozen=True, gc=False, omit_defaults=True):
    """A map: unknown keys are ignored, missing ones have their default."""


def has_control_character(text: str) -> bool:
    """Whether it contains a control character (C0, DEL or C1)."""
    return _CONTROL.search(text) is not None


def end_of(text: str, size: int) -> str:
    """The last `size` bytes of a text: a traceback names its reason last."""
    return encoded(text)[-size:].decode("utf-8", "ignore")


def byte_length(body: object) -> int:
    """The length of a body on the wire; text counts as its UTF-8 bytes.

    Raises `ValueError` if it is neither bytes nor text.
    """
    match body:
        case bytes():
            return len(body)
        case str():
            return len(body.encode())
        case _:
            raise ValueError("a body is bytes or text")


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
