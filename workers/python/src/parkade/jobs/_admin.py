"""HTTP to the admin address of a server, and the private sockets where the servers of this user are found."""

from __future__ import annotations

import json
import os
import socket
import stat
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .._limits import ADMIN_RESPONSE_SECONDS, RESULT_WAIT_SECONDS
from ..errors import ConnectError
from ._script_port import refused

TRANSACTION = "parkade-transaction/1"
"""What the connection of a transaction speaks instead of HTTP."""
_SECONDS = RESULT_WAIT_SECONDS + ADMIN_RESPONSE_SECONDS


class Admin:
    """A connection to an admin address: `http://HOST:PORT`, `HOST:PORT`, a port of this machine, or `unix:FILE`."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._address = address
        self._token = token
        self._http = _http(address)

    def close(self) -> None:
        """Closes the connection; the next request would connect again."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        is_idempotent: bool = True,
    ) -> tuple[int, dict[str, Any]]:
        """Gives the status and the body of the response.

        Sends the request again if the connection was closed meanwhile. One that is not idempotent has a connection of
        its own instead, which nobody has closed. Raises `ConnectError`.
        """
        if not is_idempotent:
            self._http.close()
        try:
            status, text = self._exchange(method, path, body, content_type)
        except (HTTPException, ConnectionError) as error:
            if not is_idempotent:
                raise self._unreachable(error) from error
            self._http.close()
            status, text = self._once_more(method, path, body, content_type)
        except OSError as error:
            raise self._unreachable(error) from error
        return status, self._answer(text)

    def _answer(self, text: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ConnectError(f"unexpected response from {self._address}; is this an --admin address?")
        return answer

    def _headers(self) -> dict[str, str]:
        return {} if self._token is None else {"authorization": f"Bearer {self._token}"}

    def begin_transaction(self) -> tuple[socket.socket, HTTPResponse]:
        """A connection of its own for a transaction, which speaks frames from now on, and its response, whose
        `fp` reads from it. Any thread may call it. Raises `ConnectError`.
        """
        http = _http(self._address)
        headers = self._headers() | {"connection": "upgrade", "upgrade": TRANSACTION, "content-length": "0"}
        try:
            http.request("POST", "/transaction", None, headers)
            response = http.getresponse()
            if response.status == 101:
                http.sock.settimeout(None)  # the server bounds how long a statement takes
                http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return http.sock, response
            text = response.read()
        except (HTTPException, OSError) as error:
            http.close()
            raise ConnectError(f"cannot reach parkade at {self._address}: {error}; is it running?") from error
        http.close()
        raise refused(response.status, self._answer(text))

    def _once_more(self, method: str, path: str, body: bytes | None, content_type: str) -> tuple[int, bytes]:
        try:
            return self._exchange(method, path, body, content_type)
        except (HTTPException, OSError) as error:
            raise self._unreachable(error) from error

    def _exchange(self, method: str, path: str, body: bytes | None, content_type: str) -> tuple[int, bytes]:
        headers = {"content-type": content_type} if body is not None else {}
        self._http.request(method, path, body, headers | self._headers())
        response = self._http.getresponse()
        return response.status, response.read()

    def _unreachable(self, error: Exception) -> ConnectError:
        self._http.close()
        return ConnectError(f"cannot reach parkade at {self._address}: {error}; is it running?")


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("parkade", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _http(address: str) -> HTTPConnection:
    if address.startswith("unix:"):
        return _UnixConnection(address.removeprefix("unix:"))
    place = f"127.0.0.1:{address}" if address.isascii() and address.isdigit() else address
    parts = urlsplit(place if "://" in place else f"http://{place}")
    try:
        if parts.scheme != "http" or not parts.hostname or parts.port is None or parts.path not in ("", "/"):
            raise ValueError("not of that form")
    except ValueError as error:  # also a port that is none
        raise ConnectError(f"an admin address is http://HOST:PORT, PORT or unix:FILE, not {address!r}") from error
    return HTTPConnection(parts.hostname, parts.port, timeout=_SECONDS)


# Private sockets, found as `parkade status` finds them


def address_of_server() -> str:
    """The address of the server whose worker this is, otherwise of the one that PARKADE_ADMIN names, otherwise of the
    only one of this user on this machine. A worker's own server comes first: the variable may be that of another one,
    or an address at which nothing may be changed. Raises `ConnectError` for none or several.
    """
    named = os.environ.get("PARKADE_ADMIN", "").partition(",")[0].strip()
    return own_address() or named or _only_address()


def own_address() -> str | None:
    """The address of the server whose worker this is; None elsewhere, or if it has no private socket."""
    own = [path for path in _living() if path.stem == str(os.getppid())]
    return f"unix:{own[0]}" if own else None


def _only_address() -> str:
    found = _living()
    if not found:
        raise ConnectError(
            "no parkade of this user is running here: give connect the --admin address, or set PARKADE_ADMIN"
        )
    if len(found) > 1:
        told = ", ".join(f"unix:{path}" for path in found)
        raise ConnectError(f"several are running: pass the address of one to connect ({told})")
    return f"unix:{found[0]}"


def _living() -> list[Path]:
    return [path for folder in _folders() if _is_private(folder) for path in _sockets(folder) if _is_alive(path)]


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
