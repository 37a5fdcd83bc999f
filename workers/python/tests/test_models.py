"""Models of pydantic as bodies, parameters and answers; and an application without them does not import it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

pydantic = pytest.importorskip("pydantic")

from parkade import App, SignatureError, channel  # noqa: E402
from parkade.testing import Client  # noqa: E402
from test_parameters import given, refused  # noqa: E402


class Line(pydantic.BaseModel):
    item: str
    count: int = pydantic.Field(1, ge=1, alias="itemCount")


class Order(pydantic.BaseModel):
    title: str
    day: date
    price: Decimal = Decimal("69.50")
    lines: list[Line] = pydantic.Field(default_factory=list)


@pydantic.dataclasses.dataclass
class Point:
    x: Annotated[int, pydantic.Field(ge=0)]


class Plain(msgspec.Struct):
    line: Line
    note: str = ""


@dataclass
class Bypassing:
    point: Point


@dataclass
class Unenforced:
    x: Annotated[int, pydantic.Field(ge=0)]


def order(body: Order) -> Order:
    return body


SENT = {"title": "a", "day": "2026-11-22", "lines": [{"item": "x", "itemCount": 2}]}


def test_of_very_many_faults_only_their_number_is_told() -> None:
    _, body = refused(order, "POST /", json=SENT | {"lines": [0] * 20})
    assert [each["name"] for each in body["parameters"]] == [f"lines[{number}]" for number in range(20)]
    _, body = refused(order, "POST /", json=SENT | {"lines": [0] * 5_000})
    assert [each["reason"] for each in body["parameters"]] == ["5000 parts of it are wrong"]
    _, body = refused(plain, "POST /", json={"line": {"item": 1, "itemCount": [0] * 5_000}})
    assert len(body["detail"]) < 1_000


def plain(body: Plain) -> None: ...


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_model_is_a_body_and_an_answer(asynchronous: bool) -> None:
    async def waiting(body: Order) -> Order:
        return body

    app = App()
    app.post("/", waiting if asynchronous else order)
    response = Client(app).post("/", json=SENT)
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == SENT | {"price": "69.50"}


def test_everything_that_is_wrong_is_named_at_once() -> None:
    status, body = refused(order, "POST /", json={"day": "x", "lines": [{"item": "x", "itemCount": 0}]})
    assert status == 422
    assert [(each["name"], each["where"], each["value"]) for each in body["parameters"]] == [
        ("title", "body", None),
        ("day", "body", "x"),
        ("lines[0].itemCount", "body", 0),
    ]


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [(b"{", "application/json", 400), (b"{}", "text/plain", 415), (b"", "application/json", 422)],
)
def test_a_body_that_is_no_json_is_as_for_any_other_type(content: bytes, content_type: str, status: int) -> None:
    assert refused(order, "POST /", content=content, headers={"content-type": content_type})[0] == status


def test_a_body_that_is_too_deep_or_has_an_endless_number_is_refused() -> None:
    headers = {"content-type": "application/json"}
    deep = b'{"title":' + b"[" * 300 + b"]" * 300 + b"}"
    assert refused(order, "POST /", content=deep, headers=headers)[0] == 400
    endless = SENT | {"price": "1e999999999"}
    assert refused(order, "POST /", json=endless)[1]["parameters"][0]["name"] == "price"


def test_models_are_found_within_other_types() -> None:
    def several(body: list[Line] | None) -> object:
        return body

    def nested(body: Plain) -> object:
        return [body.line.count, body]

    def point(body: Point) -> object:
        return body.x

    app = App()
    app.post("/several", several)
    app.post("/nested", nested)
    app.post("/point", point)
    client = Client(app)
    assert client.post("/several", json=[{"item": "x"}]).json() == [{"item": "x", "itemCount": 1}]
    nested_line = {"line": {"item": "x", "itemCount": 3}}
    assert client.post("/nested", json=nested_line).json() == [3, nested_line | {"note": ""}]
    assert client.post("/point", json={"x": 1}).json() == 1
    for path, sent in (("/several", [{"item": 1}]), ("/nested", {"line": {}}), ("/point", {"x": -1})):
        response = client.post(path, json=sent)
        assert (response.status, len(response.json()["parameters"])) == (422, 1), response.text


def test_types_of_pydantic_are_parameters() -> None:
    def handler(n: Annotated[int, pydantic.Field(ge=5)], url: pydantic.HttpUrl, size: pydantic.PositiveInt = 1) -> Any:
        return [n, str(url), size]

    assert given(handler, "GET /?n=5&url=http://a/") == [5, "http://a/", 1]
    status, body = refused(handler, "GET /?n=4&url=x&size=0")
    assert (status, [each["name"] for each in body["parameters"]]) == (422, ["n", "url", "size"])


@pytest.mark.parametrize("annotation", [Bypassing, Unenforced, list[Unenforced]])
def test_what_pydantic_would_not_see_is_refused_when_the_application_loads(annotation: Any) -> None:
    def handler(body: Any) -> None: ...

    handler.__annotations__["body"] = annotation
    with pytest.raises(SignatureError, match=r"would not (check|be enforced)"):
        App().post("/", handler)


def test_a_model_is_published() -> None:
    app = App()
    app.get("/", lambda: channel("c").next(timeout=1))
    with Client(app) as client:
        parked = client.get("/")
        client.publish("c", Line(item="x"))
        assert parked.json() == {"item": "x", "itemCount": 1}


def test_nobody_imports_pydantic_for_an_application_without_models() -> None:
    code = """
import sys
from dataclasses import dataclass
from parkade import App
from parkade.testing import Client
app = App()
@dataclass
class Bid:
    amount: int
@app.post("/")
def bid(body: Bid, n: int = 5) -> Bid:
    return body
assert Client(app).post("/", json={"amount": 1}).json() == {"amount": 1}
assert Client(app).post("/", json={"amount": "x"}).status == 422
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
