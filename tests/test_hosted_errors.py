"""Exceptions of Parkade in views of Flask, Django, Starlette, FastAPI, Litestar and Quart, and in bare WSGI and ASGI:
the responses that they stand for, and what the log says of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.server import Server

MISTAKES = """
from parkade import File, HTTPError, QueryError, after, channel, query

class Own(HTTPError): ...

def mistake(name):
    match name:
        case "names": return File.within("pictures", "../manage.py")
        case "teapot": raise HTTPError(418, "short and stout", {"x-spout": "left"})
        case "conflict": raise QueryError("it quotes the statement", status=409)
        case "down": raise QueryError("no route to host", reason="unreachable", status=503)
        case "channels": channel("no such\\nname")
        case "own": raise Own(410, "as Parkade says it")
        case "mistaken": raise QueryError("syntax error", status=500)
        case "surrogate": raise ValueError("\\ud800")
"""

SITES = {
    "flask": """
from flask import Flask
from mistakes import Own, mistake
app = Flask(__name__)
@app.get("/<name>")
def view(name): mistake(name)
@app.errorhandler(Own)
def own(error): return "as the application says it", 410
""",
    "quart": """
from quart import Quart
from mistakes import Own, mistake
app = Quart(__name__)
@app.get("/<name>")
async def view(name): mistake(name)
@app.errorhandler(Own)
async def own(error): return "as the application says it", 410
""",
    "starlette": """
from mistakes import Own, mistake
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
def view(request): mistake(request.path_params["name"])
async def own(request, error): return PlainTextResponse("as the application says it", 410)
inner = Starlette(routes=[Route("/{name}", view)], exception_handlers={Own: own})
app = Starlette(routes=[Mount("/", inner)])
""",
    "fastapi": """
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from mistakes import Own, mistake
from starlette.middleware.gzip import GZipMiddleware
app = FastAPI()
@app.get("/{name}")
async def view(name: str): mistake(name)
@app.exception_handler(Own)
async def own(request, error): return PlainTextResponse("as the application says it", 410)
app = GZipMiddleware(app)
""",
    "litestar": """
from litestar import Litestar, Response, get
from mistakes import Own, mistake
@get("/{name:str}")
async def view(name: str) -> None: mistake(name)
def own(request, error): return Response("as the application says it", status_code=410, media_type="text/plain")
app = Litestar([view], exception_handlers={Own: own})
""",
    "django": """
import django
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from mistakes import Own, mistake
class Handled:
    def __init__(self, get_response): self.get_response = get_response
    def __call__(self, request): return self.get_response(request)
    def process_exception(self, request, error):
        return HttpResponse("as the application says it", status=410) if isinstance(error, Own) else None
settings.configure(
    ALLOWED_HOSTS=["*"], STATIC_URL="/static/", ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.Handled"],
    LOGGING={
        "version": 1, "disable_existing_loggers": False,
        "handlers": {"stderr": {"class": "logging.StreamHandler"}}, "root": {"handlers": ["stderr"]},
    },
)
django.setup()
def view(request, name): mistake(name)
urlpatterns = [path("<name>", view)]
app = StaticFilesHandler(get_wsgi_application())
asgi = get_asgi_application()
""",
    "wsgi": """
from mistakes import mistake
def app(environ, start_response): mistake(environ["PATH_INFO"][1:])
""",
    "asgi": """
from mistakes import mistake
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    mistake(scope["path"][1:])
""",
}

BARE = ("wsgi", "asgi")


@pytest.fixture(scope="module", params=[*SITES, "django:asgi"])
def site(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(site: str, serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    name, _, attribute = site.partition(":")
    folder = written(tmp_path_factory.mktemp("site"), name, SITES[name])
    return serve_for_all(f"{folder}/{name}_site.py:{attribute or 'app'}", log_format="json", folder=folder)


def written(folder: Path, name: str, code: str) -> Path:
    (folder / "mistakes.py").write_text(MISTAKES)
    (folder / f"{name}_site.py").write_text(code)
    return folder


def errors(server: Server, matches: Callable[[str], bool] = lambda text: True) -> list[dict[str, Any]]:
    """The records of level ERROR."""
    records = [json.loads(line) for line in server.log().splitlines()]
    return [record for record in records if record["level"] == "ERROR" and matches(record["message"])]


@pytest.mark.parametrize(
    ("name", "status", "detail"),
    [
        ("names", 404, "there is no such file"),
        ("teapot", 418, "short and stout"),
        ("conflict", 409, "this conflicts with data in the database"),
        ("down", 503, "the database cannot be reached"),
        ("channels", 400, None),
    ],
)
def test_an_error_that_stands_for_a_response_is_that_response(
    server: Server, name: str, status: int, detail: str | None
) -> None:
    answer = server.get(f"/{name}")
    assert (answer.status, answer["content-type"]) == (status, "application/problem+json")
    assert detail in (None, answer.json()["detail"])
    assert answer.all("x-spout") == ["left"] * (name == "teapot")
    assert answer.all("retry-after") == ["1"] * (name == "down")
    assert "<h1>" in server.get(f"/{name}", "Accept: text/html").text
    assert not [record for record in errors(server) if "traceback" in record]


def test_a_handler_of_the_application_counts(server: Server, site: str) -> None:
    answer = server.get("/own")
    assert answer.status == 410
    assert ("as Parkade says it" if site in BARE else "as the application says it") in answer.text


def test_a_fault_of_the_application_is_one_record(server: Server, site: str) -> None:
    for name, text in (("mistaken", "syntax error"), ("surrogate", "\\ud800")):
        assert server.get(f"/{name}").status == 500
        if site == "litestar":  # it logs no exceptions by default
            continue
        server.until_logged(re.escape(json.dumps(text)[1:-1]))
        (record,) = errors(server, lambda message, name=name: f"/{name}" in message)  # type: ignore[misc]
        assert text in record["traceback"]
