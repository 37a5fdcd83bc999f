"""What `import parkade` shows, and what it says of itself."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

import parkade
import parkade.jobs
import parkade.testing
from parkade import Job, Message, Request, after, query
from parkade._job import JobState
from parkade._wire import payloads as p

MODULES = (parkade, parkade.jobs, parkade.testing)
PUBLIC = [
    (f"{module.__name__}.{name}", getattr(module, name))
    for module in MODULES
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
]
CLASSES = sorted({kind for _, kind in PUBLIC if inspect.isclass(kind)}, key=lambda kind: kind.__qualname__)
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_package_has_a_version() -> None:
    assert parkade.__version__
    with pytest.raises(AttributeError, match="nothing"):
        parkade.nothing  # noqa: B018


def test_errors_that_a_log_shows_are_exported() -> None:
    assert issubclass(parkade.InvalidResult, parkade.ParkadeError)


@pytest.mark.parametrize(("name", "value"), PUBLIC)
def test_every_public_name_has_a_description(name: str, value: Any) -> None:
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__doc__, name
        # Without one of their own, dataclasses and structs get their signature.
        assert not value.__doc__.startswith(f"{value.__name__}("), name


@pytest.mark.parametrize("verb", ["get", "post", "put", "patch", "delete", "query", "route", "websocket"])
def test_decorators_for_routes_show_their_help_and_their_parameters(verb: str) -> None:
    for kind in (parkade.App, parkade.Router):
        method = getattr(kind, verb)
        assert inspect.isfunction(method)
        assert method.__doc__
        assert list(inspect.signature(method).parameters)[:2] == ["self", "path"]


def _described(kind: type) -> Iterator[str]:
    """The attributes of a class with a text after them, which editors and the reference show."""
    [body] = [node.body for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body if hasattr(node, "body")]
    for one, following in itertools.pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(following, ast.Expr) and isinstance(one.target, ast.Name):
            yield one.target.id


INSIDE = {"parkade.testing._response"}
"""A module with attributes that other parts of the package use, and applications do not."""

OTHERS = {"args", "told", "outcome"}
"""Python's own of each exception, and what the test client keeps of a job."""


@pytest.mark.parametrize("kind", CLASSES)
def test_public_attributes_have_a_description(kind: type) -> None:
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert value.__doc__ or any(getattr(getattr(base, name, None), "__doc__", "") for base in kind.__mro__), (
                name
            )
    if INSIDE & {kind.__name__, kind.__module__}:
        return
    described = {name for base in kind.__mro__ if base.__module__.startswith("parkade") for name in _described(base)}
    made = inspect.getsource(kind).partition("def __init__")[2].partition("\n    def ")[0]
    attributes = set(re.findall(r"^\s+self\.([a-z]\w*)\b[^=(]* = ", made, re.MULTILINE)) | {
        name for name in getattr(kind, "__slots__", ()) if not name.startswith("_")
    }
    assert attributes - described - OTHERS == set()


REGISTERING = (
    "after before channel cors cron delete error every files get include job jobs name on_start on_stop patch path "
    "post prefix put query queue route templates websocket"
)
MAPPING = "get items keys values"

NAMES = {
    "App": (parkade.App, f"{REGISTERING} headers openapi"),
    "Router": (parkade.Router, REGISTERING),
    "Request": (
        lambda: Request(p.Request(None, [], None, b"", msgspec.Raw(b""))),
        "accepts_json body client content_type cookies cursor deadline form headers http_version id json method "
        "parameters path query query_string raw_path route scheme state stream text",
    ),
    "Response": (parkade.Response, "body delete_cookie headers set_cookie status"),
    "Status": (lambda: parkade.Status(202), "body delete_cookie headers set_cookie status"),
    "Headers": (parkade.Headers, f"{MAPPING} add clear getlist pairs pop popitem setdefault update"),
    "Fields": (parkade.Fields, f"{MAPPING} getlist items_all"),
    "Close": (parkade.Close, "code reason"),
    "Channel": (lambda: parkade.channel("news"), "history name next publish socket stream"),
    "Message": (lambda: Message(b"", "", "0.0", False), "body content_type cursor event gap json text value"),
    "Wait": (lambda: after(1), "headers then"),
    "Query": (lambda: query("select 1"), "headers one rows shared then value"),
    "File": (lambda: parkade.File("a.txt"), "headers then within"),
    "Handle": (lambda: parkade.Handle.of("00000000-0000-0000-0000-000000000001"), "id of result"),
    "History": (lambda: parkade.History([], "0.0"), "count cursor index json"),
    "Job": (
        lambda: Job(JobState(bytes(16), "job", 1, None), 1),
        "attempt cancelled deadline id name progress request_id traceparent",
    ),
    "JobFunction": (lambda: parkade.App().job(nothing), "enqueue name options"),
    "JobWithOptions": (lambda: parkade.App().job(nothing).options(delay=1), "enqueue"),
    "Connection": (
        lambda: parkade.jobs.connect("http://127.0.0.1:1"),
        "close enqueue options publish result transaction",
    ),
    "Jobs": (lambda: parkade.jobs.Jobs(), "cron every job jobs queue"),
    "ConnectionWithOptions": (lambda: parkade.jobs.connect("http://127.0.0.1:1").options(delay=1), "enqueue"),
    "StoredJob": (lambda: parkade.StoredJob("", parkade.App().job(nothing), b""), "arguments id name"),
    "Templates": (lambda: parkade.Templates(Path(__file__).parent), "folder render text"),
    "Cors": (lambda: parkade.Cors("*"), "credentials expose headers max_age methods origins"),
    "Upload": (lambda: parkade.Upload("", "", b""), "body content_type filename raw_filename"),
    "WebSocket": (
        lambda: parkade.WebSocket(Request(p.Request(None, [], None, b"", msgspec.Raw(b""))), None),  # type: ignore[arg-type]
        "accept close is_closed receive request send subprotocol subprotocols",
    ),
}
"""What editors propose after a dot, by class. A new name of an application's is written here; others begin with _."""


