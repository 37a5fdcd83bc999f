"""Branches of streams: further waits of a coroutine whose stream is parked (PROTOCOL.md, `PARK`)."""

from __future__ import annotations

from .._limits import BRANCH_FIRST, FRAME_MAX
from .._wire import payloads as p
from .._wire.codec import encode_payload

_AWAIT = encode_payload(p.Await())
_BRANCH_LAST = 2 * BRANCH_FIRST - 1


class Branches:
    """Which are open, and of which stream each is one. A number is used again when its branch is closed."""

    def __init__(self, last: int = BRANCH_FIRST - 1) -> None:
        self._streams: dict[int, int] = {}
        self._last = last

    def __bool__(self) -> bool:
        return bool(self._streams)

    def __contains__(self, branch: int) -> bool:
        return branch in self._streams

    def open(self, stream: int) -> int:
        """The number of a new one."""
        branch = _after(self._last)
        while branch in self._streams:
            branch = _after(branch)
        self._streams[branch] = stream
        self._last = branch
        return branch

    def close(self, branch: int) -> None:
        """It has had its outcome."""
        del self._streams[branch]

    def of(self, stream: int) -> list[int]:
        """Those of a stream."""
        return [branch for branch, parent in self._streams.items() if parent == stream]


def park_of(stream: int, park: bytes) -> bytes:
    """A PARK, encoded with `await`, for a branch of that stream. Raises `ValueError` if it is too long for a frame."""
    payload = park.removesuffix(_AWAIT) + encode_payload(p.Branch(stream))
    if len(payload) > FRAME_MAX:
        raise ValueError(f"a query has at most {FRAME_MAX} bytes with its parameters, not {len(payload)}")
    return payload


def _after(branch: int) -> int:
    return BRANCH_FIRST if branch >= _BRANCH_LAST else branch + 1
