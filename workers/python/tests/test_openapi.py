"""The description of an application, made of its routes and annotations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from parkade import App, Cookie, Header, Request, Response, Router, Rows, Upload, Wait, after, channel, query
from parkade.errors import SignatureError
from parkade.testing import Client


def description(app: App) -> dict[str, Any]:
    app.openapi("Shop", "1.0")
    found = Client(app).get("/openapi.json").json()
    assert isinstance(found, dict)
    return found


def described(handler: Any, method: str = "get", path: str = "/", **options: Any) -> dict[str, Any]:
    app = App()
    app.route(path, handler, methods=[method], name="it", **options)
    (operations,) = description(app)["paths"].values()
    operation = operations[method]
    assert isinstance(operation, dict)
    return operation


@dataclass
class Note:
    title: Annotated[str, Meta(min_length=1)]
    stars: int = 1


def test_a_parameter_is_told_with_its_place_its_type_and_whether_it_is_needed() -> None:
    def handler(id: int, q: str, limit: Annotated[int, Meta(le=9)] = 5, tags: list[str] | None = None) -> None: ...

    found = described(handler, path="/{id:int}")["parameters"]
    assert [(one["name"], one["in"], one.get("required", False)) for one in found] == [
        ("id", "path", True),
        ("q", "query", True),
        ("limit", "query", False),
        ("tags", "query", False),
    ]
    assert found[2]["schema"] == {"type": "integer", "maximum": 9}
    assert found[3]["schema"] == {"type": "array", "items": {"type": "string"}}


def test_headers_and_cookies_are_told_by_their_names_in_a_request() -> None:
    def handler(user_agent: Annotated[str, Header()], session: Annotated[int | None, Cookie("s")] = None) -> None: ...

    found = described(handler)["parameters"]
    assert [(one["name"], one["in"], one.get("required", False)) for one in found] == [
        ("user-agent", "header", True),
        ("s", "cookie", False),
    ]
    assert [one["schema"] for one in found] == [{"type": "string"}, {"type": "integer"}]


@pytest.mark.parametrize(
    ("annotation", "media"),
    [(Note, "application/json"), (str, "text/plain"), (bytes, "application/octet-stream"), (dict, "application/json")],
)
def test_a_body_is_told(annotation: Any, media: str) -> None:
    def handler(body: Any, dry: bool = False) -> None: ...

    handler.__annotations__["body"] = annotation
    found = described(handler, "post")
    assert list(found["requestBody"]["content"]) == [media]
    assert [one["name"] for one in found["parameters"]] == ["dry"]
    assert {"400", "415", "422"} <= set(found["responses"])


def test_a_form_is_told_and_one_with_files() -> None:
    def form(name: str, age: int = 5) -> None: ...
    def upload(file: Upload, title: str = "") -> None: ...

    content = described(form, "post")["requestBody"]["content"]
    assert list(content) == ["application/x-www-form-urlencoded", "multipart/form-data"]
    assert content["multipart/form-data"]["schema"]["required"] == ["name"]
    content = described(upload, "post")["requestBody"]["content"]
    assert list(content) == ["multipart/form-data"]
    assert content["multipart/form-data"]["schema"]["properties"]["file"] == {
        "type": "string",
        "contentMediaType": "application/octet-stream",
    }


def text() -> str: ...  # type: ignore[empty-body]
def data() -> bytes: ...  # type: ignore[empty-body]
def nothing() -> None: ...
def note() -> Note: ...  # type: ignore[empty-body]
def note_or_nothing() -> Note | None: ...
def note_or_answer() -> Note | Response: ...  # type: ignore[empty-body]
def answer() -> Response: ...  # type: ignore[empty-body]
def rows() -> Rows: ...  # type: ignore[empty-body]
def wait() -> Wait: ...  # type: ignore[empty-body]
def untold(): ...  # type: ignore[no-untyped-def]
def pieces() -> Iterator[bytes]: ...  # type: ignore[empty-body]
async def pieces_async() -> AsyncIterator[str]:
    yield ""


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (text, {"200": ["text/plain"]}),
        (data, {"200": ["application/octet-stream"]}),
        (nothing, {"204": []}),
        (note, {"200": ["application/json"]}),
        (note_or_nothing, {"200": ["application/json"], "204": []}),
        (note_or_answer, {"200": []}),
        (answer, {"200": []}),
        (rows, {"200": ["application/json"]}),
        (wait, {"200": []}),
        (untold, {"200": []}),
        (pieces, {"200": ["application/octet-stream"]}),
        (pieces_async, {"200": ["text/plain"]}),
        ("constant", {"200": ["text/plain; charset=utf-8"]}),
        (Response(None, 204), {"204": []}),
        (after(1), {"204": []}),
        (query("select 1"), {"200": ["application/json"]}),
        (channel("a").stream(), {"200": ["text/event-stream"]}),
        (channel("a").next(timeout=1), {"200": [], "204": []}),
    ],
)
def test_the_responses_are_those_of_the_annotation(target: Any, expected: dict[str, list[str]]) -> None:
    found = described(target)["responses"]
    assert {status: list(one.get("content", {})) for status, one in found.items()} == expected


def test_the_docstring_the_router_and_the_route_tell_the_rest() -> None:
    app, orders = App(), Router("/orders/{shop}", name="orders")

    @orders.post("/", responses={201: Note, 409: "It is there already"})
    def place(body: Note) -> Response:
        """Places an order
        of a shop.

        More about it.
        """
        return Response(body, 201)

    orders.get("/secret", lambda: "", hidden=True)
    app.include(orders, prefix="/v1")
    found = description(app)
    assert list(found["paths"]) == ["/v1/orders/{shop}"]
    operation = found["paths"]["/v1/orders/{shop}"]["post"]
    assert operation["operationId"] == "orders.place"
    assert (operation["summary"], operation["description"]) == ("Places an order of a shop.", "More about it.")
    assert operation["tags"] == ["orders"]
    assert [one["name"] for one in operation["parameters"]] == ["shop"], "a client sends it, whoever takes it"
    assert operation["responses"]["409"] == {"description": "It is there already"}
    reference = {"$ref": "#/components/schemas/Note"}
    assert operation["responses"]["201"]["content"]["application/json"]["schema"] == reference
    assert found["components"]["schemas"]["Note"]["required"] == ["title"]


def test_paths_that_differ_in_names_alone_are_one() -> None:
    app = App()
    app.get("/a/{x}", lambda x: x, name="get")
    app.delete("/a/{y:int}", lambda y: y, name="delete")
    app.get("/a/{z:int}", lambda z: z, name="second")
    (path,) = (found := description(app)["paths"])
    assert path == "/a/{x}"
    assert {method: one["parameters"][0]["name"] for method, one in found[path].items()} == {"get": "x", "delete": "x"}
    assert found[path]["get"]["operationId"] == "get"


def test_routes_that_come_later_are_told_too_and_classes_of_one_name_are_two() -> None:
    app = App()
    app.openapi("Shop")
    other = msgspec.defstruct("Note", [("other", int)], module="elsewhere")
    app.get("/note", note)

    def elsewhere() -> None: ...

    elsewhere.__annotations__["return"] = other
    app.get("/elsewhere", elsewhere)
    found = Client(app).get("/openapi.json").json()
    assert set(found["paths"]) == {"/note", "/elsewhere"}
    assert len(found["components"]["schemas"]) == 2


def test_jobs_are_told_where_there_are_any() -> None:
    app = App(jobs_path="/tasks")

    @app.job
    def work() -> None: ...

    assert list(description(app)["paths"]["/tasks/{id}"]) == ["get", "delete"]


def test_it_may_be_elsewhere_without_a_page_and_behind_a_hook() -> None:
    app = App()
    app.openapi("Shop", path="/api.json", page=None)

    @app.before
    def check(request: Request) -> Response | None:
        return None if request.headers.get("key") == "sesame" else Response(None, 403)

    client = Client(app)
    assert client.get("/api.json").status == 403
    assert client.get("/api.json", headers={"key": "sesame"}).json()["info"] == {"title": "Shop", "version": "1"}
    assert client.get("/docs", headers={"key": "sesame"}).status == 404


@pytest.mark.parametrize("again", [lambda app: app.openapi("Again"), lambda app: app.get("/docs", "x")])
def test_a_second_description_or_a_path_that_is_taken_is_refused(again: Callable[[App], object]) -> None:
    app = App()
    app.openapi("Shop")
    with pytest.raises(SignatureError, match="already"):
        again(app)
