"""Enqueues jobs from a script, or any other program that is not a worker, through a server's admin address."""

from __future__ import annotations

import json
import math
import os
import socket
import stat
import time
from base64 import b64decode, b64encode
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from .._job import new_id, text_of_id
from .._wire.jobs import fault_of_job
from ..errors import ConnectError, JobError
from ._arguments import encode_arguments
from ._options import options
from ._values import decode_result

ANSWER_SECONDS = 30  # for a response, in addition to the time that it was asked to wait; then: ConnectError
WAIT_SECONDS = 20  # for which one request waits for a result; then: the next one


def connect(url: str | None = None) -> Connection:
    """A connection to a server: `with jobs.connect("http://127.0.0.1:8001") as c: c.enqueue("job", 7)`.

    `url` is the server's admin address, or `unix:FILE`; by default the value of PARKADE_ADMIN, else the only server of
    this user on this machine. Nothing is sent yet. Raises `ConnectError` where there is no server, or several.
    """
    return Connection(url or os.environ.get("PARKADE_ADMIN", "").partition(",")[0].strip() or _private())


class Connection:
    """Make it with `connect`. One thread at a time may use it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._http = _http(address)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next call would connect again."""
        self._http.close()

    def enqueue(
        self,
        name: str,
        /,
        *args: Any,
        delay: float | None = None,
        at: datetime | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        queue: str | None = None,
        **kwargs: Any,
    ) -> str:
        """Enqueues the job of that name and returns its id, or that of the existing job with its key. By then it is
        stored.

        The options are those of a job function's `enqueue`, but only the worker sees whether the arguments fit. Raises
        `ValueError` for an invalid name, `ConnectError` when no server answers, or when it cannot store the job.
        """
        _check_name(name)
        told = options(delay, at, priority, key, queue)
        asked = {
            "id": text_of_id(new_id()),
            "name": name,
            "arguments": b64encode(encode_arguments(name, args, kwargs)).decode(),
            "delay": told.delay or None,
            "at": told.at,
            "priority": told.priority,
            "queue": told.queue,
            "key": told.key,
        }
        body = json.dumps({key: value for key, value in asked.items() if value is not None}).encode()
        status, answer = self._ask("POST", "/jobs", body)
        if status not in (200, 201):
            raise _refused(status, answer)
        return str(answer["id"])

    def result(self, id: str, timeout: float | None = None) -> Any:
        """Waits until the job has ended, and gives what it has returned.

        Raises `TimeoutError` after `timeout` seconds, `JobError` for a job that has no result.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = WAIT_SECONDS if until is None else max(0.0, min(WAIT_SECONDS, until - time.monotonic()))
            status, answer = self._ask("GET", f"/jobs/{quote(id, safe='')}?wait={math.ceil(left)}")
            if status == 404:
                raise JobError(str(answer.get("error", "")), reason="missing", id=id)
            if status != 200:
                raise _refused(status, answer)
            match answer.get("state"):
                case "completed":
                    return decode_result(b64decode(answer["result"])) if answer.get("result") is not None else None
                case "dead" | "cancelled" as reason:
                    raise JobError(str(answer.get("error") or ""), reason=reason, id=id)
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"the job {id} has not ended after {timeout} seconds")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
        """Sends a request, and again if the connection was closed meanwhile: all requests here are idempotent."""
        try:
            status, text = self._exchange(method, path, body)
        except (HTTPException, ConnectionError):
            self._http.close()
            status, text = self._once_more(method, path, body)
        except OSError as error:
            raise self._unreachable(error) from error
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ConnectError(f"unexpected response from {self._address}; is this an --admin address?")
        return status, answer

    def _once_more(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            return self._exchange(method, path, body)
        except (HTTPException, OSError) as error:
            raise self._unreachable(error) from error

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        headers = {"content-type": "application/json"} if body is not None else {}
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        return response.status, response.read()

    def _unreachable(self, error: Exception) -> ConnectError:
        self._http.close()
        return ConnectError(f"cannot reach parkade at {self._address}: {error}; is it running?")


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("parkade", timeout=WAIT_SECONDS + ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _http(address: str) -> HTTPConnection:
    if address.startswith("unix:"):
        return _UnixConnection(address.removeprefix("unix:"))
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        if parts.scheme != "http" or not parts.hostname or parts.port is None or parts.path not in ("", "/"):
            raise ValueError("not of that form")
    except ValueError as error:  # also a port that is none
        raise ConnectError(f"an admin address is http://HOST:PORT or unix:FILE, not {address!r}") from error
    return HTTPConnection(parts.hostname, parts.port, timeout=WAIT_SECONDS + ANSWER_SECONDS)


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a job is named by a text, not by {name!r}")
    if (reason := fault_of_job(name)) is not None:
        raise ValueError(reason)


def _refused(status: int, answer: dict[str, Any]) -> ConnectError:
    return ConnectError(f"parkade refuses ({status}): {answer.get('error', 'no reason is given')}")


# Private sockets, found as `parkade status` finds them


def _private() -> str:
    found = [path for folder in _folders() if _is_private(folder) for path in _sockets(folder) if _is_alive(path)]
    if not found:
        raise ConnectError(
            "no parkade of this user is running here: give jobs.connect the --admin address, or set PARKADE_ADMIN"
        )
    if len(found) > 1:
        told = ", ".join(f"unix:{path}" for path in found)
        raise ConnectError(f"several are running: give jobs.connect the one that is meant ({told})")
    return f"unix:{found[0]}"


def _folders() -> list[Path]:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return [*([runtime / "parkade"] if runtime.is_absolute() else []), Path(f"/tmp/parkade-{os.getuid()}")]


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of our own, not a link, and closed to others: in `/tmp` anyone may have made it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700


def _sockets(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.sock") if path.stem.isdigit())


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # a full backlog
            return True
        except OSError:
            return False
    return True
