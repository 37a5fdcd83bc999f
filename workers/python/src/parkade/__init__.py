"""Parkade for Python: write plain code; let the server wait."""

from __future__ import annotations

from .app import App
from .errors import (
    HTTPError,
    InvalidChannel,
    InvalidParameter,
    InvalidText,
    LoadError,
    ParkadeError,
    QueryError,
    Refused,
    SignatureError,
    WaitError,
)
from .forms import Upload
from .mappings import Fields, Headers
from .placeholders import Json
from .queries import Query, query
from .request import Request
from .response import Response, html
from .rows import Row, Rows
from .transactions import Transaction, transaction
from .waits import Channel, Message, Wait, after, channel

__all__ = [
    "App",
    "Channel",
    "Fields",
    "HTTPError",
    "Headers",
    "InvalidChannel",
    "InvalidParameter",
    "InvalidText",
    "Json",
    "LoadError",
    "Message",
    "ParkadeError",
    "Query",
    "QueryError",
    "Refused",
    "Request",
    "Response",
    "Row",
    "Rows",
    "SignatureError",
    "Transaction",
    "Upload",
    "Wait",
    "WaitError",
    "after",
    "channel",
    "html",
    "query",
    "transaction",
]
