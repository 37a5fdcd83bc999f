"""What `Annotated` demands of parameters is enforced, or refused when the application loads. Headers and cookies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta

from parkade import App, Cookie, Header, Request, SignatureError, Upload
from parkade._validation import faults
from parkade.testing import Client
from test_parameters import given, refused

Age = NewType("Age", Annotated[int, Meta(ge=18)])  # type: ignore[valid-newtype]


def path(n: Annotated[int, Meta(ge=5)]) -> None: ...
def path_and_query(n: Annotated[int, Meta(ge=5)], q: Annotated[str, Meta(max_length=3)] = "") -> None: ...
def limit(n: Annotated[int, Meta(ge=1, le=100)] = 20) -> None: ...
def above(n: Annotated[float, Meta(gt=0, lt=1)]) -> None: ...
def money(n: Annotated[Decimal, Meta(gt=0)]) -> None: ...
def dozens(n: Annotated[int, Meta(multiple_of=12)]) -> None: ...
def quarters(n: Annotated[float, Meta(multiple_of=0.25)]) -> None: ...
def cents(n: Annotated[Decimal, Meta(multiple_of=0.01)]) -> None: ...
def word(n: Annotated[str, Meta(min_length=2, pattern="^[a-z]*$")]) -> None: ...
def letter(n: Annotated[str, Meta(min_length=1)]) -> None: ...
def optional(n: Annotated[int, Meta(ge=5)] | None = None) -> None: ...
def optional_inside(n: Annotated[int | None, Meta(ge=5)]) -> None: ...
def each(n: list[Annotated[int, Meta(ge=5)]]) -> None: ...
def some(n: Annotated[list[int], Meta(min_length=1, max_length=2)]) -> None: ...
def zoned(n: Annotated[datetime, Meta(tz=True)]) -> None: ...
def local(n: Annotated[datetime, Meta(tz=False)]) -> None: ...
def alias(n: Age) -> None: ...
def header(n: Annotated[int, Header(), Meta(le=9)]) -> None: ...
def cookie(n: Annotated[int, Meta(le=9), Cookie()]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "value", "reason"),
    [
        (limit, "0", "a number of at least 1 is expected"),
        (limit, "101", "a number of at most 100 is expected"),
        (limit, "x", "an integer is expected"),
        (above, "0", "a number above 0 is expected"),
        (above, "1.0", "a number below 1 is expected"),
        (money, "-0.01", "a number above 0 is expected"),
        (dozens, "25", "a multiple of 12 is expected"),
        (quarters, "0.3", "a multiple of 0.25 is expected"),
        (cents, "0.125", "a multiple of 0.01 is expected"),
        (word, "a", "at least 2 characters are expected"),
        (letter, "", "at least 1 character is expected"),
        (word, "aB", "text that matches ^[a-z]*$ is expected"),
        (optional, "4", "a number of at least 5 is expected"),
        (optional_inside, "4", "a number of at least 5 is expected"),
        (each, "4", "a number of at least 5 is expected"),
        (zoned, "2026-01-02T03:04:05", "a time zone is expected"),
        (local, "2026-01-02T03:04:05Z", "no time zone is expected"),
        (alias, "17", "a number of at least 18 is expected"),
    ],
)
def test_a_field_that_breaks_a_constraint_is_422(handler: Callable[..., Any], value: str, reason: str) -> None:
    for place in ({"params": {"n": value}}, {"data": {"n": value}}):
        status, body = refused(handler, "POST /", **place)
        (problem,) = body["parameters"]
        assert (status, problem["name"], problem["reason"]) == (422, "n", reason)


def test_so_is_a_path_a_header_a_cookie_and_a_list() -> None:
    assert refused(path, "GET /3", "/{n:int}")[1]["parameters"][0]["where"] == "path"
    status, body = refused(path_and_query, "GET /3?q=abcdef", "/{n:int}")
    assert (status, [each["where"] for each in body["parameters"]]) == (422, ["path", "query"])
    for handler, headers, where in ((header, {"n": "10"}, "header"), (cookie, {"cookie": "n=10"}, "cookie")):
        status, body = refused(handler, "GET /", headers=headers)
        assert (status, body["parameters"]) == (
            422,
            [{"name": "n", "where": where, "reason": "a number of at most 9 is expected", "value": "10"}],
        )
    assert refused(some, "GET /?n=1&n=2&n=3")[1]["parameters"][0]["reason"] == "at most 2 values are expected"
    assert refused(some, "GET /")[1]["parameters"][0]["reason"] == "at least 1 value is expected"


@pytest.mark.parametrize(
    ("handler", "query", "value"),
    [
        ("limit", "", 20),
        ("limit", "n=100", 100),
        ("money", "n=0.01", Decimal("0.01")),
        ("cents", "n=0.10", Decimal("0.10")),
        ("quarters", "n=0.75", 0.75),
        ("optional", "", None),
        ("optional_inside", "n=", None),
        ("each", "n=5&n=6", [5, 6]),
        ("alias", "n=18", 18),
    ],
)
def test_what_fits_passes(handler: str, query: str, value: object) -> None:
    annotation = globals()[handler].__annotations__["n"]
    default: Any = 20 if handler == "limit" else None

    def returning(n: Any = default) -> object:
        return n

    returning.__annotations__["n"] = annotation
    assert given(returning, f"GET /?{query}") == value


def test_headers_and_cookies() -> None:
    def handler(
        user_agent: Annotated[str, Header()],
        token: Annotated[UUID | None, Header("X-Token")],
        accept: Annotated[list[str], Header],
        visits: Annotated[int, Cookie] = 0,
        session: Annotated[str | None, Cookie("sid")] = None,
    ) -> object:
        return [user_agent, token, accept, visits, session]

    headers = {"User-Agent": "me", "accept": "a", "cookie": "visits=3; sid=x"}
    assert given(handler, "GET /", headers=headers) == ["me", None, ["a"], 3, "x"]
    assert given(handler, "GET /", headers={"user-agent": ""}) == ["", None, [], 0, None]
    status, body = refused(handler, "GET /")
    assert (status, body["parameters"]) == (
        422,
        [{"name": "user_agent", "where": "header", "reason": "it is missing", "value": None}],
    )


def test_files_in_a_list() -> None:
    def handler(files: Annotated[list[Upload], Meta(max_length=2)]) -> object:
        return [file.filename for file in files]

    part = '--x\r\ncontent-disposition: form-data; name="files"; filename="{}"\r\n\r\n1\r\n'
    headers = {"content-type": "multipart/form-data; boundary=x"}

    def form(*names: str) -> bytes:
        return ("".join(part.format(name) for name in names) + "--x--").encode()

    assert given(handler, "POST /", content=form("a", "b"), headers=headers) == ["a", "b"]
    assert given(handler, "POST /") == []
    status, body = refused(handler, "POST /", content=form("a", "b", "c"), headers=headers)
    assert (status, body["parameters"][0]["reason"]) == (422, "at most 2 values are expected")


def test_a_default_without_an_annotation_has_a_type() -> None:
    def handler(n=5, name="x", price=Decimal(1), flag=False, none=None):  # type: ignore[no-untyped-def]
        return [n, name, price, flag, none]

    assert given(handler, "GET /?n=6&price=2.5&flag=on&none=7") == [6, "x", Decimal("2.5"), True, "7"]
    assert refused(handler, "GET /?n=x")[1]["parameters"][0]["reason"] == "an integer is expected"


class Anything:
    pass


@dataclass
class Holder:
    thing: Anything


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Annotated[str, Meta(ge=1)], "Meta(ge=1) does not apply to str"),
        (Annotated[int, Meta(max_length=1)], "Meta(max_length=1) does not apply to int"),
        (Annotated[UUID, Meta(pattern="a")], "Meta(pattern='a') does not apply to UUID"),
        (Annotated[Literal["a"], Meta(min_length=1)], "Meta(min_length=1) does not apply to Literal['a']"),
        (list[Annotated[bool, Meta(gt=0)]], "Meta(gt=0) does not apply to bool"),
        (Anything, "no part of a request can become Anything"),
    ],
)
@pytest.mark.parametrize("at", ["/", "/{n}"])
def test_a_constraint_that_nothing_enforces_is_an_error_when_the_application_loads(
    annotation: Any, said: str, at: str
) -> None:
    def handler(n: Any) -> None: ...

    handler.__annotations__["n"] = annotation
    if at != "/" and (annotation is Anything or "list" in str(annotation)):
        said = "a path's parameter cannot be"
    with pytest.raises(SignatureError, match=re.escape(said)):
        App().get(at, handler)


@pytest.mark.parametrize("annotation", [Anything, list[Anything], dict[str, Anything | None], Holder])
def test_a_body_that_nothing_can_become_is_an_error_when_the_application_loads(annotation: Any) -> None:
    def handler(body: Any) -> None: ...

    handler.__annotations__["body"] = annotation
    with pytest.raises(SignatureError, match="no input can be converted to Anything: write a dataclass"):
        App().post("/", handler)


class Order(msgspec.Struct):
    title: Annotated[str, Meta(min_length=1)]
    color: Literal["red", "blue"]
    lines: list[Line] = []
    price: Decimal = Decimal(0)


class Line(msgspec.Struct, rename="camel"):
    item_count: int
    more: dict[str, int] = {}


def order(body: Order) -> None: ...


def test_a_body_names_everything_that_is_wrong_at_once() -> None:
    sent = {"title": "", "color": "green", "lines": [{"itemCount": 1}, {"itemCount": "x", "more": {"a": "b"}}, {}]}
    _, body = refused(order, "POST /", json=sent)
    assert [(each["name"], each["reason"], each["value"]) for each in body["parameters"]] == [
        ("title", "Expected `str` of length >= 1", ""),
        ("color", "Invalid enum value 'green'", "green"),
        ("lines[1].itemCount", "Expected `int`, got `str`", "x"),
        ("lines[1].more[...]", "Expected `int`, got `str`", None),
        ("lines[2].itemCount", "it is missing", None),
    ]


def test_of_many_faults_the_first_are_named() -> None:
    _, body = refused(order, "POST /", json={"title": "t", "color": "red", "lines": [{}] * 50})
    assert len(body["parameters"]) == 20
    _, body = refused(order, "POST /", content=b'{"title": 1} x', headers={"content-type": "application/json"})
    assert body["parameters"][0]["name"] == "title"


@pytest.mark.parametrize(("line", "looks"), [({}, 21), ({"itemCount": 1}, 10_000)])
def test_to_find_the_faults_of_a_long_body_costs_little(
    line: object, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    look = faults._faults_in

    def count(annotation: Any, raw: msgspec.Raw, place: str, *rest: Any) -> Any:
        read.append(place)
        return look(annotation, raw, place, *rest)

    monkeypatch.setattr(faults, "_faults_in", count)
    _, body = refused(order, "POST /", json={"lines": [line] * 20_000 + [{}], "title": "t", "color": "green"})
    assert body["parameters"][0]["name"] == "color"
    assert looks <= len(read) <= 2 * looks + 5


def test_the_value_of_a_long_fault_is_not_shown() -> None:
    _, body = refused(order, "POST /", json={"title": ["x" * 2_000], "color": "red"})
    assert body["parameters"][0]["value"] is None


def test_the_request_tells_it_too() -> None:
    app = App()

    @app.post("/")
    def handler(request: Request) -> object:
        return request.json(Order).title

    response = Client(app).post("/", json={"title": "", "color": "green"})
    assert response.status == 422
    assert "$.title" in response.text
    assert "$.color" in response.text
