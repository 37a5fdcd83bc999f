"""Applications of Flask within others, which keep them in various ways."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from flask import Flask, current_app, flash, request, session, url_for
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from parkade import Wait, after, park

main = Flask("main")
main.secret_key = "of main"
inner = Flask("inner")
inner.secret_key = "of inner"
stray = Flask("stray")


@inner.get("/login")
def login() -> str:
    session["user"] = "bob"
    return "in"


@main.get("/parked")
@inner.get("/parked")
@stray.get("/parked")
def parked() -> Any:
    return park(after(0.01).then(told))


@main.get("/chain")
@inner.get("/chain")
def chain() -> Any:
    return park(after(0.01).then(go_on))


@inner.get("/flashed")
def flashed() -> Any:
    return park(after(0.01).then(flash_it))


def told(outcome: None) -> str:
    return f"{current_app.name} {session.get('user')} {url_for('parked')} {request.path}"


def go_on(outcome: None) -> Wait[Any]:
    return after(0.01).then(told)


def flash_it(outcome: None) -> str:
    flash("too late")
    return "flashed"


class Attribute:
    """Keeps its application under a name of its own."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self.wrapped(environ, start_response)  # type: ignore[no-any-return]


def enclosed(application: Any) -> Callable[..., Iterable[bytes]]:
    """Keeps it in a closure."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return application(environ, start_response)  # type: ignore[no-any-return]

    return call


def found_late(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Knows it by a name alone."""
    return vars(import_module("parked_flask_mounts"))["stray"](environ, start_response)  # type: ignore[no-any-return]


dispatched = DispatcherMiddleware(main, {"/inner": inner})
attribute = Attribute(dispatched)
closure = enclosed(Attribute(dispatched))
outer = Flask("outer")
outer.wsgi_app = DispatcherMiddleware(main.wsgi_app, {"/inner": inner})  # type: ignore[method-assign]


def by_name(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Keeps it in a variable of its module."""
    return dispatched(environ, start_response)