def nothing() -> None: ...


@pytest.mark.parametrize("kind", NAMES)
def test_a_class_shows_what_is_for_applications_and_nothing_else(kind: str) -> None:
    make, names = NAMES[kind]
    assert sorted(name for name in dir(make()) if not name.startswith("_")) == sorted(names.split())


METHODS = {"__aenter__", "__await__", "__call__", "__enter__", "__getitem__", "__iter__"}


def _functions() -> Iterator[Any]:
    """Whatever an application calls, with the classes that it is annotated with."""
    for name, value in PUBLIC:
        described = (
            dict(itertools.chain(*(vars(base).items() for base in reversed(value.__mro__))))
            if inspect.isclass(value)
            else {"": value}
        )
        for part, one in described.items():
            function = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
            is_own = inspect.isfunction(function) and function.__module__.startswith("parkade")
            if is_own and function.__module__ not in INSIDE and (not part.startswith("_") or part in METHODS):
                yield pytest.param(function, id=f"{name}.{part}")


def _classes_in(annotation: Any) -> Iterator[type]:
    for part in annotation if isinstance(annotation, list) else get_args(annotation):
        yield from _classes_in(part)
    kind = get_origin(annotation) or annotation
    if inspect.isclass(kind) and kind.__module__.startswith("parkade"):
        yield kind


INSTEAD = {"MakeJob"}
"""What decorators are for type checkers; nobody keeps one to annotate it."""


@pytest.mark.parametrize("function", [*_functions()])
def test_whatever_a_public_function_takes_and_gives_has_a_public_name(function: Any) -> None:
    hints = get_type_hints(function, localns={"Self": Any, "Unpack": list})
    private = {kind.__name__ for hint in hints.values() for kind in _classes_in(hint) if kind not in CLASSES}
    assert private - INSTEAD == set()


def _examples() -> Iterator[Any]:
    for name, value in PUBLIC:
        parts = vars(value).items() if inspect.isclass(value) else ()
        for part, described in [("", value), *parts]:
            for number, code in enumerate(EXAMPLE.findall(inspect.getdoc(described) or "")):
                yield pytest.param(code, id=f"{name}.{part}{number or ''}")


@pytest.mark.parametrize("code", [*_examples()])
def test_the_examples_of_docstrings_load(code: str) -> None:
    names = {name: getattr(parkade, name) for name in parkade.__all__} | {"Annotated": Annotated, "app": parkade.App()}
    exec(compile(code, "<docstring>", "exec"), names)


def test_the_most_used_names_have_an_example() -> None:
    used = (after, query, parkade.channel, parkade.Channel.publish, parkade.Channel.stream, parkade.Channel.next)
    used = (*used, parkade.jobs.JobFunction.enqueue, parkade.jobs.JobFunction.options)
    for value in (*used, parkade.Wait.then, parkade.App, parkade.App.job, parkade.transaction, parkade.redirect):
        assert EXAMPLE.search(inspect.getdoc(value) or ""), value


def test_messages_have_the_right_article() -> None:
    with pytest.raises(TypeError, match="not an int"):
        query(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a bytes"):
        query(b"")  # type: ignore[arg-type]
