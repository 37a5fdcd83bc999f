"""`parkade dev`: what an exception in an application of a framework looks like, which the framework answers itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Serve

BROWSER = "Accept: text/html,*/*;q=0.8"

FLASK = """
from flask import Flask
app = Flask(__name__)

@app.get("/fails")
def fails(): raise LookupError("no such lot")

@app.get("/says")
def says(): return "Internal Server Error", 500
"""
QUART = FLASK.replace("Flask", "Quart").replace("flask", "quart").replace("def ", "async def ")
STARLETTE = """
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse, StreamingResponse

async def fails(request): raise LookupError("no such lot")

async def says(request): return PlainTextResponse("Internal Server Error", 500)

async def streams(request): return StreamingResponse(iter([b"Internal ", b"stream"]), 500)

async def passed_on(request, call_next): return await call_next(request)

app = Starlette()
app.add_route("/fails", fails)
app.add_route("/says", says)
app.add_route("/streams", streams)
app.add_middleware(BaseHTTPMiddleware, dispatch=passed_on)
"""
FASTAPI = """
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
app = FastAPI()

@app.get("/fails")
def fails(): raise LookupError("no such lot")

@app.get("/says")
def says(): return PlainTextResponse("Internal Server Error", 500)
"""
LITESTAR = """
from litestar import Litestar, MediaType, Response, get

@get("/fails")
async def fails() -> str: raise LookupError("no such lot")

@get("/says", media_type=MediaType.TEXT)
async def says() -> Response[str]: return Response("Internal Server Error", status_code=500)

OWN = {}
app = Litestar([fails, says], exception_handlers=OWN)
"""
CODE = {"flask": FLASK, "quart": QUART, "starlette": STARLETTE, "fastapi": FASTAPI, "litestar": LITESTAR}

OF_STARLETTE = "\nasync def own(request, error): return PlainTextResponse('our own words', 500)\n"
OWN = {
    "flask": "\n@app.errorhandler(500)\ndef own(error): return 'our own words', 500\n",
    "quart": "\n@app.errorhandler(500)\nasync def own(error): return 'our own words', 500\n",
    "starlette": OF_STARLETTE + "app.add_exception_handler(Exception, own)\n",
    "fastapi": OF_STARLETTE + "app.add_exception_handler(500, own)\n",
    "litestar": "",
}
"""What gives each a handler of its own for exceptions."""


@pytest.fixture(params=CODE)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def code(framework: str, tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(CODE[framework])
    return file


def test_developers_see_the_traceback_of_what_a_framework_answers_itself(
    serve: Serve, code: Path, framework: str
) -> None:
    server = serve(code, command="dev")
    for _ in range(2):
        page = server.get("/fails", BROWSER)
        assert (page.status, page["content-type"]) == (500, "text/html; charset=utf-8")
        assert "no such lot" in page.text
        assert "in fails" in page.text or framework == "litestar"  # the page is Litestar's own
    assert "no such lot" in server.get("/fails", "Accept: application/json").text
    assert server.get("/says", BROWSER).text == "Internal Server Error", "no exception"
    server.until_logged("no such lot", times=3)
    assert server.get("/says").status == 500
    if framework != "litestar":
        assert server.log().count("Traceback (most recent call last)") == 3, "one record for each"


def test_what_an_error_handler_answers_is_left_alone(serve: Serve, code: Path, framework: str) -> None:
    text = code.read_text() + OWN[framework]
    code.write_text(
        text.replace("OWN = {}", "OWN = {500: lambda request, error: Response('our own words', status_code=500)}")
    )
    server = serve(code, command="dev")
    page = server.get("/fails", BROWSER)
    assert (page.status, page.text) == (500, "our own words")
    assert server.get("/says", BROWSER).text == ("Internal Server Error")


def test_clients_of_a_server_see_nothing(serve: Serve, code: Path, framework: str) -> None:
    server = serve(code)
    assert "no such lot" not in server.get("/fails", BROWSER).text
    if framework != "litestar":  # its logging leaves exceptions out unless it is told otherwise
        server.until_logged("no such lot")


def test_threads_and_middleware_of_wsgi(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(FLASK + "\ninner = app\ndef app(environ, start): return inner(environ, start)\n")
    server = serve(file, command="dev", threads=3)
    assert "in fails" in server.get("/fails", BROWSER).text


def test_a_response_that_only_begins_like_a_plain_failure_is_passed_on(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(STARLETTE)
    server = serve(file, command="dev")
    answer = server.get("/streams", BROWSER)
    assert (answer.status, answer.text) == (500, "Internal stream")
