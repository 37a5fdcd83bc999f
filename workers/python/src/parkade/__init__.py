"""Parkade for Python: write plain code; let the server wait."""

from __future__ import annotations

from . import jobs
from ._job import Job
from ._mappings import Fields, Headers
from ._requests.forms import Upload
from ._requests.request import Request
from .app import App
from .errors import (
    ConnectError,
    Discard,
    HTTPError,
    InvalidChannel,
    InvalidJobId,
    InvalidMessage,
    InvalidParameter,
    InvalidText,
    JobError,
    LoadError,
    ParkadeError,
    QueryError,
    Refused,
    Retry,
    SignatureError,
    WaitError,
)
from .job_access import StoredJob
from .placeholders import Json
from .queries import Query, query
from .response import Response, html
from .rows import Row, Rows
from .transactions import Transaction, transaction
from .waits import Channel, Message, Wait, after, channel

__all__ = [
    "App",
    "Channel",
    "ConnectError",
    "Discard",
    "Fields",
    "HTTPError",
    "Headers",
    "InvalidChannel",
    "InvalidJobId",
    "InvalidMessage",
    "InvalidParameter",
    "InvalidText",
    "Job",
    "JobError",
    "Json",
    "LoadError",
    "Message",
    "ParkadeError",
    "Query",
    "QueryError",
    "Refused",
    "Request",
    "Response",
    "Retry",
    "Row",
    "Rows",
    "SignatureError",
    "StoredJob",
    "Transaction",
    "Upload",
    "Wait",
    "WaitError",
    "after",
    "channel",
    "html",
    "jobs",
    "query",
    "transaction",
]
