"""WebSockets that no code holds: plain functions leave them to the core, with or without an event loop."""

import os
import time

import msgspec
from gates import hold

from parkade import App, Close, HTTPError, Request, Status, Wait, after, channel

app = App(concurrent="CONCURRENT" in os.environ)


class Bid(msgspec.Struct):
    amount: int


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.websocket("/rooms/{room}")
def room(room: str) -> Wait:
    return channel(room).socket(on_message=said, room=room)


def said(message: str, room: str) -> None:
    channel(room).publish(message)


@app.websocket("/echo")
def echo() -> Wait:
    return channel("echo").socket(back)


def back(message: str | bytes) -> str | bytes:
    return message


@app.websocket("/agreed")
def agreed() -> Wait:
    return channel("agreed").socket(back, subprotocols=["chat.v2", "chat"])


@app.websocket("/length")
def lengths() -> Wait:
    return channel("length").socket(length)


def length(message: str | bytes) -> str:
    return str(len(message))


@app.websocket("/bids")
def bids() -> Wait:
    return channel("bids").socket(bid)


def bid(message: Bid) -> dict[str, int]:
    return {"doubled": message.amount * 2}


@app.websocket("/does")
def does(request: Request) -> Wait:
    return channel("does").socket(do)


def do(message: str, request: Request) -> object:
    what, _, more = message.partition(" ")
    match what:
        case "close":
            return Close(int(more), "because")
        case "fail":
            raise ValueError("in the middle")
        case "refuse":
            raise HTTPError(403, "not you")
        case "sleep":
            time.sleep(float(more))
            return "slept"
        case "exit":
            os._exit(1)
        case "wait":
            return after(0.01, "waited")
        case "call":
            return after(0.01).then(later, more=more)
        case "stream":
            return channel("does").stream()
        case "status":
            return Status(202)
        case "path":
            return request.path
        case _:
            return None


def later(more: str) -> str:
    return f"later {more}"


@app.websocket("/gate/{name}")
def gate(name: str) -> Wait:
    return channel("gate").socket(passes, name=name)


def passes(message: str, name: str) -> str:
    print(f"holds at {name}", flush=True)
    hold(name)
    return f"passed {message}"


@app.websocket("/denied")
def denied() -> object:
    raise HTTPError(403, "not here")


@app.get("/wrong")
def wrong() -> Wait:
    return channel("wrong").socket(back)
