"""An error as its client reads it: problem details (RFC 9457) for programs, a page for browsers, text for a client that
asks for text. The same as the core writes (`http/problem.rs`).
"""

from __future__ import annotations

import html as markup
from collections.abc import Mapping
from typing import Any

from .._requests.request import Request
from .._unicode import encodable
from ..errors import HTTPError, InvalidParameter, QueryError, phrase
from .encoding import json_encode
from .response import HTML, TEXT, Response

PROBLEM = "application/problem+json"

_NAMES = {
    PROBLEM: {PROBLEM: 2, "application/json": 2, "application/*": 1, "*/*": 0},
    HTML: {"text/html": 2, "*/*": 0},
    TEXT: {"text/plain": 2, "text/*": 1, "*/*": 0},
}
"""How precisely media ranges name each form. If a client likes two of them equally, it gets the first."""

BAD_TARGET = "the request target is malformed"
DOT_SEGMENT = "a path must not have segments that are . or .. (clients resolve them)"
NO_METHOD = "this path does not support the method; see Allow"


def no_route(other: str | None) -> str:
    """In the words of the core. `other`: the path that has a route, with a slash more or less at its end."""
    hint = "" if other is None else f"; there is a route for {other}"
    return f"no route matches this path{hint}"


def preferred(accept: str) -> str:
    """The content type that a client with this `Accept` wants for an error: the one with the highest weight; among
    equals, the one that is named most precisely (RFC 9110, section 12.5.1). A client that names none gets problem
    details.
    """
    wanted: dict[str, tuple[int, float]] = {}
    for one in accept.split(","):
        media, *parameters = (part.strip() for part in one.split(";"))
        weight = next((found for found in map(_weight, parameters) if found is not None), 1.0)
        for form, names in _NAMES.items():
            precision = names.get(media.lower())
            if precision is not None:
                wanted[form] = max(wanted.get(form, (0, 0.0)), (precision, weight))
    ranks = {form: wanted[form][::-1] for form in _NAMES if form in wanted and wanted[form][1] > 0}
    return max(ranks, key=ranks.__getitem__, default=PROBLEM)


def _weight(parameter: str) -> float | None:
    name, _, value = parameter.partition("=")
    if name.strip().lower() != "q":
        return None
    try:
        return min(max(float(value), 0.0), 1.0)
    except ValueError:
        return None


def problem_response(
    error: HTTPError, request: Request | None, *, detail: str | None = None, more: Mapping[str, Any] | None = None
) -> Response:
    """The error in the form that the client wants. `more`: what only developers are shown."""
    form = PROBLEM if request is None else preferred(", ".join(request.headers.getlist("accept")))
    told = encodable(error.detail if detail is None else detail)
    shown = {name: encodable(text) if isinstance(text, str) else text for name, text in (more or {}).items()}
    invalid = error.parameters if isinstance(error, InvalidParameter) else []
    if form == PROBLEM:
        body: bytes | str = json_encode(_members(error, told, invalid) | shown)
    elif form == HTML:
        body = _page(error.status, told, invalid, shown)
    else:
        lines = [f"{error.status} {phrase(error.status)}", told, *map(_line, invalid), *_shown(shown)]
        body = "\n".join(lines) + "\n"
    return Response(body, error.status, {"content-type": form, "vary": "Accept"} | error.headers)


def _members(error: HTTPError, detail: str, invalid: list[dict[str, object]]) -> dict[str, Any]:
    told: dict[str, Any] = {"title": phrase(error.status), "status": error.status, "detail": detail}
    told["fault"] = error.fault
    if isinstance(error, QueryError):
        told["effect"] = error.effect
    if isinstance(error, InvalidParameter):
        told["parameters"] = invalid
    return told


def _line(parameter: dict[str, object]) -> str:
    return f"{parameter['name']}: {parameter['reason']}"


def _shown(more: Mapping[str, Any]) -> list[str]:
    return [str(value).rstrip("\n") for value in more.values() if value is not None]


def _page(status: int, detail: str, invalid: list[dict[str, object]], more: Mapping[str, Any]) -> str:
    title = f"{status} {phrase(status)}"
    told = _escaped(detail)
    body = f"<p class=status>{status}</p>\n<h1>{phrase(status)}</h1>\n<p class=detail>{told}</p>"
    if invalid:
        body += "\n<ul>" + "".join(f"\n<li>{_escaped(_line(one))}" for one in invalid) + "\n</ul>"
    if shown := _shown(more):
        body += "\n<pre>" + _escaped("\n".join(shown)) + "</pre>"
    return _PAGE % (title, body)


def _escaped(text: str) -> str:
    """As the core does it."""
    return markup.escape(text, quote=False).replace('"', "&quot;")


_PAGE = """<!doctype html>
<html lang=en>
<meta charset=utf-8>
<meta name=viewport content="width=device-width">
<title>%s</title>
<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 }
.status { margin: 0; color: light-dark(#57606a, #9198a1) }
.detail::first-letter { text-transform: uppercase }
.what { font-family: ui-monospace, monospace; color: light-dark(#a40e26, #ff8182) }
pre { overflow-x: auto; padding: 1rem; border-radius: .5rem; background: light-dark(#f3f4f6, #1f2328) }</style>
%s
</html>
"""
