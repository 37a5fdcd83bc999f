"""The `environ` of a request, as PEP 3333 and common servers have it."""

from __future__ import annotations

import io
import sys
from typing import Any, Protocol

from .._compiled import accelerator
from .._requests.body_stream import file_of
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


def environ_of(
    raw: p.Request, head: p.RequestHead, source: BodySource, root_path: RootPath, threads: bool = False
) -> dict[str, Any]:
    """The environment of one request. Text of the client is its bytes as ISO-8859-1, as PEP 3333 has it. `threads` says
    whether another request may be answered at the same time.

    A body that follows is read from `source`: as it comes if its length is known, at once otherwise, because many
    applications read nothing without `CONTENT_LENGTH`. Raises `BodyCutOff` then.
    """
    body = raw.body
    fields = accelerator.wsgi_fields(head.headers)
    if fields is None:
        fields = _fields(p.read_headers(head.headers))
    if head.server_port:
        name, port = head.server, str(head.server_port)
    else:  # a Unix socket
        name, port = server_of(fields.get("HTTP_HOST", ""), head.scheme)
    if head.client_port:
        fields["REMOTE_PORT"] = str(head.client_port)
    path = percent_decode(head.path.encode()).decode("latin-1")
    if body is None and "CONTENT_LENGTH" not in fields:
        body = b"".join(iter(source.read_body, b""))
    if body or (body is not None and "CONTENT_LENGTH" in fields):
        fields["CONTENT_LENGTH"] = str(len(body))
    return {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": root_path.native,
        "PATH_INFO": root_path.below(path) if root_path else path,
        "QUERY_STRING": _native(head.query),
        "REQUEST_URI": _native(f"{head.path}?{head.query}" if head.query else head.path),
        "REMOTE_ADDR": head.client,
        "SERVER_NAME": name,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": "HTTP/2.0" if head.version == "2" else f"HTTP/{head.version}",
        "SERVER_SOFTWARE": "parkade",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": head.scheme,
        "wsgi.input": file_of(source.read_body) if body is None else io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": threads,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
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
