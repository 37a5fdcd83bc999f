"""The `environ` of a request, as PEP 3333 and common servers have it."""

from __future__ import annotations

import io
import sys
from typing import Any, Protocol

from .._compiled import accelerator
from .._requests.body_stream import file_of, on_disk
from .._requests.percent import percent_decode
from .._wire import payloads as p
from .authority import server_of
from .file_wrapper import FileWrapper
from .root_path import RootPath

_LEFT_OUT = frozenset({"transfer-encoding", "proxy"})
"""The body is whole when it gets here; and `Proxy` would become HTTP_PROXY, which libraries take for a setting."""


class BodySource(Protocol):
    """The link, as far as a request reads its body."""

    def read_body(self) -> bytes:
        """The next piece of the body; nothing after its end. Raises `BodyCutOff` if the rest will not come."""


class _NoBody:
    def read_body(self) -> bytes:
        return b""


class Environs:
    """Makes the environments of an application's requests. `threads` says whether another request may be answered at
    the same time.
    """

    def __init__(self, root_path: RootPath, threads: bool = False) -> None:
        self._root_path = root_path
        # Keys without a value are to be filled in: a dictionary that has its keys is made faster than one that gets
        # them.
        self._constants: dict[str, Any] = {
            "REQUEST_METHOD": "",
            "SCRIPT_NAME": root_path.native,
            **dict.fromkeys(("PATH_INFO", "QUERY_STRING", "REQUEST_URI", "REMOTE_ADDR"), ""),
            **dict.fromkeys(("SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL"), ""),
            "SERVER_SOFTWARE": "parkade",
            "wsgi.version": (1, 0),
            **dict.fromkeys(("wsgi.url_scheme", "wsgi.input", "wsgi.errors"), ""),
            "wsgi.input_terminated": True,
            "wsgi.multithread": threads,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            "wsgi.file_wrapper": FileWrapper,
            "parkade.request_id": "",
        }

    def make(self, raw: p.Request, source: BodySource) -> dict[str, Any]:
        """The environment of one request.

        A body that follows is read from `source`: as it comes if its length is known, at once otherwise, because many
        applications read nothing without `CONTENT_LENGTH`. It is longer than the core collects, so it goes to a file.
        Raises `BodyCutOff` then, or `OSError` if the disk has no room.
        """
        environ = accelerator.wsgi_environ(raw.head, self._constants)
        if environ is None:
            environ = self._of_head(p.read_head(raw.head))
        if self._root_path:
            environ["PATH_INFO"] = self._root_path.below(environ["PATH_INFO"])
        body = raw.body
        if body is not None:
            if body or "CONTENT_LENGTH" in environ:
                environ["CONTENT_LENGTH"] = str(len(body))
            environ["wsgi.input"] = io.BytesIO(body)
        elif "CONTENT_LENGTH" in environ:
            environ["wsgi.input"] = file_of(source.read_body)
        else:
            environ["wsgi.input"], length = on_disk(source.read_body)
            environ["CONTENT_LENGTH"] = str(length)
        environ["wsgi.errors"] = sys.stderr  # of now: applications replace it
        return environ

    def make_again(self, raw: p.Request) -> dict[str, Any]:
        """That of a request that was kept during a wait, without its body."""
        return self.make(raw, _NoBody())

    def _of_head(self, head: p.RequestHead) -> dict[str, Any]:
        """What it says of the head of its request. Text of the client is its bytes as ISO-8859-1, as PEP 3333 has
        it.
        """
        fields = _fields(p.read_headers(head.headers))
        if head.server_port:
            name, port = head.server, str(head.server_port)
        else:  # a Unix socket
            name, port = server_of(fields.get("HTTP_HOST", ""), head.scheme)
        if head.client_port:
            fields["REMOTE_PORT"] = str(head.client_port)
        return {
            **self._constants,
            "REQUEST_METHOD": head.method,
            "PATH_INFO": percent_decode(head.path.encode()).decode("latin-1"),
            "QUERY_STRING": _native(head.query),
            "REQUEST_URI": _native(f"{head.path}?{head.query}" if head.query else head.path),
            "REMOTE_ADDR": head.client,
            "SERVER_NAME": name,
            "SERVER_PORT": port,
            "SERVER_PROTOCOL": "HTTP/2.0" if head.version == "2" else f"HTTP/{head.version}",
            "wsgi.url_scheme": head.scheme,
            "parkade.request_id": head.id,
            **fields,
        }


def _fields(headers: list[Any]) -> dict[str, str]:
    """The header fields by their names in the environment. One with an underscore would pass for another: it is left
    out.
    """
    found: dict[str, str] = {}
    for name, value in zip(headers[::2], headers[1::2], strict=True):
        if "_" in name or name in _LEFT_OUT:
            continue
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        text = value.decode("latin-1")
        if key in found:
            text = f"{found[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{text}"
        found[key] = text
    return found


def _native(text: str) -> str:
    return text if text.isascii() else text.encode().decode("latin-1")
