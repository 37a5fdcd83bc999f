"""Routes with `stream=True`: what may be registered, what their handlers get, and the client of tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from parkade import App, BodyError, IncompleteBody, Request, Router, Upload, after, html
from parkade.errors import SignatureError
from parkade.testing import Client


@pytest.mark.parametrize(
    ("size", "count"),
    [("2GB", 2 * 10**9), ("64 KiB", 65_536), ("70000", 70_000), (77_000, 77_000), ("300kB", 300_000), (None, None)],
)
def test_a_limit_is_written_as_the_servers_are(size: Any, count: int | None) -> None:
    app = App()
    app.post("/a", lambda request: "", stream=True, body_limit=size)
    (route,) = app._ready().routes[:1]
    assert (route.stream, route.body_limit) == (True, count)


@pytest.mark.parametrize("size", ["", "2gb", "1.5MiB", "-1", "0", 65_535, -1, True, 1e6, "1EiB", 1 << 63])
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match=r"POST /a: body_limit must be 65536 bytes or more, or a size such"):
        App().post("/a", stream=True, body_limit=size)


def test_a_limit_is_for_a_route_that_streams() -> None:
    with pytest.raises(SignatureError, match="body_limit is for a route with stream=True"):
        App().post("/a", body_limit="1MB")


@pytest.mark.parametrize("make", [lambda: html("constant"), lambda: after(1)], ids=["a constant", "a wait"])
def test_only_a_function_streams(make: Callable[[], Any]) -> None:
    with pytest.raises(SignatureError, match="stream=True is for a function"):
        App().post("/a", make(), stream=True)


def of_body(body: bytes) -> str: ...
def of_file(photo: Upload) -> str: ...
def of_files(photos: list[Upload]) -> str: ...
def of_record(order: dict[str, int]) -> str: ...


@pytest.mark.parametrize("handler", [of_body, of_file, of_files, of_record])
def test_a_parameter_of_the_whole_body_is_refused_when_it_is_registered(handler: Callable[..., str]) -> None:
    with pytest.raises(SignatureError, match=r"needs the whole body.*read request\.stream\(\)"):
        App().post("/a", handler, stream=True)


def app_of_both_kinds() -> App:
    app = App()
    uploads = Router("/uploads")

    @uploads.put("/{name}", stream=True, body_limit="100kB")
    def save(request: Request, name: str, title: str = "none") -> list[object]:
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(request.stream(), file)
            return [name, title, file.tell()]

    @uploads.post("/{name}", stream=True)
    async def pieces(request: Request, name: str) -> list[str]:
        return [piece.decode() async for piece in request.stream()]

    @uploads.post("/both/{way}", stream=True)
    def both(request: Request, way: str) -> object:
        return getattr(request, way)

    @app.post("/whole")
    def whole(request: Request) -> object:
        return request.stream()

    app.include(uploads)
    return app


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(app_of_both_kinds()) as client:
        yield client


def test_a_plain_function_reads_a_file_and_a_coroutine_pieces(client: Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = client.put("/uploads/a.txt", params={"title": "A"}, content=b"title=B", headers=form)
    assert answer.json() == ["a.txt", "A", 7], "fields are those of the query: the body is the handler's own"
    assert client.put("/uploads/a.txt", content=[b"abc", b"", b"de"]).json() == ["a.txt", "none", 5]
    assert client.post("/uploads/a", content=[b"abc", b"", b"de"]).json() == ["abc", "de"]
    assert client.post("/uploads/a").json() == []


def test_pieces_are_a_whole_body_for_other_routes(client: Client) -> None:
    app = App()
    app.post("/a", of_length)
    assert Client(app).post("/a", content=iter([b"a", b"bc"])).text == "3"


def of_length(body: bytes) -> str:
    return str(len(body))


def test_more_than_its_route_allows_is_413(client: Client) -> None:
    assert client.put("/uploads/a", content=b"x" * 100_000).status == 200
    assert client.put("/uploads/a", content=[b"x" * 60_000, b"x" * 40_001]).status == 413


def until_it_leaves() -> Iterator[bytes]:
    yield b"begin"
    raise IncompleteBody


def test_a_client_that_leaves_in_the_middle_has_no_response() -> None:
    seen: list[str] = []
    app = App()

    @app.post("/plain", stream=True)
    def plain(request: Request) -> str:
        try:
            return request.stream().read().decode()
        except OSError as error:
            seen.append(type(error).__mro__[2].__name__)
            raise

    @app.post("/async", stream=True)
    async def coroutine(request: Request) -> None:
        try:
            async for piece in request.stream():
                seen.append(piece.decode())
        finally:
            seen.append("ended")

    @app.error(Exception)
    def failed(error: Exception) -> str:
        seen.append("a fault")
        return ""

    with Client(app) as client:
        for path in ("/plain", "/async"):
            with pytest.raises(AssertionError, match="the client left"):
                client.post(path, content=until_it_leaves()).status  # noqa: B018
    assert seen == ["IncompleteBody", "begin", "ended"]


@pytest.mark.parametrize("way", ["body", "text", "form"])
def test_the_whole_body_of_a_route_that_streams_is_refused_whatever_its_length(
    client: Client, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = client.post(f"/uploads/both/{way}", content=b"a", headers={"content-type": "multipart/form-data"})
    assert answer.status == 500
    assert "has stream=True: its body is read with request.stream()" in capsys.readouterr().err


def test_a_route_that_does_not_stream_says_how(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert client.post("/whole", content=b"a").status == 500
    assert "register it with stream=True" in capsys.readouterr().err


def test_errors_are_of_parkade_and_of_python() -> None:
    assert issubclass(BodyError, RuntimeError)
    assert issubclass(IncompleteBody, OSError)


def test_the_description_tells_a_body_of_any_bytes() -> None:
    app = app_of_both_kinds()
    app.openapi("Uploads")
    described = Client(app).get("/openapi.json").json()["paths"]["/uploads/{name}"]["put"]
    assert described["requestBody"] == {"content": {"application/octet-stream": {}}}
    assert [one["name"] for one in described["parameters"]] == ["name", "title"]
