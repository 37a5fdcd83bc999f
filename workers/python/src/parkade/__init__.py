"""Parkade for Python: write plain code; let the server wait.

The names here are public, and so are `parkade.django`, `parkade.errors`, `parkade.jobs` and `parkade.testing`.
"""

from . import jobs
from ._app import App
from ._cors import Cors
from ._hosting.park import park
from ._job import Job
from ._mappings import Fields, Headers
from ._requests.body_stream import BodyStream
from ._requests.forms import Upload
from ._requests.request import Request
from ._responses.redirects import redirect
from ._responses.response import Response, html
from ._responses.status import Status
from ._responses.templates import Templates
from ._router import Router
from ._routing.markers import Cookie, Header
from ._sql.placeholders import Json
from ._sql.plain_transactions import PlainTransaction
from ._sql.queries import Query, query
from ._sql.rows import Row, Rows
from ._sql.transactions import Transaction, transaction
from ._waits.channel import BEGINNING, Channel, channel
from ._waits.files import File
from ._waits.first import First
from ._waits.groups import all_of, first_of
from ._waits.histories import limit_history
from ._waits.message import History, Message
from ._waits.wait import Wait, after
from ._websocket import Close, WebSocket
from .errors import (
    BodyError,
    ConnectError,
    Discard,
    HTTPError,
    IncompleteBody,
    InvalidChannel,
    InvalidJobId,
    InvalidMessage,
    InvalidParameter,
    InvalidResult,
    InvalidText,
    JobError,
    LoadError,
    ParkadeError,
    QueryError,
    Refused,
    Retry,
    SignatureError,
    WaitError,
    WebSocketClosed,
)
from .jobs._access import StoredJob
from .jobs._client import connect
from .jobs._handle import Handle

__all__ = [
    "BEGINNING",
    "App",
    "BodyError",
    "BodyStream",
    "Channel",
    "Close",
    "ConnectError",
    "Cookie",
    "Cors",
    "Discard",
    "Fields",
    "File",
    "First",
    "HTTPError",
    "Handle",
    "Header",
    "Headers",
    "History",
    "IncompleteBody",
    "InvalidChannel",
    "InvalidJobId",
    "InvalidMessage",
    "InvalidParameter",
    "InvalidResult",
    "InvalidText",
    "Job",
    "JobError",
    "Json",
    "LoadError",
    "Message",
    "ParkadeError",
    "PlainTransaction",
    "Query",
    "QueryError",
    "Refused",
    "Request",
    "Response",
    "Retry",
    "Router",
    "Row",
    "Rows",
    "SignatureError",
    "Status",
    "StoredJob",
    "Templates",
    "Transaction",
    "Upload",
    "Wait",
    "WaitError",
    "WebSocket",
    "WebSocketClosed",
    "after",
    "all_of",
    "channel",
    "connect",
    "first_of",
    "html",
    "jobs",
    "limit_history",
    "park",
    "query",
    "redirect",
    "transaction",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> str:
    """`__version__`, read when it is asked for: few programs do, and it takes a millisecond."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("parkade")
    except PackageNotFoundError:  # a checkout that is not installed
        return "0+unknown"
