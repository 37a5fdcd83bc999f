"""A number that is returned is JSON; a bare status is found when the application loads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from http import HTTPStatus
from typing import Annotated, Any, Literal, NewType

import pytest

from parkade import App, Request, Response, SignatureError, Status, Wait, after
from parkade.testing import Client

UserId = NewType("UserId", int)


class Level(IntEnum):
    LOW = 250


def answered(handler: Callable[..., Any]) -> tuple[int, str | None, str]:
    app = App()
    app.get("/", handler)
    response = Client(app).get("/")
    return response.status, response.headers.get("content-type"), response.text


@pytest.mark.parametrize("number", [0, -1, 42, 204, 404, 2**70])
def test_a_number_is_json(number: int) -> None:
    def annotated() -> int:
        return number

    def bare():  # type: ignore[no-untyped-def]
        return number

    async def coroutine() -> int | Response:
        return number

    for handler in (annotated, bare, coroutine):
        assert answered(handler) == (200, "application/json", str(number))


def test_an_annotated_literal_is_json_too() -> None:
    def number() -> int:
        return 404

    assert answered(number) == (200, "application/json", "404")
    assert answered(lambda: 3.5) == (200, "application/json", "3.5")


def test_a_status_has_its_own_type() -> None:
    assert answered(lambda: Status(202)) == (202, None, "")
    assert answered(lambda: HTTPStatus.ACCEPTED) == (202, None, "")
    assert answered(lambda: Response({"id": 1}, status=201)) == (201, "application/json", '{"id":1}')
    app = App()
    app.get("/gone", Status(410, {"x-why": "age"}))
    app.get("/later", after(0, Status(202)))
    response = Client(app).get("/gone")
    assert (response.status, response.headers["x-why"], response.text) == (410, "age", "")
    with pytest.raises(ValueError, match="200 to 599"):
        Status(700)


def created(new: bool):  # type: ignore[no-untyped-def]
    return 201 if new else 200


def nothing() -> None:
    return 404  # type: ignore[return-value]


def a_response() -> Response:
    return 404  # type: ignore[return-value]


async def coroutine():  # type: ignore[no-untyped-def]
    await after(1)
    return 202


class Handler:
    def __call__(self):  # type: ignore[no-untyped-def]
        return 204


def a_wait(n: int) -> Wait | dict[str, int]:
    if n:
        return after(1)
    return 404  # type: ignore[return-value]


@pytest.mark.parametrize("handler", [created, nothing, a_response, coroutine, Handler(), lambda: 204, a_wait])
def test_a_bare_status_is_refused_when_the_application_loads(handler: Callable[..., Any]) -> None:
    with pytest.raises(SignatureError, match=r"a number is JSON: write Status\(20|a number is JSON: write Status\(404"):
        App().get("/", handler)


def test_so_is_that_of_a_hook_an_error_handler_and_a_constant() -> None:
    app = App()

    def closed(request: Request):  # type: ignore[no-untyped-def]
        return 503

    with pytest.raises(SignatureError, match="Status"):
        app.before(closed)
    with pytest.raises(SignatureError, match="Status"):
        app.error(404)(closed)
    with pytest.raises(SignatureError, match=r"write Status\(410\) for the status, Response\(410\) for the JSON"):
        app.get("/gone", 410)
    app.get("/answer", 42)
    assert Client(app).get("/answer").json() == 42


def literal() -> Literal[404]:
    return 404


def any_number() -> float:
    return 404


def an_id() -> Annotated[UserId, "who"]:
    return UserId(404)


def anything() -> object:
    return 404


def level() -> Level:
    return Level.LOW


def awaited() -> Awaitable[int] | int:
    return 404


@pytest.mark.parametrize("handler", [literal, any_number, an_id, anything, level, awaited])
def test_a_function_that_says_that_it_returns_a_number_does(handler: Callable[..., Any]) -> None:
    assert answered(handler)[:2] == (200, "application/json")


def test_a_number_that_looks_like_a_status_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    def accepted() -> int:
        return 202

    def count() -> int:
        return len("abc")

    app = App()
    app.get("/accepted", accepted)
    app.get("/count", count)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("WARNING: ")
    assert "always returns a number that could be a status" in line
