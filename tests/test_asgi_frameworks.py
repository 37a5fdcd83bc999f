"""FastAPI, Starlette, Litestar, Quart and Django under ASGI, unchanged: one set of cases for all of them."""

from __future__ import annotations

import pytest

from .conftest import Serve
from .harness.server import APPS, Server

SITES = ["fastapi_site", "starlette_site", "litestar_site", "quart_site", "django_async_site"]
DJANGO = "django_async_site"


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shared(site: str, serve_for_all: Serve) -> Server:
    return serve_for_all(site, workers=1)


@pytest.mark.parametrize("name", ["you", "J%C3%BCrgen", "a%20b"])
def test_a_path_is_matched(server: Server, name: str) -> None:
    answer = server.get(f"/hola/{name}")
    assert (answer.status, answer.text) == (
        200,
        {"J%C3%BCrgen": "Hola J\u00fcrgen", "a%20b": "Hola a b"}.get(name, "Hola you"),
    )


def test_a_query_is_read(server: Server) -> None:
    assert server.get("/query?a=1%202&b=x&b=y").json() == {"a": "1 2", "b": ["x", "y"]}


def test_json_is_read(server: Server) -> None:
    answer = server.post("/orders", b'{"item": "tea", "count": 3}', "Content-Type: application/json")
    assert (answer.status, answer.json()) == (200, {"item": "tea", "count": 6})


@pytest.mark.parametrize("count", [10, 3_000_000])
def test_a_file_is_uploaded(server: Server, count: int) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n' + b"y" * count
    answer = server.post("/upload", part + b"\r\n--x--\r\n", "Content-Type: multipart/form-data; boundary=x")
    assert answer.json() == {"name": "a.bin", "bytes": count}


def test_a_response_is_streamed(server: Server) -> None:
    assert server.get("/count/20000").text.split() == [str(number) for number in range(20_000)]


def test_events_are_streamed(server: Server) -> None:
    answer = server.get("/events")
    assert answer["content-type"].startswith("text/event-stream")
    assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_a_file_is_downloaded(server: Server, site: str) -> None:
    assert server.get("/file").body == (APPS / f"{site}.py").read_bytes()


def test_what_the_start_made_is_there(server: Server) -> None:
    assert server.get("/shared").text == "from the start"


def test_a_plain_function_runs_in_a_thread(server: Server) -> None:
    assert server.get("/thread").text == "False"


def test_fields_are_read(server: Server) -> None:
    assert server.get("/whoami", "X-Name: Ana").text == "Ana"


def test_cookies_are_kept(server: Server) -> None:
    cookie = server.get("/cookie")["set-cookie"].partition(";")[0]
    assert cookie == "visits=1"
    assert server.get("/cookie", f"Cookie: {cookie}").json() == {"visits": 1}


def test_addresses_are_those_of_the_client(server: Server) -> None:
    with server.connect() as client:
        assert client.get("/url?a=1").text == f"http://{client.host}/url?a=1"


def test_head_has_no_body(server: Server, site: str) -> None:
    with server.connect() as client:
        answer = client.ask("HEAD", "/hola/you").answer(head=True)
        assert (answer.status in (200, 405), answer.body) == (True, b"")
        assert client.get("/hola/you").text == "Hola you"


def test_what_is_nowhere_is_404(server: Server) -> None:
    assert server.get("/nowhere").status == 404


def test_a_mistake_is_500_and_logged(server: Server, site: str) -> None:
    """Litestar and Django log it if they are told to."""
    assert server.get("/broken").status == 500
    if site not in (DJANGO, "litestar_site"):
        server.until_logged("ValueError: a mistake")


def test_many_are_answered_at_the_same_time(server: Server) -> None:
    clients = server.waiting("/events", 50)
    assert {client.answer().text for client in clients} == {"data: 0\n\ndata: 1\n\ndata: 2\n\n"}


def test_a_stream_is_closed_when_its_client_leaves(server: Server) -> None:
    before = server.log().count("the stream was closed")
    with server.connect().ask("GET", "/endless") as client:
        assert next(client.pieces(client.opening())) == b"data: begun\n\n"
    server.until_logged("the stream was closed", times=before + 1)


def test_work_after_the_response_is_done(server: Server, site: str) -> None:
    if site == DJANGO:
        pytest.skip("Django has none")
    before = server.log().count("the later work is done")
    assert server.get("/later").text == "sent"
    server.until_logged("the later work is done", times=before + 1)


def test_streams_end_with_the_server(serve: Serve, site: str) -> None:
    """They do not know that it stops: they are cancelled a moment before the end of the grace."""
    server = serve(site, workers=1, grace="2s")
    client = server.connect().ask("GET", "/endless")
    assert next(client.pieces(client.opening())) == b"data: begun\n\n"
    assert server.get("/hola/you").text == "Hola you"
    assert server.stop() == 0
    server.until_logged("the stream was closed")
    server.until_logged("the worker stops: 1 requests that were still running were cancelled")
    assert ("the lifespan ends" in server.log()) is (site != DJANGO)


def test_the_lifespan_ends(serve: Serve, site: str) -> None:
    server = serve(site, workers=1)
    assert server.get("/hola/you").text == "Hola you"
    assert server.stop() == 0
    assert ("the lifespan ends" in server.log()) is (site != DJANGO)
    assert "ERROR" not in server.log()


def test_a_dependency_of_fastapi_cleans_up(serve: Serve) -> None:
    server = serve("fastapi_site", workers=1)
    assert server.get("/whoami", "X-Name: Ana").text == "Ana"
    server.until_logged("Ana was served")
    assert server.get("/whoami").status == 422
    assert server.get("/openapi.json").json()["info"]["title"] == "FastAPI"


def test_middleware_of_starlette_works(serve: Serve) -> None:
    server = serve("starlette_site", workers=1)
    answer = server.get("/count/2000", "Accept-Encoding: gzip")
    assert (answer["content-encoding"], answer["x-marked"]) == ("gzip", "yes")
