"""Redirects: `redirect(url)`, and which address a client may choose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from ..errors import HTTPError
from .response import Response

_STATUSES = (301, 302, 303, 307, 308)
_KEPT = "%/:?#[]@!$&'()*+,;=~"  # what an address may have (RFC 3986); an escape is not escaped again
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f]")  # browsers leave some of them out, so `/\t/host` is another host


def redirect(
    url: str,
    status: int = 303,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    *,
    local: bool = False,
) -> Response:
    """Sends the client to another address.

    ```python
    @app.post("/login")
    def login(name: str) -> Response:
        return redirect("/").set_cookie("user", name)
    ```

    `status` is 303 (go there with GET: after a POST), 302, 301 (moved for good), 307 or 308 (the same with the method
    and body kept). With `local` the address must be a path on this server: for one that the client has sent, such as
    `?next=`, which could otherwise lead your users to someone else's page. Any other is 400 then.

    Raises `ValueError` for another status and an address with control characters, `HTTPError` 400 as said.
    """
    if status not in _STATUSES:
        raise ValueError(f"a redirect has the status {', '.join(map(str, _STATUSES))}, not {status}")
    if local and not is_local(url):
        raise HTTPError(400, "the address must be a path on this server")
    if not url or _INVISIBLE.search(url):
        raise ValueError(f"{url!r} is not an address to redirect to")
    response = Response(None, status, headers)
    response.headers["location"] = quote(url, safe=_KEPT)
    return response


def is_local(url: str) -> bool:
    """Whether a browser takes it for a path on this server. Browsers read a backslash as a slash."""
    return url.startswith("/") and not url.startswith("//") and "\\" not in url and not _INVISIBLE.search(url)
