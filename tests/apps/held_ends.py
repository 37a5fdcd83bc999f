"""WebSockets that no code holds, whose ends are calls: each is a line of the log."""

import os
import time
from typing import Any

from gates import hold

from parkade import App, Close, HTTPError, Request, Wait, after, channel

app = App(concurrent="CONCURRENT" in os.environ)


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.websocket("/rooms/{room}/{who}")
def enter(room: str, who: str) -> Wait:
    return channel(room).socket(on_message=said, on_close=left, room=room, who=who)


def said(message: str, room: str, who: str) -> Any:
    what, _, more = message.partition(" ")
    match what:
        case "close":
            return Close(int(more), "because")
        case "fail":
            raise ValueError("in the middle")
        case "sleep":
            print(f"sleeps for {who}", flush=True)
            time.sleep(float(more))
            print(f"slept for {who}", flush=True)
        case "exit":
            os._exit(1)
        case _:
            channel(room).publish(f"{who}: {message}")
    return None


def left(code: int, room: str, who: str) -> str:
    print(f"left: {who} {code}", flush=True)
    channel(room).publish(f"{who} has left")
    return "nobody gets this"


@app.websocket("/gates/{gate}/{who}")
def at_gate(gate: str, who: str) -> Wait:
    return channel("gates").socket(back, on_close=held_up, gate=gate, who=who)


def back(message: str, gate: str, who: str) -> str:
    return message


def held_up(code: int, gate: str, who: str) -> None:
    print(f"holds at {gate} for {who}", flush=True)
    hold(gate)
    print(f"left: {who} {code}", flush=True)


@app.websocket("/refused/{how}")
def refused(how: str) -> object:
    match how:
        case "error":
            raise HTTPError(403, "not here")
        case "channel":
            return channel("\n" * 10)
        case _:
            return "no"


@app.websocket("/ways/{way}")
def ways(way: str) -> Wait:
    return channel("ways").socket(echo, on_close=goes, way=way)


def echo(message: str, way: str) -> str:
    return message


def goes(code: int, request: Request, way: str) -> Any:
    print(f"left: {way} {code} {request.path}", flush=True)
    match way:
        case "fails":
            raise ValueError("at the end")
        case "waits":
            return after(0.01).then(waited, way=way)
        case "answers":
            return after(0.01, "to nobody")
        case "closes":
            return Close(4000)
        case _:
            return None


def waited(way: str) -> None:
    print(f"waited: {way}", flush=True)


if "CONCURRENT" in os.environ:

    @app.websocket("/coroutines/{who}")
    def coroutines(who: str) -> Wait:
        return channel("coroutines").socket(listens, on_close=ends, who=who)

    async def listens(message: str, who: str) -> str:
        try:
            await after(30)
        finally:
            print(f"stopped: {who}", flush=True)
        return message

    async def ends(code: int, who: str) -> None:
        await after(0.01)
        print(f"left: {who} {code}", flush=True)
