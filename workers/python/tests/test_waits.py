"""Waits: returned, with a function, awaited; timers and channels; on the test client's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from parkade import (
    App,
    InvalidChannel,
    InvalidMessage,
    Message,
    Request,
    Response,
    Rows,
    SignatureError,
    Status,
    Wait,
    WaitError,
    after,
    channel,
    html,
    query,
)
from parkade.testing import Client

ID = UUID("6f1c2e34-9a0b-4c5d-8e7f-0123456789ab")


@dataclass
class Lot:
    name: str
    price: int


# Functions that are called after a wait stand at the top of a module.


def with_state(title: str, day: date, lot: Lot, identity: UUID) -> dict[str, Any]:
    return {"title": title, "day": day, "lot": lot.name, "identity": identity}


def with_message(message: Message | None, lot: str) -> str:
    return f"{lot}: nothing" if message is None else f"{lot}: {message.value} at {message.cursor}"


def with_request(request: Request, n: int) -> str:
    return f"{n} {request.method} {request.path} {request.query['n']} {request.headers['x-a']} {request.route}"


def nothing() -> None: ...


def by_place(got: object, /, **state: int) -> str:
    return f"{got} {state}"


def of_any_number(*got: object) -> str:
    return str(got)


def wrapped(*arguments: Any, **state: Any) -> str:
    """As of a decorator without `functools.wraps`."""
    return by_place(*arguments, **state)


def of_names(**state: Any) -> str:
    return str(state)


def state_by_place(got: object, title: str, /) -> None: ...


def again(n: int) -> Wait | str:
    return after(1).then(again, n=n - 1) if n else "done"


def raising() -> None:
    raise KeyError("x")


def got(outcome: object) -> str:
    return repr(outcome)


def app_with(wait: Wait | Callable[[], Any]) -> Client:
    app = App()
    app.get("/", (lambda: wait) if isinstance(wait, Wait) else wait)
    return Client(app)


@pytest.mark.parametrize(
    ("response", "status", "text"),
    [
        ("later", 200, "later"),
        (html("<p>"), 200, "<p>"),
        (None, 204, ""),
        (Status(202), 202, ""),
        (202, 200, "202"),
        ({"a": 1}, 200, '{"a":1}'),
    ],
)
def test_a_timer_answers_when_its_time_has_passed(response: object, status: int, text: str) -> None:
    client = app_with(after(2, response))
    parked = client.get("/")
    client.advance(1.999)
    assert parked.parked
    client.advance(0.001)
    assert (parked.parked, parked.status, parked.text) == (False, status, text)


def test_timers_end_in_their_order() -> None:
    app = App()
    ended: list[float] = []
    app.get("/{n:float}", lambda n: after(n).then(note, n=n))
    note.ended = ended  # type: ignore[attr-defined]
    client = Client(app)
    for seconds in (3, 1, 2):
        client.get(f"/{seconds}")
    client.advance(10)
    assert ended == [1, 2, 3]


def note(n: float) -> None:
    note.ended.append(n)  # type: ignore[attr-defined]


def test_the_next_message_is_the_answer_to_everybody_who_waits() -> None:
    app = App()
    app.get("/next", lambda: channel("a").next(timeout=30))
    app.post("/", lambda body: channel("a").publish(body))

    def publish(body: dict[str, int]) -> Status:
        channel("a").publish(body)
        return Status(202)

    app.put("/", publish)
    client = Client(app)
    waiting = [client.get("/next") for _ in range(3)]
    assert (client.parked, client.put("/", json={"amount": 5}).status, client.parked) == (3, 202, 0)
    assert [response.json() for response in waiting] == [{"amount": 5}] * 3
    assert waiting[0].headers["etag"].strip('"').endswith(".1")


def test_a_wait_without_a_message_ends_with_204() -> None:
    client = app_with(channel("a").next(timeout=30))
    parked = client.get("/")
    client.advance(30)
    assert (parked.status, parked.text) == (204, "")


def test_a_client_that_comes_back_with_its_cursor_misses_nothing() -> None:
    client = app_with(channel("a").next())
    first = client.get("/")
    for text in ("one", "two", "three"):
        client.publish("a", text)
    second = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (first.text, second.text) == ("one", "two")
    third = client.get("/", headers={"last-event-id": second.headers["etag"].strip('"')})
    assert third.text == "three"
    assert client.get("/").parked


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[" * 20_000 + b"]" * 20_000, "nested too deeply for Python; body and text can still be read"),
        (b"{nope", "malformed"),
        (b'"\xff"', "(can.t decode|Invalid UTF-8)"),  # as one release of msgspec says, or another
    ],
)
def test_a_message_that_is_not_what_it_says_is_its_publishers_fault(body: bytes, why: str) -> None:
    message = Message(body, "application/json", "7.1")
    for _ in range(2):
        with pytest.raises(InvalidMessage, match=rf"published as application/json \(7\.1\): .*{why}"):
            _ = message.value
    assert (message.body, message.text) == (body, body.decode("utf-8", "replace"))


def test_what_is_no_longer_held_is_told_as_a_gap() -> None:
    app = App()
    app.channel("a*", count=2)
    app.get("/", lambda: channel("ab").next(since="7e57.1").then(with_gap))
    client = Client(app)
    for n in range(5):
        client.publish("ab", n)
    assert client.get("/").json() == [3, True]


def test_a_history_ends_on_the_clients_clock_and_the_next_message_tells_of_the_gap() -> None:
    app = App()
    app.channel("brief", age=60)
    app.get("/{name}", lambda name, since: channel(name).next(since=since).then(with_gap))
    app.get("/{name}/held", lambda name: channel(name).history())
    client = Client(app)
    for name in ("brief", "usual"):
        client.publish(name, "first")
    client.advance(60)
    assert [len(client.get(f"/{name}/held").json()["messages"]) for name in ("brief", "usual")] == [0, 1]
    waiting = [client.get("/brief", params={"since": cursor}) for cursor in ("7e57.0", "7e57.1", "7e57.2")]
    client.publish("brief", "second")
    assert [one.json() for one in waiting] == [["second", True], ["second", False], ["second", True]]
    client.advance(300)
    assert client.get("/usual/held").json()["messages"] == []


def with_gap(message: Message) -> list[Any]:
    return [message.value, message.gap]


def test_a_stream_can_be_read_message_by_message() -> None:
    client = app_with(channel("a").stream())
    parked = client.get("/")
    assert parked.read() is None
    client.publish("a", {"n": 1})
    client.publish("a", "two")
    first, second = parked.read(), parked.read()
    assert first is not None
    assert second is not None
    assert (first.value, second.text, parked.parked) == ({"n": 1}, "two", True)
    again = client.get("/", headers={"last-event-id": first.cursor})
    assert [message.text for message in again.messages] == ["two"]
    client.leave(parked)
    assert (client.parked, parked.parked) == (1, False)


@pytest.mark.parametrize(
    ("wait", "then", "text"),
    [
        (after(1).then(nothing), 1, ""),
        (after(1).then(got), 1, "None"),
        (after(1).then(again, n=3), 4, "done"),
        (channel("a").next(timeout=5).then(with_message, lot="7"), 5, "7: nothing"),
        (channel("a").next(timeout=5).then(got), 5, "None"),
    ],
)
def test_a_function_is_called_with_the_outcome(wait: Wait, then: float, text: str) -> None:
    client = app_with(wait)
    parked = client.get("/")
    client.advance(then - 0.5)
    assert parked.parked
    client.advance(0.5)
    assert parked.text == text


def test_a_function_gets_a_message() -> None:
    client = app_with(channel("a").next().then(with_message, lot="7"))
    parked = client.get("/")
    client.publish("a", {"amount": 5})
    assert parked.text == "7: {'amount': 5} at 7e57.1"


def test_state_comes_back_as_the_annotations_say() -> None:
    client = app_with(after(1).then(with_state, title="t", day=date(2024, 5, 6), lot=Lot("l", 1), identity=ID))
    parked = client.get("/")
    client.advance(1)
    assert parked.json() == {"title": "t", "day": "2024-05-06", "lot": "l", "identity": str(ID)}


def test_a_function_may_ask_for_the_request() -> None:
    app = App()
    app.get("/a b", lambda: after(1).then(with_request, n=1), name="spaced")
    client = Client(app)
    parked = client.get("/a b", params={"n": 7}, headers={"X-A": "b"})
    client.advance(1)
    assert parked.text == "1 GET /a b 7 b spaced"


def test_hooks_and_error_handlers_are_there_for_functions_too() -> None:
    app = App()
    app.get("/{kind}", lambda kind: after(1).then(raising if kind == "bad" else nothing))

    @app.after
    def mark(request: Request, response: Response) -> None:
        response.headers["x-path"] = request.path

    @app.error(KeyError)
    def missing(request: Request) -> str:
        return f"no {request.path}"

    client = Client(app)
    good, bad = client.get("/good"), client.get("/bad")
    client.advance(1)
    assert (good.status, good.headers["x-path"]) == (204, "/good")
    assert (bad.status, bad.text, bad.headers["x-path"]) == (500, "no /bad", "/bad")


@pytest.mark.parametrize(
    ("function", "state", "told"),
    [
        (by_place, {"n": 1}, "None {'n': 1}"),
        (wrapped, {"n": 1}, "None {'n': 1}"),
        (wrapped, {}, "None {}"),
        (of_any_number, {}, "(None,)"),
        (of_names, {"n": 1, "of": ["x"]}, "{'n': 1, 'of': ['x']}"),
    ],
)
def test_a_function_may_take_the_outcome_by_place_and_any_state(
    function: Callable[..., Any], state: dict[str, Any], told: str
) -> None:
    client = app_with(lambda: after(1).then(function, **state))
    parked = client.get("/")
    client.advance(1)
    assert (parked.status, parked.text) == (200, told)


def test_a_function_that_no_worker_could_find_is_refused_at_once() -> None:
    def nested() -> None: ...

    for function in (nested, lambda: None, Client(App()).get):
        with pytest.raises(SignatureError):
            after(1).then(function)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: after(1).then(with_message, other=1), SignatureError, "takes no other"),
        (lambda: after(1).then(with_message), SignatureError, "needs lot"),
        (lambda: after(1).then(state_by_place, title="x"), SignatureError, "write title after the /"),
        (lambda: channel("a").stream().then(nothing), WaitError, "no .then"),
        (lambda: after(1).then(nothing).then(got), WaitError, "a wait has one .then"),
        (lambda: after(-1), ValueError, "0 or more"),
        (lambda: after(float("nan")), ValueError, "finite"),
        (lambda: channel("a").next(timeout=-1), ValueError, "0 or more"),
        (lambda: channel(""), InvalidChannel, "1 to 200 bytes"),
        (lambda: channel("ü" * 101), InvalidChannel, "1 to 200 bytes"),
        (lambda: channel("a\nb"), InvalidChannel, "control"),
        (lambda: channel("a").publish("x"), WaitError, "no core here"),
    ],
)
def test_a_wait_that_cannot_be_is_refused_at_once(make: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: after(1).then(got, outcome=object()), "cannot be encoded as MessagePack"),
        (lambda: after(1).then(got, outcome="x" * 70_000), "at most 65536"),
        (lambda: after(1, "x" * 70_000), "use .then"),
        (lambda: after(1, iter("ab")), "use .then"),
        (lambda: after(1, after(1)), "use .then"),
    ],
)
def test_what_cannot_be_kept_is_500_with_the_reason_in_the_log(
    make: Callable[[], Wait], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app_with(make).get("/").status == 500
    assert said in capsys.readouterr().err


def test_a_channels_name_from_a_client_is_the_clients_fault() -> None:
    app = App()
    app.get("/{name}", lambda name: channel(name).next())
    assert Client(app).get("/a%0Ab").status == 400


@pytest.mark.parametrize(
    ("value", "content_type", "told", "seen"),
    [
        ("ü", None, "text/plain; charset=utf-8", "ü"),
        (b"\xff", None, "application/octet-stream", b"\xff"),
        ({"a": 1}, None, "application/json", {"a": 1}),
        (Lot("l", 1), None, "application/json", {"name": "l", "price": 1}),
        ("<a/>", "text/xml", "text/xml", "<a/>"),
        (b'{"a":1}', "application/vnd.x+json", "application/vnd.x+json", {"a": 1}),
    ],
)
def test_a_message_carries_its_content_type(value: object, content_type: str | None, told: str, seen: object) -> None:
    client = app_with(channel("a").stream())
    parked = client.get("/")
    client.publish("a", value, content_type)
    (message,) = parked.messages
    assert (message.content_type, message.value) == (told, seen)


def test_a_message_that_is_too_long_is_refused() -> None:
    with Client(App()), pytest.raises(ValueError, match="at most 524288"):
        channel("a").publish(b"x" * 524_289)


# Awaited


def concurrent() -> App:
    app = App()

    @app.get("/compare")
    async def compare() -> dict[str, Any]:
        await after(0.5)
        return {"bid": await channel("a").next(timeout=5)}

    @app.get("/message")
    async def message() -> Message | None:
        found = await channel("a").next()
        assert isinstance(found, Message)
        return found

    @app.get("/response")
    async def response() -> Any:
        return await after(1, "later")

    @app.get("/left")
    async def left() -> None:
        try:
            await channel("never").next()
        except asyncio.CancelledError:
            app.left = True  # type: ignore[attr-defined]
            raise

    @app.get("/wrong/{what}")
    async def wrong(what: str) -> str:
        wait = {"stream": channel("a").stream(), "then": after(1).then(nothing)}[what]
        try:
            await wait
        except WaitError as error:
            return str(error)
        return "no error"

    @app.get("/wait")
    async def returned() -> Wait:
        return after(1, "returned")

    return app


def test_an_awaited_wait_gives_its_outcome() -> None:
    with Client(concurrent()) as client:
        first, second = client.get("/compare"), client.get("/compare")
        client.advance(0.5)
        client.publish("a", {"amount": 5})
        assert [first.json(), second.json()] == [{"bid": {"amount": 5}}] * 2
        third = client.get("/compare")
        client.advance(5.5)
        assert third.json() == {"bid": None}


def test_a_message_that_is_returned_is_the_answer() -> None:
    with Client(concurrent()) as client:
        parked = client.get("/message")
        client.publish("a", "text")
        assert (parked.text, parked.headers["etag"]) == ("text", '"7e57.1"')


def test_an_awaited_timer_gives_its_response_and_a_returned_one_is_returned() -> None:
    with Client(concurrent()) as client:
        awaited, returned = client.get("/response"), client.get("/wait")
        client.advance(1)
        assert (awaited.text, returned.text) == ("later", "returned")


def test_a_client_that_leaves_cancels_what_waits() -> None:
    app = concurrent()
    with Client(app) as client:
        parked = client.get("/left")
        client.leave(parked)
        assert (app.left, client.parked) == (True, 0)  # type: ignore[attr-defined]
        with pytest.raises(AssertionError, match="the client left"):
            parked.response()


@pytest.mark.parametrize("what", ["stream", "then"])
def test_what_cannot_be_awaited_says_so(what: str) -> None:
    with Client(concurrent()) as client:
        assert "awaited" in client.get(f"/wrong/{what}").text


def test_a_wait_cannot_be_awaited_outside_a_request() -> None:
    async def outside() -> None:
        await after(1)

    with pytest.raises(WaitError, match="answers a request"):
        asyncio.run(outside())


# The outcome is what the function's annotation says


@dataclass
class Sale:
    id: int
    amount: Decimal
    note: str = "none"


def sales(rows: list[Sale]) -> object:
    return [[type(each).__name__, each] for each in rows]


def sale(row: Sale | None, n: int = 0) -> object:
    return [type(row).__name__, row]


def amount(value: float) -> object:
    return [type(value).__name__, value]


def plain_rows(rows: Rows) -> object:
    return [type(rows).__name__, rows.columns[0][0]]


def any_rows(rows: list[dict[str, Any]]) -> object:
    return [type(rows).__name__]


def sale_message(sent: Sale | None) -> object:
    return [type(sent).__name__, sent]


def text_message(sent: str | None) -> object:
    return [sent]


def bytes_message(sent: bytes) -> object:
    return list(sent)


def either_message(sent: Message | Sale) -> object:
    return [type(sent).__name__]


ROWS = [{"id": 1, "amount": Decimal("1.50")}]
SALE = {"id": 1, "amount": "1.50", "note": "none"}


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        (query("a").then(sales), [["Sale", SALE]]),
        (query("a").one().then(sale), ["Sale", SALE]),
        (query("a").one().then(sale, n=2), ["Sale", SALE]),
        (query("select amount").value().then(amount), ["float", 1.5]),
        (query("a").then(plain_rows), ["Rows", "id"]),
        (query("a").then(any_rows), ["Rows"]),
    ],
)
def test_rows_become_what_the_function_is_annotated_with(wait: Wait, told: object) -> None:
    client = app_with(wait)
    client.database(lambda asked: [{"amount": Decimal("1.50")}] if "amount" in asked.text else ROWS)
    assert client.get("/").json() == told


@pytest.mark.parametrize(
    ("function", "sent", "told"),
    [
        (sale_message, {"id": 1, "amount": "1.50"}, ["Sale", SALE]),
        (text_message, "hi", ["hi"]),
        (bytes_message, b"\x01\xff", [1, 255]),
        (either_message, {"id": 1}, ["Message"]),
    ],
)
def test_so_does_a_message(function: Callable[..., Any], sent: object, told: object) -> None:
    with app_with(channel("c").next(timeout=1).then(function)) as client:
        parked = client.get("/")
        client.publish("c", sent)
        assert parked.json() == told


def test_what_cannot_become_that_is_500_and_the_log_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with app_with(channel("c").next(timeout=1).then(sale_message)) as client:
        parked = client.get("/")
        client.publish("c", {"id": "x"})
        assert parked.status == 500
        assert "sale_message: its parameter sent: a value of type dict cannot become Sale" in capsys.readouterr().err
        timed_out = client.get("/")
        client.advance(1)
        assert timed_out.json() == ["NoneType", None]


def test_awaited_rows_and_messages_become_the_type_that_is_asked_for() -> None:
    app = App()

    @app.get("/")
    async def handler() -> object:
        rows = await query("a").rows(Sale)
        row = await query("a").one(Sale)
        value = await query("select amount").value(float)
        message = await channel("c").next(timeout=1)
        assert message is not None
        sent = message.json(Sale)
        with pytest.raises(InvalidMessage, match="array"):
            message.json(list[int])
        return [rows, row, value, sent, [type(each).__name__ for each in (*rows, row, value, sent)]]

    with Client(app) as client:
        client.database(lambda asked: [{"amount": Decimal("1.50")}] if "amount" in asked.text else ROWS)
        parked = client.get("/")
        client.publish("c", SALE)
        assert parked.json() == [[SALE], SALE, 1.5, SALE, ["Sale", "Sale", "float", "Sale"]]
