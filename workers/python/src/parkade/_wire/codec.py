"""Which frames each end may write, on which stream, and what their payload is (the table of PROTOCOL.md, section 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from .._limits import INLINE_MAX
from ..errors import Violation
from . import frames as f
from . import payloads as p
from . import ready as r
from .fields import Fields

End: TypeAlias = Literal["core", "worker"]

LINK = "link"  # stream 0
STREAM = "stream"  # a request's
EITHER = "either"


class Rule(NamedTuple):
    """Where a kind of frame may stand, and what reads its payload, and checks that it belongs on that stream."""

    place: str
    decode: Callable[[bytes], Any]
    check: Callable[[int, Any], None] | None = None


def read(rules: dict[int, Rule], kind: int, stream: int, payload: bytes) -> Any:
    """The payload of a frame, checked against `rules` (`FROM_CORE` or `FROM_WORKER`); None for an unknown kind, which
    is skipped.

    Raises `Violation` for a kind that the other end writes, a stream where it must not be, and a payload that is not
    what section 3 says.
    """
    rule = rules.get(kind)
    if rule is None:
        if kind in f.NAMES:
            raise Violation(f"{f.NAMES[kind]} from the wrong end")
        return None
    place, decode, check = rule
    if (stream == 0) is (place is STREAM) and place is not EITHER:
        raise Violation(f"{f.NAMES[kind]} on stream {stream}")
    try:
        value = decode(payload)
        if check is not None:
            check(stream, value)
        return value
    except ValueError as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
        raise Violation(f"{f.NAMES[kind]}: {error}") from error


def encode_payload(payload: object) -> bytes:
    """A struct of `payloads` or `ready` as MessagePack."""
    return _encode(payload)


_encode = msgspec.msgpack.Encoder().encode


def _typed(kind: Any) -> Callable[[bytes], Any]:
    return msgspec.msgpack.Decoder(kind).decode


def _data(payload: bytes) -> bytes:
    if len(payload) > INLINE_MAX:
        raise ValueError(f"DATA has at most {INLINE_MAX} bytes")
    return payload


def _raw(payload: bytes) -> bytes:
    return payload


_BOTH = {
    f.HELLO: Rule(LINK, _typed(p.Hello)),
    f.DATA: Rule(STREAM, _data),
    f.WINDOW: Rule(STREAM, _typed(p.Window)),
    f.GOODBYE: Rule(LINK, _typed(p.Goodbye)),
    f.MESSAGE: Rule(STREAM, _raw),
    f.CLOSE: Rule(STREAM, _typed(p.Close)),
}

FROM_CORE: dict[int, Rule] = _BOTH | {
    f.REQUEST: Rule(STREAM, _typed(p.Request)),
    f.RUN: Rule(STREAM, _typed(p.Run)),
    f.RESUME: Rule(LINK, _typed(p.Resume)),
    f.CANCEL: Rule(STREAM, _typed(p.Text)),
    f.DRAIN: Rule(LINK, _typed(p.Drain)),
    f.PING: Rule(LINK, _typed(p.Token)),
}

FROM_WORKER: dict[int, Rule] = _BOTH | {
    f.READY: Rule(LINK, _typed(r.Ready)),
    f.FAILED: Rule(LINK, _typed(p.Failure)),
    f.RESPONSE: Rule(STREAM, _typed(p.Response)),
    f.ERROR: Rule(STREAM, _typed(p.Error)),
    f.BEGAN: Rule(STREAM, _typed(p.Nothing)),
    f.EARLY_HINTS: Rule(STREAM, _typed(Fields)),
    f.TRAILERS: Rule(STREAM, _typed(Fields)),
    f.PARK: Rule(STREAM, _typed(r.Park), r.check_branch),
    f.UNPARK: Rule(STREAM, _typed(p.Nothing)),
    f.PUBLISH: Rule(EITHER, _typed(p.Publish)),
    f.ENQUEUE: Rule(EITHER, _typed(p.Enqueue)),
    f.RESULT: Rule(STREAM, _typed(p.Result)),
    f.PROGRESS: Rule(STREAM, _typed(p.Progress)),
    f.CREDIT: Rule(LINK, _typed(p.Credit)),
    f.PONG: Rule(LINK, _typed(p.Token)),
}
