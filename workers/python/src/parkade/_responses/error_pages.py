"""What only developers see: the page of an exception, and the list of routes for a path that has none."""

from __future__ import annotations

import html as markup
import linecache
import traceback
from collections.abc import Iterable
from types import TracebackType

from .._log import format_error, is_our_code
from .._requests.request import Request
from ..errors import HTTPError, QueryError
from .problems import preferred, problem_response
from .response import HTML, Response, html

_FAILED = "the application failed; its log says why"


def failure_response(error: BaseException, request: Request | None, dev: bool) -> Response:
    """The response to a fault of the application: without details for clients, with all details for developers."""
    if dev and request is not None and preferred(request.headers.get("accept", "")) == HTML:
        return _traceback_page(error, request)
    if isinstance(error, QueryError):
        shown = {"message": str(error), "sqlstate": error.sqlstate} if dev else {}
        return problem_response(error, request, more=shown)
    if dev:
        last = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        return problem_response(HTTPError(500, last), request, more={"traceback": format_error(error)})
    return problem_response(HTTPError(500, _FAILED), request)


def routes_page(request: Request, routes: Iterable[tuple[str, str]], hint: str) -> Response:
    """For developers: a path without a route, and the routes that there are, as methods and path."""
    escape = markup.escape
    rows = "".join(f"<tr><th>{escape(methods)}<td><code>{escape(path)}</code>" for methods, path in routes)
    told = f"{request.method} {request.raw_path}"
    page = _ROUTES.format(request=escape(told), hint=f"<p>{escape(hint)}</p>" if hint else "", routes=rows)
    return html(page, 404)


def _traceback_page(error: BaseException, request: Request) -> Response:
    escape = markup.escape
    title = f"{type(error).__name__}: {error}"
    page = _PAGE.format(
        title=escape(title),
        request=escape(
            f"{request.method} {request.raw_path}{'?' + request.query_string if request.query_string else ''}"
        ),
        source=_source(error.__traceback__),
        traceback=escape(format_error(error)),
        headers="".join(f"<tr><th>{escape(name)}<td>{escape(value)}" for name, value in request.headers.pairs()),
    )
    return html(page, error.status if isinstance(error, HTTPError) else 500)


def _source(trace: TracebackType | None) -> str:
    """The lines around the one that raised, in the innermost frame of the application."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(trace) if not is_our_code(frame.f_code.co_filename)]
    if not frames:
        return ""
    frame, number = frames[-1]
    lines = []
    for at in range(max(1, number - 5), number + 6):
        line = markup.escape(linecache.getline(frame.f_code.co_filename, at).rstrip("\n"))
        lines.append(f"<b>{at:5} {line}</b>" if at == number else f"{at:5} {line}")
    return f"<h2>{markup.escape(frame.f_code.co_filename)}:{number}</h2><pre>{chr(10).join(lines)}</pre>"


_STYLE = """<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color-scheme: light dark }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1rem }}
pre {{ overflow-x: auto; padding: 1rem; background: #8882; border-radius: 6px }}
pre b {{ background: #f004 }} th {{ text-align: left; padding-right: 1rem; font-weight: normal; opacity: .7 }}
</style>"""

_PAGE = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{{title}}</title>
{_STYLE}
<h1>{{title}}</h1><p>{{request}}</p>{{source}}<h2>Traceback</h2><pre>{{traceback}}</pre><h2>Headers</h2><table>{{headers}}</table></html>
"""

_ROUTES = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>404</title>
{_STYLE}
<h1>There is no route for {{request}}</h1>{{hint}}<h2>The routes of the application</h2><table>{{routes}}</table></html>
"""
