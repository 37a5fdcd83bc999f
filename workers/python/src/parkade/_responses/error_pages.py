"""The response to a fault of the application; and for developers, the routes that there are for a path without one."""

from __future__ import annotations

import html as markup
import traceback
from collections.abc import Iterable

from .._log import format_error
from .._requests.request import Request
from .._wire.ready import Route
from ..errors import HTTPError, QueryError
from .problems import preferred, problem_response
from .response import HTML, Response, html
from .traceback_page import traceback_page

_FAILED = "the application failed; its log says why"


def failure_response(error: BaseException, request: Request | None, dev: bool) -> Response:
    """The response to a fault of the application: without details for clients, with all details for developers."""
    if dev and request is not None and preferred(request.headers.get("accept", "")) == HTML:
        return traceback_page(error, request)
    if isinstance(error, QueryError):
        shown = {"message": str(error), "sqlstate": error.sqlstate} if dev else {}
        return problem_response(error, request, more=shown)
    if dev:
        last = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        return problem_response(HTTPError(500, last), request, more={"traceback": format_error(error)})
    return problem_response(HTTPError(500, _FAILED), request)


def routes_page(request: Request, routes: Iterable[Route], hint: str) -> Response:
    """For developers: a path without a route, and the routes that there are."""
    escape = markup.escape
    rows = "".join(
        f"<tr><th>{escape(', '.join(route.methods))}<td><code>{escape(route.path)}</code>"
        f"<td>{escape((route.handler or '').rpartition(':')[2])}<td>{escape(route.source or '')}"
        for route in routes
    )
    told = f"{request.method} {request.raw_path}"
    page = _ROUTES.format(request=escape(told), hint=f"<p>{escape(hint)}</p>" if hint else "", routes=rows)
    return html(page, 404)


_STYLE = """<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1rem }}
th {{ text-align: left; font-weight: normal; opacity: .7 }} th, td {{ padding-right: 1rem; vertical-align: top }}
td:last-child {{ opacity: .7 }}
</style>"""

_ROUTES = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>404</title>
{_STYLE}
<h1>There is no route for {{request}}</h1>{{hint}}<h2>The routes of the application</h2><table>{{routes}}</table></html>
"""
