"""Several waits as one, on the test client's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from parkade import (
    App,
    First,
    Message,
    QueryError,
    Request,
    Response,
    Wait,
    WaitError,
    after,
    all_of,
    channel,
    first_of,
    query,
)
from parkade.testing import Client


def client_of(handler: Callable[[], Any]) -> Client:
    app = App(concurrent=True)
    app.get("/")(handler)
    return Client(app)


def test_all_of_gives_what_each_gives_in_its_place() -> None:
    async def handler() -> object:
        found = await all_of(after(2, "late"), channel("c").next(timeout=1), after(0), channel("d").next())
        late, nothing, elapsed, message = found
        assert message is not None
        assert found == [late, nothing, elapsed, message]
        return found

    with client_of(handler) as client:
        response = client.get("/")
        client.advance(1)
        client.publish("d", "hola")
        assert response.parked
        client.advance(1)
        assert response.json() == ["late", None, None, "hola"]


def test_all_of_nothing_is_over_at_once() -> None:
    async def handler() -> object:
        return await all_of()

    assert client_of(handler).get("/").json() == []


@pytest.mark.parametrize(("seconds", "answer"), [(1, {"index": 1, "value": "quick"}), (2, None)])
def test_first_of_says_which_was_first(seconds: int, answer: object) -> None:
    async def handler() -> object:
        return await first_of(channel("c").next(), after(1, "quick"), after(1.5))

    with client_of(handler) as client:
        response = client.get("/")
        if answer is None:
            client.publish("c", "hola")
            assert response.json() == {"index": 0, "value": "hola"}
        else:
            client.advance(seconds)
            assert response.json() == answer
        assert client.parked == 0


def test_of_those_that_are_over_the_first_counts() -> None:
    async def handler() -> object:
        won = await first_of(after(1, "a"), after(0, "b"), after(0, "c"))
        assert won == First(1, "b")
        match won:
            case First(index=1, value=str(value)):
                return value
        return None

    assert client_of(handler).get("/").text == "b"


def test_the_first_failure_ends_the_others() -> None:
    async def handler() -> object:
        try:
            await all_of(channel("c").next(), query("select nothing"), after(9))
        except QueryError as error:
            return error.reason
        return "nothing failed"

    with client_of(handler) as client:
        client.database({"select nothing": QueryError("no", reason="refused", effect="none", status=500)})
        assert client.get("/").text == "refused"
        assert client.parked == 0


def test_groups_are_awaited_within_groups() -> None:
    async def handler() -> object:
        (news, tick) = await all_of(first_of(channel("c").next(), after(5, "nothing new")), after(1, "tick"))
        return [news.index, news.value, tick]

    with client_of(handler) as client:
        response = client.get("/")
        client.advance(5)
        assert response.json() == [1, "nothing new", "tick"]


def test_a_client_that_leaves_ends_all_of_them() -> None:
    ended: list[str] = []

    async def handler() -> object:
        try:
            return await all_of(channel("c").next(), first_of(channel("d").next(), after(5)))
        except asyncio.CancelledError:
            ended.append("handler")
            raise

    with client_of(handler) as client:
        response = client.get("/")
        client.leave(response)
        assert (ended, client.parked) == (["handler"], 0)


@pytest.mark.parametrize("make", [all_of, first_of])
def test_only_waits_that_can_be_awaited_are_taken(make: Callable[..., Wait]) -> None:
    for wrong in (channel("c").stream(), after(1).headers({"x-a": "b"}), after(1).then(got)):
        with pytest.raises(WaitError, match=f"{make.__name__} takes waits"):
            make(after(1), wrong)
    with pytest.raises(TypeError, match=f"{make.__name__} takes waits, not an int"):
        make(after(1), 2)
    with pytest.raises(WaitError, match="at most 100 waits, not 101"):
        make(*(after(1) for _ in range(101)))


def got(outcome: object) -> str:
    return repr(outcome)


def test_the_first_of_none_would_never_be_over() -> None:
    with pytest.raises(ValueError, match="at least one wait"):
        first_of()


# Returned: no worker is busy meanwhile. Functions that are called after a wait stand at the top of a module.


def page(found: list[Any], title: str) -> str:
    news, tick, rows = found
    return f"{title}: {news and news.text} {tick} {rows}"


async def page_of_first(first: First[Any], request: Request) -> Response:
    value = first.value.text if isinstance(first.value, Message) else first.value
    return Response(f"{request.path} {first.index} {value}", 201)


def typed(found: tuple[int, list[str]]) -> str:
    return repr(found)


def lots(found: tuple[Message | None, int | None, dict[str, int]], first: str = "") -> str:
    message, n, row = found
    return f"{type(found).__name__} {message and message.text} {n} {row} {first}"


def number(first: First[int | None]) -> str:
    return f"{first.index} {first.value!r}"


def again(first: First[Any]) -> Any:
    return first_of(after(1), after(2)) if first.index == 1 else f"{first}"


FOUND = {"select n": [{"n": 1}, {"n": 2}], "select one": [{"n": 7}]}


def test_a_function_gets_what_all_of_them_gave() -> None:
    def handler() -> Wait:
        return all_of(channel("c").next(), after(1), query("select n")).then(page, title="News")

    with client_of(handler) as client:
        client.database(FOUND)
        response = client.get("/")
        client.advance(1)
        assert response.parked
        client.publish("c", "hola")
        assert response.text == "News: hola None [{'n': 1}, {'n': 2}]"
        assert client.parked == 0


def test_a_function_gets_the_first() -> None:
    def handler() -> Wait:
        return first_of(after(9), channel("c").next(timeout=5), query("select n", deadline=5)).then(page_of_first)

    with client_of(handler) as client:
        client.database(lambda asked: after(3, FOUND["select n"]))
        response = client.get("/")
        client.publish("c", "hola")
        assert (response.status, response.text, client.parked) == (201, "/ 1 hola", 0)
        response = client.get("/")
        client.advance(3)
        assert response.text == "/ 2 [{'n': 1}, {'n': 2}]"


def test_what_they_gave_is_what_the_function_says() -> None:
    def handler() -> Wait:
        return all_of(query("select one").value(), query("select names").rows()).then(typed)

    with client_of(handler) as client:
        client.database({"select one": [{"n": 7}], "select names": []})
        assert client.get("/").text == "(7, [])"


def test_each_becomes_what_its_place_says() -> None:
    def handler() -> Wait:
        return all_of(channel("c").next(), channel("n").next(), query("select one").one()).then(lots)

    app = App()
    app.get("/")(handler)
    app.get("/first", first_of(channel("n").next(), after(1)).then(number))
    with Client(app) as client:
        client.database(FOUND)
        response, first = client.get("/"), client.get("/first")
        client.publish("c", "hola")
        client.publish("n", 5)
        assert response.text == "tuple hola 5 {'n': 7} "
        assert first.text == "0 5"


@pytest.mark.parametrize("is_async", [False, True])
def test_returned_alone_they_are_json(is_async: bool) -> None:
    def make() -> Wait:
        return all_of(query("select one").one(), channel("c").next(timeout=0), after(0), query("select n").rows())

    async def handler() -> Wait:
        return make()

    with client_of(handler if is_async else make) as client:
        client.database(FOUND)
        response = client.get("/")
        assert (response.status, response.json()) == (200, [{"n": 7}, None, None, [{"n": 1}, {"n": 2}]])


def test_a_route_may_be_several_waits() -> None:
    app = App()
    app.get("/", first_of(channel("c").next(), after(2)))
    app.get("/none", all_of())
    with Client(app) as client:
        responses = [client.get("/"), client.get("/")]
        client.publish("c", {"n": 1})
        assert [response.json() for response in responses] == [{"index": 0, "value": {"n": 1}}] * 2
        response = client.get("/")
        client.advance(2)
        assert response.json() == {"index": 1, "value": None}
        assert client.get("/none").json() == []


def test_a_function_may_return_several_waits_again() -> None:
    def handler() -> Wait:
        return first_of(after(2), after(1)).then(again)

    with client_of(handler) as client:
        response = client.get("/")
        client.advance(2)
        assert response.json() == {"index": 0, "value": None}


def test_after_the_first_failure_the_client_is_told_and_no_function_is_called() -> None:
    def handler() -> Wait:
        return all_of(channel("c").next(), query("select nothing")).then(page, title="News")

    with client_of(handler) as client:
        client.database({"select nothing": QueryError("no", reason="refused", effect="none", status=503)})
        response = client.get("/")
        assert (response.status, client.parked) == (503, 0)


def test_a_client_that_leaves_ends_them_all() -> None:
    with client_of(lambda: all_of(channel("c").next(), after(5))) as client:
        response = client.get("/")
        assert response.parked
        client.leave(response)
        assert client.parked == 0


def test_jobs_return_them_too() -> None:
    app = App()

    @app.job
    def both() -> Any:
        return all_of(after(1), channel("c").next())

    @app.job
    def one() -> Any:
        return first_of(after(1), channel("c").next()).then(again)

    @app.get("/{name}")
    def make(name: str) -> Wait:
        return (both if name == "both" else one).enqueue().result()

    with Client(app) as client:
        responses = [client.get("/both"), client.get("/one")]
        client.run_jobs()
        client.advance(1)
        client.publish("c", "hola")
        assert responses[0].json() == [None, "hola"]
        assert responses[1].text == "First(index=0, value=None)"


def test_what_cannot_be_waited_for_without_a_coroutine_is_refused() -> None:
    with pytest.raises(WaitError, match="first_of within another one can only be awaited"):
        all_of(first_of(after(1)), after(2)).then(page, title="x")
    # The core does not know the response of a member; awaited, it is the value.
    for several in (all_of(after(1, "x"), after(2)), first_of(after(1, "x"))):
        with pytest.raises(WaitError, match="with a response among several waits can only be awaited"):
            several.then(page, title="x")
    with pytest.raises(WaitError, match="after all_of a function gives the answer"):
        all_of(after(1)).headers({"x-a": "b"})
    with pytest.raises(WaitError, match=r"one \.then"):
        all_of(after(1)).then(typed).then(typed)


def test_neither_shows_its_parameters() -> None:
    secret = all_of(query("select $1", "secret"), after(1))
    assert repr(secret) == "<all_of 2 waits>"
    assert repr(first_of(after(1)).then(typed)).startswith("<first_of 1 waits.then(")
