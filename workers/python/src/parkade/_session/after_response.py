"""Work that goes on after the response of its stream (PROTOCOL.md, section 3): the core counts the worker as busy."""

from __future__ import annotations

from .._wire import frames as f
from .._wire.codec import encode_payload
from .._wire.frames import frame

_NOTHING = encode_payload([])


class AfterResponse:
    """Nothing of it is remembered: the stream is closed for the session with its closing frame."""

    def __init__(self) -> None:
        self.is_offered = False

    def keep(self, stream: int) -> bytes:
        """KEEP: write it before the closing frame. Nothing if the core does not count such work."""
        return frame(f.KEEP, stream, _NOTHING) if self.is_offered else b""

    @staticmethod
    def release(stream: int) -> bytes:
        """RELEASE: the work is over."""
        return frame(f.RELEASE, stream, _NOTHING)
