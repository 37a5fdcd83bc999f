"""`channel(…).socket(on_message=…)`: what it refuses, what the function gets, and what is made of what it returns."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from parkade import App, Close, HTTPError, Message, SignatureError, WaitError, WebSocket, after, channel
from parkade._handling.socket_messages import SocketMessages
from parkade._link.answers import Attempted, Parked, Plain
from parkade._waits.functions import encode_state
from parkade._wire import frames as f
from parkade._wire import payloads as p

CLOSE_PAYLOAD = msgspec.msgpack.Decoder().decode


class Bid(msgspec.Struct):
    amount: int


def back(message: str | bytes, more: str = "") -> Any:
    return message


def text(message: str) -> Any:
    match message:
        case "close":
            return Close(4001, "bye")
        case "refuse":
            raise HTTPError(403, "not you")
        case "fail":
            raise ValueError("in the middle")
        case "wait":
            return after(1, "later")
        case _:
            return None


def bid(message: Bid) -> int:
    return message.amount


def pieces(message: bytes) -> list[int]:
    return list(message)


def takes_nothing() -> None: ...


def of_a_channel(message: Message) -> None: ...


def wrapped(*arguments: Any, **state: Any) -> Any:
    """As of a decorator without `functools.wraps`."""
    return [*arguments, state]


def back_nothing(message: str) -> None: ...


def called(function: str, said: str | bytes, state: Any = None) -> Any:
    """The answer to what a client has said."""
    body = said.encode() if isinstance(said, str) else said
    outcome = p.Said(isinstance(said, str), body)
    state = encode_state(function, state or {}, None)
    run = SocketMessages(concurrent=False).call(f"{__name__}:{function}", state, outcome)
    return run.run() if isinstance(run, Plain) else run


def ended(function: str, code: int) -> Any:
    """The answer to the end of a WebSocket."""
    state = encode_state(f"{__name__}:{function}", {"who": "ada"}, None)
    run = SocketMessages(concurrent=False).end(f"{__name__}:{function}", state, p.Closed(code))
    return run.run() if isinstance(run, Plain) else run


left_with: list[object] = []


def left(code: int, who: str) -> str:
    left_with.append((code, who))
    return "for nobody"


def left_without_a_code(who: str) -> None:
    left_with.append(who)


def fails_at_the_end(code: int, who: str) -> None:
    raise HTTPError(403, "not you")


def closed(answer: Any) -> tuple[int, str]:
    assert isinstance(answer, Attempted)
    assert answer.kind == f.CLOSE
    code, reason = CLOSE_PAYLOAD(answer.payload)
    return code, reason


@pytest.mark.parametrize(
    ("function", "said", "content_type", "body"),
    [
        ("back", "hola", "text/", b"hola"),
        ("back", b"\x00\xff", "application/octet-stream", b"\x00\xff"),
        ("bid", '{"amount": 7}', "application/json", b"7"),
        ("pieces", b"\x01\x02", "application/json", b"[1,2]"),
    ],
)
def test_what_it_returns_is_a_response(function: str, said: str | bytes, content_type: str, body: bytes) -> None:
    status, headers, given = msgspec.msgpack.decode(called(function, said))
    fields = dict(zip(headers[::2], headers[1::2], strict=True))
    assert status == 200
    assert str(fields["content-type"]).startswith(content_type)
    assert (given.encode() if isinstance(given, str) else given) == body


def test_nothing_is_204() -> None:
    assert msgspec.msgpack.decode(called("text", "nothing"))[0] == 204


def test_a_wait_parks() -> None:
    assert isinstance(called("text", "wait"), Parked)


def test_it_closes() -> None:
    assert closed(called("text", "close")) == (4001, "bye")
    assert closed(called("text", "refuse")) == (1008, "not you")


@pytest.mark.parametrize(
    ("function", "said"), [("text", b"\xff"), ("bid", "{"), ("bid", '{"amount": "x"}'), ("bid", b"\xff")]
)
def test_a_message_that_does_not_fit_closes_it_with_1007(function: str, said: str | bytes) -> None:
    code, reason = closed(called(function, said))
    assert code == 1007
    assert 0 < len(reason.encode()) <= 123


def test_a_fault_is_logged_with_its_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    answer = called("text", "fail")
    assert (answer.kind, msgspec.msgpack.decode(answer.payload)) == (f.ERROR, ["application", ""])
    assert "ValueError: in the middle" in capfd.readouterr().err
    assert called("gone", "hola").kind == f.ERROR
    assert "no function" in capfd.readouterr().err


def test_the_function_takes_the_message_and_the_state() -> None:
    def nested(message: str) -> None: ...

    for function, state in (
        (takes_nothing, {}),
        (of_a_channel, {}),
        (nested, {}),
        (lambda message: message, {}),
        (text, {"other": 1}),
    ):
        with pytest.raises(SignatureError):
            channel("room").socket(function, **state)


def test_a_function_of_any_arguments_gets_message_and_state() -> None:
    assert json.loads(msgspec.msgpack.decode(called("wrapped", "hola", {"n": [1]}))[2]) == ["hola", {"n": [1]}]
    with pytest.raises(SignatureError, match="its parameter message gets what the client says"):
        channel("room").socket(of_a_channel)


def test_it_is_only_returned() -> None:
    wait = channel("room").socket(back, more="x")
    with pytest.raises(WaitError, match=r"no \.then"):
        wait.then(back)
    with pytest.raises(WaitError, match="returned, not awaited"):
        wait.__await__().send(None)


@pytest.mark.parametrize(
    ("code", "reason"), [(999, ""), (1005, ""), (1006, ""), (1015, ""), (5000, ""), (1000, "x" * 124)]
)
def test_a_code_or_a_reason_that_cannot_be_sent_is_refused(code: int, reason: str) -> None:
    with pytest.raises(ValueError, match="closed"):
        Close(code, reason)


def test_a_plain_handler_has_no_socket() -> None:
    def room(socket: WebSocket) -> None: ...

    with pytest.raises(SignatureError, match="on_message"):
        App().websocket("/")(room)


def test_its_route_says_that_it_takes_websockets() -> None:
    app = App()

    @app.websocket("/rooms/{room}")
    def room(room: str) -> Any:
        return channel(room).socket(back)

    [route] = app._routes
    told = route.ready()
    assert (told.kind, told.websocket, told.methods) == ("sync", True, ["GET"])


def test_the_end_is_a_call_with_the_code_and_the_state() -> None:
    wait = channel("room").socket(hears, on_close=left, who="ada")
    assert wait._wait == p.Socket("room", p.SocketOptions(None, p.OnClose(f"{__name__}:left", "sync")))
    left_with.clear()
    answers = [ended("left", 1006), ended("left_without_a_code", 1000)]
    assert left_with == [(1006, "ada"), "ada"]
    assert answers == [called("back_nothing", "")] * 2


def hears(message: str, who: str) -> None: ...


def test_a_fault_at_the_end_is_an_error_whatever_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("fails_at_the_end", 1000).kind == f.ERROR
    assert "fails_at_the_end, called for the end of a WebSocket: " in "".join(capsys.readouterr())


def waits_at_the_end(code: int, who: str) -> Any:
    return after(1, "for nobody") if code == 1000 else after(1).then(takes_nothing)


def test_a_wait_at_the_end_has_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(ended("waits_at_the_end", 1001), Parked)
    assert ended("waits_at_the_end", 1000).kind == f.ERROR
    assert "returned a wait for nobody" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("subprotocols", "reason"),
    [
        ("chat", r"\['chat'\] instead of 'chat'"),
        (["chat"] * 17, "at most 16"),
        (["a b"], "'a b' is not the name"),
        ([""], "'' is not the name"),
        (["\u00e9"], "is not the name"),
        (["a" * 201], "is not the name"),
        ([b"chat"], "b'chat' is not the name"),
    ],
)
def test_sub_protocols_that_no_client_can_offer_are_refused(subprotocols: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        channel("room").socket(back, subprotocols=subprotocols)


@pytest.mark.parametrize(
    ("on_close", "reason"),
    [
        (takes_nothing, "takes no who"),
        (lambda code, who: None, "define it at the top level of a module"),
        ("left", "takes a function"),
    ],
)
def test_a_function_for_the_end_that_cannot_be_called_is_refused(on_close: Any, reason: str) -> None:
    with pytest.raises(SignatureError, match=reason):
        channel("room").socket(hears, on_close=on_close, who="ada")
