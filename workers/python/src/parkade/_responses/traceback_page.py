"""The page of an exception, for developers: each frame of the application with its lines and its variables."""

from __future__ import annotations

import html as markup
import linecache
import reprlib
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType

from .._log import format_error, is_our_code
from .._requests.request import Request
from .._unicode import encodable
from ..errors import HTTPError
from .response import Response, html

_LINES_AROUND = 5
_VALUE_MAX = 300  # characters of a variable; what is longer is shown in part
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def traceback_page(error: BaseException, request: Request) -> Response:
    """What raised, where, with which variables, and for which request."""
    title = _escaped(f"{type(error).__name__}: {error}")
    query = f"?{request.query_string}" if request.query_string else ""
    about = {"route": request.route or "none", **{f"{{{name}}}": value for name, value in request.parameters.items()}}
    page = _PAGE.format(
        title=title,
        request=_escaped(f"{request.method} {request.raw_path}{query}"),
        about=_table(about.items()),
        frames="".join(_frames(error.__traceback__)),
        traceback=_escaped(format_error(error)),
        headers=_table(request.headers.pairs()),
    )
    return html(page, error.status if isinstance(error, HTTPError) else 500)


def _escaped(text: object) -> str:
    return markup.escape(encodable(str(text)))


def _table(rows: Iterable[tuple[str, object]]) -> str:
    return "".join(f"<tr><th>{_escaped(name)}<td>{_escaped(value)}" for name, value in rows)


def _frames(trace: TracebackType | None) -> Iterator[str]:
    """The frames that are not Parkade's, the innermost first; that of the application nearest to the fault is open."""
    frames = [each for each in traceback.walk_tb(trace) if not is_our_code(each[0].f_code.co_filename)]
    is_open = False
    for frame, number in reversed(frames):
        code = frame.f_code
        is_ours = not code.co_filename.startswith(_LIBRARIES)
        opened = is_ours and not is_open
        is_open = is_open or opened
        name = f"{Path(code.co_filename).name}:{number}"
        yield (
            f"<details{' open' if opened else ''}><summary>{_escaped(name)} in <b>{_escaped(code.co_name)}</b>"
            f"{'' if is_ours else ' (library)'}</summary><p>{_escaped(code.co_filename)}:{number}</p>"
            f"<pre>{''.join(_lines(code.co_filename, number))}</pre>{_variables(frame)}</details>"
        )


def _lines(file: str, number: int) -> Iterator[str]:
    linecache.checkcache(file)
    for at in range(max(1, number - _LINES_AROUND), number + _LINES_AROUND + 1):
        if line := linecache.getline(file, at):
            kind = "b" if at == number else "i"
            yield f"<{kind}>{at:5} {_escaped(line.rstrip())}</{kind}>"


def _variables(frame: FrameType) -> str:
    shown = [(name, _shown(value)) for name, value in frame.f_locals.items() if not name.startswith("__")]
    # At the top of a module these are all of its names.
    return f"<table>{_table(shown)}</table>" if shown and frame.f_code.co_name != "<module>" else ""


def _shown(value: object) -> str:
    try:
        text = _repr.repr(value)
    except Exception as error:  # a `__repr__` of the application, of an object that may be half made
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= _VALUE_MAX else text[:_VALUE_MAX] + "…"


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _VALUE_MAX
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = 20

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
h1 {{ font-size: 1.4rem; line-height: 1.25; overflow-wrap: anywhere }} h2 {{ font-size: 1rem; margin-top: 2rem }}
p {{ margin: .5rem 0; opacity: .75; overflow-wrap: anywhere }}
pre {{ overflow-x: auto; padding: .8rem 0; background: #8882; border-radius: 6px; font-size: .875rem }}
pre > * {{ display: block; min-width: max-content; padding: 0 1rem; font-weight: normal; font-style: normal }}
pre b {{ background: #f003; box-shadow: inset 3px 0 #d33 }}
pre.text {{ padding: .8rem 1rem }}
details {{ margin: .5rem 0; border-top: 1px solid #8884; padding-top: .5rem }} summary {{ cursor: pointer }}
table {{ border-collapse: collapse; font-size: .875rem }}
th, td {{ text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0; overflow-wrap: anywhere }}
th {{ font-weight: normal; opacity: .75; min-width: 8rem }} td {{ font-family: ui-monospace, monospace }}
button {{ font: inherit; padding: .1rem .8rem; margin-left: .8rem; cursor: pointer }}
</style>
<h1>{title}</h1><p>{request}</p><table>{about}</table>
{frames}
<h2>Traceback <button id="copy">Copy</button></h2><pre class="text" id="traceback">{traceback}</pre>
<h2>Headers</h2><table>{headers}</table>
<script>
document.getElementById("copy").onclick = async (event) => {{
  await navigator.clipboard.writeText(document.getElementById("traceback").textContent);
  event.target.textContent = "Copied";
}};
</script></html>
"""
