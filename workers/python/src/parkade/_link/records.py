"""What the application logs, as records for the core: one line of JSON each, on standard error (PROTOCOL.md, *The
worker's log*). The core adds the time, the worker and the request's route.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from .. import _log
from .._limits import LOG_FIELD_MAX, LOG_FIELDS_MAX, LOG_MESSAGE_MAX, LOG_RECORD_MAX, LOG_TRACEBACK_MAX
from .._unicode import encodable
from . import port

_LEVELS = {"trace": 5, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_OWN = {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
"""The attributes of each `LogRecord`; all others were given with `extra=`."""


def begin() -> None:
    """Sends records from now on, if the core that started this process takes them.

    The process keeps the mark to itself: a program that it starts, and text that it prints, cannot write records.
    """
    mark, _, level = os.environ.pop("PARKADE_LOG", "").partition(" ")
    if mark:
        records = Records(mark, 2)
        _log.connect(records.write)
        take_logging(records, _LEVELS.get(level, logging.INFO))
        threading.excepthook = _thread_failed


class Records:
    """Writes records to a descriptor."""

    def __init__(self, mark: str, descriptor: int) -> None:
        # The first line end closes a line that was printed without one.
        self._begin = b"\n\x1e" + mark.encode()
        self._descriptor = descriptor
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def write(self, level: str, message: str, **members: Any) -> None:
        """Writes a record; members that are None are left out. Does nothing when standard error is closed."""
        told = {name: value for name, value in members.items() if value is not None}
        if traceback := told.get("traceback"):
            told["traceback"] = _last(traceback, LOG_TRACEBACK_MAX)
        if exception := told.get("exception"):
            told["exception"] = exception[:LOG_MESSAGE_MAX]
        if stream := port.stream():
            told["stream"] = stream
        told |= {"level": level, "message": message[:LOG_MESSAGE_MAX]}
        encoded = _encoded(told)
        if len(encoded) > LOG_RECORD_MAX:  # each control character takes six bytes
            short = {name: _short(value) for name, value in told.items() if name not in ("fields", "traceback")}
            encoded = _encoded(short | {"traceback": _last(told.get("traceback", ""), LOG_FIELD_MAX)})
        data = memoryview(self._begin + encoded + b"\n")
        with self._lock, contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._descriptor, data) :]


def take_logging(records: Records, level: int) -> None:
    """Has Python's `logging` write records, wherever it would write to standard error or standard output.

    Until the application sets levels of its own, what is below `level` is not logged, and what has no handler is.
    """
    write_text = logging.StreamHandler.emit

    def emit(handler: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
        # A class of the application's own has its reasons.
        if type(handler) not in kinds or handler.stream not in (sys.stderr, sys.stdout, sys.__stderr__, sys.__stdout__):
            return write_text(handler, record)
        try:
            _write(records.write, record)
        except Exception:
            handler.handleError(record)

    kinds: set[type] = {logging.StreamHandler}
    if logging.lastResort is not None:
        kinds.add(type(logging.lastResort))
        logging.lastResort.setLevel(logging.NOTSET)
    logging.StreamHandler.emit = emit  # type: ignore[method-assign,assignment]
    logging.getLogger().setLevel(max(level, logging.DEBUG))


def _write(write: Callable[..., None], record: logging.LogRecord) -> None:
    error = record.exc_info[1] if record.exc_info else None
    traceback = [_log.format_error(error)] if error is not None else []
    if record.stack_info:
        traceback.append(record.stack_info)
    fields = {name: _field(value) for name, value in vars(record).items() if name not in _OWN}
    write(
        _level(record.levelno),
        record.getMessage(),
        logger=record.name,
        exception=None if error is None else _log.in_words(error),
        traceback="\n".join(traceback) or None,
        fields=dict(list(fields.items())[:LOG_FIELDS_MAX]) or None,
    )


def _level(number: int) -> str:
    return next((name for name, least in reversed(_LEVELS.items()) if number >= least), "trace")


def _field(value: object) -> object:
    """A value of the application's own, as JSON has it."""
    try:
        if len(_encoded(value)) <= LOG_FIELD_MAX:
            return value
    except Exception:  # of whatever kind the application's object raises
        pass
    return str(value)[:LOG_FIELD_MAX]


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value, enc_hook=str)))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return encodable(value)
        case dict():
            return {_encodable(key): _encodable(each) for key, each in value.items()}
        case list() | tuple():
            return [_encodable(each) for each in value]
        case _:
            return value


def _short(value: Any) -> Any:
    return value[:LOG_FIELD_MAX] if isinstance(value, str) else value


def _last(text: str, length: int) -> str:
    """The end of a traceback says most."""
    return text if len(text) <= length else "…" + text[-length:]


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        _log.log_error(f"the thread {failed.thread.name if failed.thread is not None else ''}", failed.exc_value)
