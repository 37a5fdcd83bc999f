"""What a handler's parameters are given, by name and annotation."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest

from parkade import App, Request, SignatureError, Upload
from parkade.testing import Client, Response

ID = "6f1c2e34-9a0b-4c5d-8e7f-0123456789ab"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


@dataclass
class Bid:
    amount: int
    who: str = "anybody"


class Lot(msgspec.Struct):
    name: str
    bids: list[Bid] = []


def send(handler: Callable[..., Any], request: str, at: str = "/", **more: Any) -> tuple[list[Any], Response]:
    """Sends `GET /path` to the handler; gives what it returned and the answer."""
    returned: list[Any] = []

    @functools.wraps(handler)
    def recording(*values: Any, **named: Any) -> None:
        returned.append(handler(*values, **named))

    method, path = request.split()
    app = App()
    app.route(at, recording, methods=[method])
    return returned, Client(app).request(method, path, **more)


def given(handler: Callable[..., Any], request: str, at: str = "/", **more: Any) -> Any:
    returned, response = send(handler, request, at, **more)
    assert returned, response.text
    return returned[0]


def refused(handler: Callable[..., Any], request: str, at: str = "/", **more: Any) -> tuple[int, Any]:
    returned, response = send(handler, request, at, **more)
    assert not returned
    return response.status, response.json() if "json" in response.headers["content-type"] else response.text


def one(annotation: Any, default: Any = ...) -> Callable[..., Any]:
    """A handler with one parameter `x`."""

    def handler(x: Any) -> Any:
        return x

    def with_default(x: Any = default) -> Any:
        return x

    chosen = handler if default is ... else with_default
    chosen.__annotations__ = {"x": annotation}
    return chosen


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "a%20b%C3%BC", "a bü"),
        (int, "-7", -7),
        (int, "007", 7),
        (float, "1.5", 1.5),
        (float, "1e3", 1000.0),
        (bool, "true", True),
        (bool, "on", True),
        (bool, "0", False),
        (UUID, ID, UUID(ID)),
        (datetime, "2024-05-06T07:08:09Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)),
        (date, "2024-05-06", date(2024, 5, 6)),
        (Decimal, "1.10", Decimal("1.10")),
        (Colour, "blue", Colour.BLUE),
        (Size, "1", Size.SMALL),
        (Literal["a", "b"], "b", "b"),
        (int | None, "7", 7),
        (int | None, "", None),
        (str | None, "", ""),
    ],
)
def test_a_field_of_the_query_becomes_what_is_asked_for(annotation: Any, text: str, value: object) -> None:
    assert given(one(annotation), f"GET /?x={text}") == value


@pytest.mark.parametrize(
    ("annotation", "text", "reason"),
    [
        (int, "seven", "an integer is expected"),
        (int, "1_000", "an integer is expected"),
        (int, "7.0", "an integer is expected"),
        (int, "9" * 5_000, "an integer is expected"),
        (float, "nan", "a number is expected"),
        (float, "1e999", "a number is expected"),
        (bool, "maybe", "true or false is expected"),
        (UUID, "1", "a UUID is expected"),
        (datetime, "today", "a date and time (RFC 3339) is expected"),
        (Colour, "green", "one of red, blue is expected"),
        (Literal[1, 2], "3", "one of 1, 2 is expected"),
    ],
)
def test_a_wrong_field_is_422_and_named(annotation: Any, text: str, reason: str) -> None:
    status, body = refused(one(annotation), f"GET /?x={text}")
    assert (status, body["parameters"]) == (422, [{"name": "x", "where": "query", "reason": reason, "value": text}])


@pytest.mark.parametrize(
    ("annotation", "default", "value"),
    [(str, "d", "d"), (int | None, ..., None), (int, 7, 7), (list[int], ..., []), (list[int] | None, None, None)],
)
def test_a_missing_field_has_its_default(annotation: Any, default: Any, value: object) -> None:
    assert given(one(annotation, default), "GET /") == value


def test_a_repeated_field_is_a_list() -> None:
    assert given(one(list[int]), "GET /?x=1&x=2") == [1, 2]
    assert refused(one(list[int]), "GET /?x=1&x=b")[1]["parameters"][0]["value"] == ["1", "b"]


def test_everything_that_is_wrong_is_named_at_once() -> None:
    def handler(n: int, a: int, b: Colour, c: str) -> None: ...

    status, body = refused(handler, "GET /x?b=green", at="/{n}")
    assert status == 422
    assert [(problem["name"], problem["where"]) for problem in body["parameters"]] == [
        ("n", "path"),
        ("a", "query"),
        ("b", "query"),
        ("c", "query"),
    ]


@pytest.mark.parametrize(
    ("at", "path", "annotation", "value"),
    [
        ("/{x}", "/a%2Fb", str, "a/b"),
        ("/{x:int}", "/7", None, 7),
        ("/{x:int}", "/7", str, "7"),
        ("/{x:uuid}", f"/{ID}", None, UUID(ID)),
        ("/{x:float}", "/1.5", None, 1.5),
        ("/{x:path}", "/a/b", str, "a/b"),
        ("/{x}", "/red", Colour, Colour.RED),
    ],
)
def test_a_path_parameter_is_what_the_pattern_or_the_annotation_says(
    at: str, path: str, annotation: Any, value: object
) -> None:
    handler = one(annotation)
    if annotation is None:
        handler.__annotations__ = {}
    assert given(handler, f"GET {path}", at=at) == value


def test_two_path_parameters_go_by_name() -> None:
    def swapped(b: str, a: int) -> tuple[str, int]:
        return b, a

    def keyword(a: str, *, b: str) -> tuple[str, str]:
        return a, b

    def positional(a: str, /, q: int) -> tuple[str, int]:
        return a, q

    assert given(swapped, "GET /1/x", at="/{a}/{b}") == ("x", 1)
    assert given(keyword, "GET /1/x", at="/{a}/{b}") == ("1", "x")
    assert given(positional, "GET /1?q=2", at="/{a}") == ("1", 2)


@pytest.mark.parametrize(
    ("annotation", "content", "value"),
    [
        (Bid, b'{"amount": 5}', Bid(5)),
        (Lot, b'{"name": "a", "bids": [{"amount": 1}]}', Lot("a", [Bid(1)])),
        (dict, b'{"a": [1]}', {"a": [1]}),
        (dict[str, int], b'{"a": 1}', {"a": 1}),
        (Any, b"[1]", [1]),
        (list[Bid], b'[{"amount": 1}]', [Bid(1)]),
        (str, '"ü"'.encode(), '"ü"'),
        (bytes, b"\xff", b"\xff"),
        (Bid | None, b"", None),
    ],
)
def test_a_body_becomes_what_is_asked_for(annotation: Any, content: bytes, value: object) -> None:
    def handler(body: Any) -> Any:
        return body

    handler.__annotations__ = {"body": annotation}
    headers = {"content-type": "application/json"} if annotation is not str else {}
    assert given(handler, "POST /", content=content, headers=headers) == value


def test_a_record_is_the_body_whatever_its_name() -> None:
    def handler(bid: Bid, who: str) -> tuple[Bid, str]:
        return bid, who

    assert given(handler, "POST /?who=me", json={"amount": 5}) == (Bid(5), "me")


@pytest.mark.parametrize(
    ("content", "content_type", "status", "told"),
    [
        (b'{"amount": "five"}', "application/json", 422, ("amount", "body", "Expected `int`, got `str`")),
        (b"{}", "application/vnd.x+json", 422, ("amount", "body", "it is missing")),
        (b"", "application/json", 422, ("body", "body", "it is missing")),
        (b'{"amount": 5', "application/json", 400, None),
        (b'{"amount": 5}', "text/plain", 415, None),
        (b"amount=5", "application/x-www-form-urlencoded", 415, None),
    ],
)
def test_a_body_that_does_not_fit_says_why(content: bytes, content_type: str, status: int, told: Any) -> None:
    def handler(body: Bid) -> None: ...

    found, body = refused(handler, "POST /", content=content, headers={"content-type": content_type})
    assert found == status
    if told is not None:
        (problem,) = body["parameters"]
        assert (problem["name"], problem["where"], problem["reason"]) == told


def test_the_fields_of_a_form_come_before_those_of_the_query() -> None:
    def handler(a: int, b: str, q: str) -> tuple[int, str, str]:
        return a, b, q

    assert given(handler, "POST /?q=query&a=9", data={"a": 1, "b": "ü &"}) == (1, "ü &", "query")
    _, body = refused(handler, "POST /?q=1", data={"a": "x"})
    assert [(problem["name"], problem["where"]) for problem in body["parameters"]] == [("a", "form"), ("b", "form")]


def test_a_file_of_a_form_is_an_upload() -> None:
    def handler(name: str, file: Upload, other: Upload | None = None) -> tuple[str, Upload, Upload | None]:
        return name, file, other

    content = (
        b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nAnna\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\nb\r\nc\r\n--x--\r\n"
    )
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert given(handler, "POST /", content=content, headers=headers) == (
        "Anna",
        Upload("a.txt", "text/plain", b"b\r\nc", "a.txt"),
        None,
    )


def test_the_request_itself_is_given_by_annotation() -> None:
    def handler(request: Request, x: int) -> tuple[str, int]:
        return request.method, x

    assert given(handler, "GET /?x=1") == ("GET", 1)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (lambda: None, "has no parameter for x"),
        (lambda x, *args: None, "takes *args"),
        (lambda x, **kwargs: None, "takes **kwargs"),
        (one(complex), "a path's parameter cannot be"),
    ],
)
def test_a_signature_that_cannot_be_served_is_an_error_when_it_is_registered(
    handler: Callable[..., Any], said: str
) -> None:
    with pytest.raises(SignatureError, match=said.replace("*", r"\*")):
        App().get("/{x}", handler)


def test_other_bad_signatures_too() -> None:
    def unknown(x: complex) -> None: ...

    def nowhere(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def two(a: Bid, b: Lot) -> None: ...

    for handler, said in (
        (unknown, "no part of a request can become"),
        (nowhere, "Nowhere"),
        (two, "cannot both be the body"),
    ):
        with pytest.raises(SignatureError, match=said):
            App().get("/", handler)
