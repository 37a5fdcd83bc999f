"""HELLO: which version both ends speak, and how far a link has come since."""

from __future__ import annotations

import enum
import os
import platform

from .._wire import frames as f
from .._wire import payloads as p
from .._wire.codec import encode_payload
from .._wire.frames import frame
from .events import Ended, Event, Greeted, Reply

VERSION = 1
INCREMENTAL_BODIES = 1 << 0
"""Feature: requests may come before their bodies."""
MESSAGES = 1 << 1
"""Feature: this worker accepts MESSAGE and CLOSE."""
PARTS = 1 << 2
"""Feature: the core sends parts of files that this worker names."""
HINTS_AND_TRAILERS = 1 << 3
"""Feature: the core takes EARLY_HINTS and TRAILERS."""
LONG_MESSAGES = 1 << 4
"""Feature: a message of a WebSocket may have several frames."""


class Phase(enum.Enum):
    """How far a link has come."""

    NEW = enum.auto()
    GREETED = enum.auto()
    READY = enum.auto()
    OVER = enum.auto()


def answer_to(hello: p.Hello) -> tuple[list[Event], bool]:
    """The events that follow the core's HELLO, and whether there is a version that both speak."""
    info = {"language": "python", "runtime": platform.python_version(), "pid": os.getpid()}
    features = INCREMENTAL_BODIES | hello.features & (MESSAGES | PARTS | HINTS_AND_TRAILERS | LONG_MESSAGES)
    reply = Reply(frame(f.HELLO, 0, encode_payload(p.Hello(VERSION, VERSION, features, info))))
    if hello.version_min <= VERSION <= hello.version_max:
        return [reply, Greeted(hello.info)], True
    text = f"this end speaks {VERSION} to {VERSION}"
    goodbye = Reply(frame(f.GOODBYE, 0, encode_payload(["version", text])))
    ended = Ended("version", f"{text}, the core {hello.version_min} to {hello.version_max}")
    return [reply, goodbye, ended], False
