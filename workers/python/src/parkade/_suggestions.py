"""What to write instead, for names and options that an application does not have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable


def for_attribute(owner: object, name: str) -> str:
    """What to use instead of an attribute that an application or a router does not have: what the name means in other
    frameworks, or one that is written alike; empty if nothing is near.
    """
    if (meant := _ELSEWHERE.get(name)) is not None:
        return f": {meant}"
    near = _nearest(name, [known for known in dir(type(owner)) if not known.startswith("_")])
    return f"; did you mean {near[0]!r}?" if near else ""


def for_import(error: BaseException, known: Iterable[str]) -> str:
    """A line about a name that was imported from the package, which does not have it; empty for any other error."""
    found = _IMPORT.match(str(error)) if isinstance(error, ImportError) else None
    if found is None:
        return ""
    name = found["name"]
    if (meant := _IMPORTED_ELSEWHERE.get(name)) is not None:
        return f"parkade has no {name}: {meant}\n"
    near = _nearest(name, list(known))
    return f"parkade has no {name}; did you mean {near[0]!r}?\n" if near else ""


def for_call(error: BaseException, kinds: Iterable[type]) -> str:
    """A line about a call of one of these classes, or of a method of theirs, with arguments that it does not take;
    empty for any other error.
    """
    if not isinstance(error, TypeError):
        return ""
    if (bare := _BARE.match(str(error))) is not None:
        return f"write @app.{bare['method']} without parentheses\n"
    found = _CALL.match(str(error))
    if found is None:
        return ""
    for kind in kinds:
        method = vars(kind).get(found["method"])
        if kind.__name__ == found["kind"] and inspect.isfunction(method):
            return _options(f"{kind.__name__}(…)" if method.__name__ == "__init__" else method.__name__, method, found)
    return ""


def _options(called: str, method: object, found: re.Match[str]) -> str:
    parameters = inspect.signature(method).parameters  # type: ignore[arg-type]
    options = [name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY]
    told = f"{called} takes the options {', '.join(options)}" if options else f"{called} takes no options"
    unknown = found["option"] or ""
    if near := _nearest(unknown, options):
        return f"{told}; did you mean {near[0]}?\n"
    return f"{told}; {_METHODS}\n" if unknown == "methods" else f"{told}\n"


def _nearest(name: str, known: list[str]) -> list[str]:
    import difflib  # only an application with a mistake needs it

    return difflib.get_close_matches(name, known, 1)


_CALL = re.compile(
    r"(?P<kind>\w+)\.(?P<method>\w+)\(\) "
    r"(?:got an unexpected keyword argument '(?P<option>\w+)'|takes .* positional arguments? but )"
)
_BARE = re.compile(r"\w+\.(?P<method>before|after|on_start|on_stop)\(\) missing 1 required positional argument")
_METHODS = "for several methods, write app.route(path, methods=[…])"
_RUN = "the server runs the application: `parkade serve app.py`, or `parkade dev app.py` while you write"
_SOCKET = "write @app.websocket(path) over a coroutine that takes socket: WebSocket"
_BEFORE = "write @app.before over a function of the request"
_AFTER = "write @app.after over a function of the request and the response"
_START = "write @app.on_start, or @app.on_stop, over a function without parameters"
_ERROR = "write @app.error(404), or @app.error(KeyError)"
_RECURRING = "write @app.every('5 minutes'), or @app.cron('0 3 * * *'), over the function"
_INCLUDE = "write app.include(router, prefix='/…')"

_IMPORT = re.compile(r"cannot import name '(?P<name>\w+)' from 'parkade'")
_RETURNED = "a handler returns dicts, lists, dataclasses and models, which become JSON"
_DECLARED = "a parameter of a handler is read from the request by its name and annotation"
_SENT_LATER = "write @app.job over the function, and function.enqueue(…)"

_IMPORTED_ELSEWHERE = {
    "APIRouter": "use Router",
    "Blueprint": "use Router",
    "BackgroundTasks": _SENT_LATER,
    "BackgroundTask": _SENT_LATER,
    "Body": "a parameter named body, with an annotation, is the body",
    "Depends": "write a before hook of a router, and request.state for what it finds",
    "FastAPI": "use App",
    "Flask": "use App",
    "Form": _DECLARED,
    "File": "a parameter annotated Upload is a file of a form",
    "HTMLResponse": "write html(text)",
    "HTTPException": "use HTTPError",
    "JSONResponse": f"{_RETURNED}; Response(value, status, headers) sets the rest",
    "Path": _DECLARED,
    "PlainTextResponse": "a handler returns text",
    "RedirectResponse": "write redirect(url)",
    "StreamingResponse": "write a handler that yields",
    "UploadFile": "use Upload",
    "WebSocketDisconnect": "use WebSocketClosed",
    "WebSocketException": "raise HTTPError, or await socket.close(code)",
    "abort": "raise HTTPError(404)",
    "jsonify": _RETURNED,
    "make_response": "write Response(body, status, headers)",
    "render_template": "write pages = app.templates(folder), and pages.render(name, …)",
    "request": "a handler gets it as a parameter named request",
    "session": "write response.set_cookie(…), and keep the session in a database",
    "url_for": "write app.path(name, …)",
}

_ELSEWHERE = {
    "run": _RUN,
    "listen": _RUN,
    "serve": _RUN,
    "websocket_route": _SOCKET,
    "add_websocket_route": _SOCKET,
    "before_request": _BEFORE,
    "after_request": _AFTER,
    "middleware": "write @app.before and @app.after",
    "add_middleware": "write @app.before and @app.after",
    "on_event": _START,
    "on_startup": _START,
    "startup": _START,
    "errorhandler": _ERROR,
    "exception_handler": _ERROR,
    "register_blueprint": _INCLUDE,
    "include_router": _INCLUDE,
    "mount": _INCLUDE,
    "add_url_rule": "write app.get(path, function)",
    "add_api_route": "write app.get(path, function)",
    "add_route": "write app.get(path, function)",
    "head": "app.get answers HEAD too",
    "options": _METHODS,
    "task": "write @app.job",
    "schedule": _RECURRING,
    "scheduled": _RECURRING,
    "periodic_task": _RECURRING,
    "url_for": "write app.path(name, …)",
    "test_client": "write parkade.testing.Client(app)",
    "state": "each worker is a process of its own: a global variable holds what its handlers share",
}
