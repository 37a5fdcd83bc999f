"""The description of an application, made of its routes and annotations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import pytest
from msgspec import Meta

from parkade import App, Cookie, Header, Request, Response, Router, Rows, Status, Upload, Wait, after, channel, query
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


@dataclass
class Other:
    other: int


def test_a_parameter_is_told_with_its_place_its_type_and_whether_it_is_needed() -> None:
    def handler(id: int, q: str, limit: Annotated[int, Meta(le=9)] = 5, tags: list[str] | None = None) -> None: ...

    found = described(handler, path="/{id:int}")["parameters"]
    assert [(one["name"], one["in"], one.get("required", False)) for one in found] == [
        ("id", "path", True),
        ("q", "query", True),
        ("limit", "query", False),
        ("tags", "query", False),
    ]
    assert found[2]["schema"] == {"type": "integer", "maximum": 9, "default": 5}
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


def test_limits_of_a_body_that_is_text_are_told() -> None:
    def handler(body: Annotated[str, Meta(max_length=3)]) -> None: ...

    content = described(handler, "post")["requestBody"]["content"]
    assert content["text/plain"]["schema"] == {"type": "string", "maxLength": 3}


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
def note_other_or_answer() -> Note | Other | Response: ...  # type: ignore[empty-body]
def answer() -> Response: ...  # type: ignore[empty-body]
def status() -> Status: ...  # type: ignore[empty-body]
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
        (note_or_answer, {"200": ["application/json"], "default": []}),
        (answer, {"default": []}),
        (status, {"default": []}),
        (rows, {"200": ["application/json"]}),
        (note_other_or_answer, {"200": ["application/json"], "default": []}),
        (wait, {"200": [], "default": []}),
        (untold, {"200": [], "default": []}),
        (pieces, {"200": ["application/octet-stream"]}),
        (pieces_async, {"200": ["text/plain"]}),
        ("constant", {"200": ["text/plain; charset=utf-8"]}),
        (Response(None, 204), {"204": []}),
        (after(1), {"204": []}),
        (query("select 1"), {"200": ["application/json"]}),
        (query("select 1").one(), {"200": ["application/json"], "404": ["application/problem+json"]}),
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


T = TypeVar("T")


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


def test_pages_of_classes_of_one_name_are_two() -> None:
    app = App()
    other = msgspec.defstruct("Note", [("other", int)], module="elsewhere")

    def pages(body: Any) -> Any: ...

    pages.__annotations__ |= {"body": Page[Note], "return": Page[other]}  # type: ignore[valid-type]
    app.post("/", pages)
    found = description(app)
    operation, schemas = found["paths"]["/"]["post"], found["components"]["schemas"]

    def title_of(content: Any) -> list[str]:
        def followed(schema: Any) -> Any:
            return schemas[schema["$ref"].rpartition("/")[2]]

        page = followed(content["application/json"]["schema"])
        return list(followed(page["properties"]["items"]["items"])["properties"])

    assert title_of(operation["requestBody"]["content"]) == ["title", "stars"]
    assert title_of(operation["responses"]["200"]["content"]) == ["other"]


def test_jobs_are_told_where_there_are_any() -> None:
    app = App(jobs_path="/tasks")

    @app.job
    def work() -> None: ...

    assert list(description(app)["paths"]["/tasks/{id}"]) == ["get", "delete"]


def test_the_address_of_jobs_may_be_that_of_other_methods_too() -> None:
    app = App()
    app.post("/jobs/{key}", lambda key: key, name="job")

    @app.job
    def work() -> None: ...

    (path,) = (found := description(app)["paths"])
    told = {method: (one["operationId"], one["parameters"][0]["name"]) for method, one in found[path].items()}
    assert path == "/jobs/{key}"
    assert told == {"post": ("job", "key"), "get": ("job.2", "key"), "delete": ("job.cancel", "key")}


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


# What a generator of clients needs


def test_a_limit_of_the_path_and_one_of_the_annotation_are_one_schema() -> None:
    def handler(name: Annotated[str, Meta(max_length=9)], id: Annotated[int, Meta(ge=1)]) -> None: ...

    found = described(handler, path="/{name}/{id:int}")["parameters"]
    assert [one["schema"] for one in found] == [
        {"type": "string", "maxLength": 9, "minLength": 1},
        {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
    ]


def test_errors_are_described_once() -> None:
    app = App()
    app.get("/a/{id}", lambda id, q: "")
    found = description(app)
    (operation,) = (operations["get"] for operations in found["paths"].values())
    refer = {
        status: one["content"]["application/problem+json"]
        for status, one in operation["responses"].items()
        if status.startswith("4")
    }
    assert refer == {
        "404": {"schema": {"$ref": "#/components/schemas/parkade.Problem"}},
        "422": {"schema": {"$ref": "#/components/schemas/parkade.Invalid"}},
    }
    assert set(found["components"]["schemas"]) == {"parkade.Problem", "parkade.Invalid"}
    silent = App()
    silent.get("/", "constant")
    assert "components" not in description(silent)


def test_a_route_without_a_name_has_an_id_that_can_be_one_of_a_function() -> None:
    app = App()
    app.get("/", "root")
    app.get("/bids/all", channel("bids").stream())
    assert [one["get"]["operationId"] for one in description(app)["paths"].values()] == ["get", "get_bids_all"]


def test_what_a_handler_declares_takes_the_place_of_what_is_not_known() -> None:
    assert list(described(answer, responses={201: Note})["responses"]) == ["201"]
    assert list(described(answer, responses={409: "no"})["responses"]) == ["409", "default"]
    assert described(answer, responses={499: Note})["responses"]["499"]["description"] == "Error"


def test_models_of_pydantic_are_components() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Line(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        item: str = pydantic.Field(min_length=1)

    class Basket(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        lines: list[Line]

    app = App()

    def put(body: Any) -> Any: ...

    put.__annotations__ |= {"body": Basket, "return": Basket}
    app.put("/", put)
    app.get("/", lambda: [], name="all")
    found = description(app)
    operation = found["paths"]["/"]["put"]
    refer = {"schema": {"$ref": "#/components/schemas/Basket"}}
    assert operation["requestBody"]["content"]["application/json"] == refer
    assert operation["responses"]["200"]["content"]["application/json"] == refer
    schemas = found["components"]["schemas"]
    assert schemas["Basket"]["properties"]["lines"]["items"] == {"$ref": "#/components/schemas/Line"}
    assert schemas["Line"]["properties"]["item"]["minLength"] == 1


def test_models_of_pydantic_of_one_name_are_two_and_their_limits_are_told() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner = [pydantic.create_model("Line", __module__=module, **{module: (int, ...)}) for module in ("one", "two")]
    outer = [pydantic.create_model(f"Basket{number}", line=(one, ...)) for number, one in enumerate(inner)]
    struct = msgspec.defstruct("Basket0", [("n", int)])
    app = App()

    def put(body: Any, n: Any = 5) -> Any: ...
    def get() -> Any: ...

    put.__annotations__ |= {"body": outer[0], "n": Annotated[int, pydantic.Field(ge=1)], "return": outer[1]}
    get.__annotations__ |= {"return": struct}
    app.put("/", put)
    app.get("/", get)
    found = description(app)
    operations, schemas = found["paths"]["/"], found["components"]["schemas"]

    def properties_of(content: Any, *names: str) -> list[str]:
        schema = schemas[content["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        for name in names:
            schema = schemas[schema["properties"][name]["$ref"].rpartition("/")[2]]
        return list(schema["properties"])

    assert properties_of(operations["put"]["requestBody"]["content"], "line") == ["one"]
    assert properties_of(operations["put"]["responses"]["200"]["content"], "line") == ["two"]
    assert properties_of(operations["get"]["responses"]["200"]["content"]) == ["n"]
    assert operations["put"]["parameters"][0]["schema"]["minimum"] == 1


def test_a_method_that_openapi_does_not_know_is_left_out() -> None:
    app = App()
    app.query("/search", lambda body: body)
    app.route("/both", lambda: "both", methods=["GET", "QUERY"])
    paths = description(app)["paths"]
    assert {path: list(operations) for path, operations in paths.items()} == {"/both": ["get"]}
