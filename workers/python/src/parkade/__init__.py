"""Parkade for Python: write plain code; let the server wait."""

from __future__ import annotations

from .app import App
from .errors import (
    HTTPError,
    InvalidChannel,
    InvalidParameter,
    LoadError,
    ParkadeError,
    Refused,
    SignatureError,
    WaitError,
)
from .forms import Upload
from .mappings import Fields, Headers
from .request import Request
from .response import Response, html
from .waits import Channel, Message, Wait, after, channel

__all__ = [
    "App",
    "Channel",
    "Fields",
    "HTTPError",
    "Headers",
    "InvalidChannel",
    "InvalidParameter",
    "LoadError",
    "Message",
    "ParkadeError",
    "Refused",
    "Request",
    "Response",
    "SignatureError",
    "Upload",
    "Wait",
    "WaitError",
    "after",
    "channel",
    "html",
]
