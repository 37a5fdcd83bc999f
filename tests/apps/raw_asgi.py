"""An ASGI application without a framework: what the specification allows, and what it forbids."""

import asyncio
import contextvars
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from gates import hold_async

from parkade import after, channel

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TEXT = [(b"content-type", b"text/plain")]

named: contextvars.ContextVar[str] = contextvars.ContextVar("named", default="nobody")


def say(text: str) -> None:
    print(text, flush=True)


async def start(send: Send, status: int = 200, fields: list[tuple[bytes, bytes]] = TEXT) -> None:
    await send({"type": "http.response.start", "status": status, "headers": fields})


async def piece(send: Send, body: bytes, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def answer(send: Send, body: bytes, status: int = 200, fields: list[tuple[bytes, bytes]] = TEXT) -> None:
    await start(send, status, fields)
    await piece(send, body, more=False)


async def body_of(receive: Receive) -> bytes:
    pieces = []
    while True:
        message = await receive()
        assert message["type"] == "http.request"
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


def told(value: object) -> object:
    return value.decode("latin-1") if isinstance(value, bytes) else repr(value)


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """As LIFESPAN says."""
    how = os.environ.get("LIFESPAN", "complete")
    if how == "unknown":
        raise ValueError("only HTTP")
    assert (await receive())["type"] == "lifespan.startup"
    if how == "failed":
        await send({"type": "lifespan.startup.failed", "message": "there is no database"})
        return
    if how == "failed and raises":
        await send({"type": "lifespan.startup.failed", "message": "there is no database"})
        raise ValueError("there is no database")
    if how == "raises":
        raise ValueError("in the middle of the start")
    if how == "returns":
        return
    scope["state"]["shared"] = ["from the start"]
    scope["state"]["count"] = 0
    await send({"type": "lifespan.startup.complete"})
    if how == "dies":
        await hold_async("dies")
        raise ValueError("in the middle of the day")
    assert (await receive())["type"] == "lifespan.shutdown"
    if how == "stop fails":
        await send({"type": "lifespan.shutdown.failed", "message": "something is left"})
        return
    if how == "stop raises":
        raise ValueError("in the middle of the stop")
    say("the lifespan ends")
    await send({"type": "lifespan.shutdown.complete"})


async def until_left(scope: Scope, receive: Receive, send: Send, path: str) -> None:
    """What happens after the client has left, at each stage."""
    say(f"{path} begins")
    await body_of(receive)
    if path == "/left/streaming":
        await start(send)
        await piece(send, b"one ")
    elif path == "/left/full":
        await start(send)
        try:
            while True:
                await piece(send, b"x" * 65_536)
        except OSError:
            say("send says that the client has left")
        assert (await receive())["type"] == "http.disconnect"
        return
    if path == "/left/computing":
        try:
            await hold_async(scope["query_string"].decode())
        except asyncio.CancelledError:
            say(f"{path} was cancelled")
            raise
        say("computed for nobody")
    else:
        assert (await receive())["type"] == "http.disconnect"
        say("receive says that the client has left")
    assert (await receive())["type"] == "http.disconnect"
    try:
        await answer(send, b"late") if path != "/left/streaming" else await piece(send, b"late")
    except OSError as error:
        say(f"send raises {type(error).__mro__[1].__name__}")
        raise


async def cancelled(scope: Scope, receive: Receive, send: Send) -> None:
    scope["parkade.on_disconnect"]("cancel")
    say("cancellable begins")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        say("the application was cancelled")
        raise


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    path = scope["path"].removeprefix(scope["root_path"])
    match path.split("/")[1:]:
        case ["hola", name]:
            await answer(send, f"Hola {name}".encode())
        case ["scope"]:
            fields = [[told(name), told(value)] for name, value in scope["headers"]]
            keys = {key: told(value) for key, value in scope.items() if key not in ("headers", "state")}
            keys["state"] = sorted(scope["state"])
            await answer(send, json.dumps({"headers": fields, **keys}).encode())
        case ["state"]:
            scope["state"]["count"] += 1
            scope["state"]["shared"].append("by a request")
            await answer(send, json.dumps(scope["state"]).encode())
        case ["count"]:
            count, more = 0, True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                count, more = count + len(message["body"]), message["more_body"]
            await answer(send, str(count).encode())
        case ["echo"]:
            await answer(send, await body_of(receive))
        case ["unread"]:
            await answer(send, b"unread")
            say(f"after the response: {(await receive())['type']}")
        case ["pieces"]:
            await start(send)
            for text in (b"one ", b"", b"two"):
                await piece(send, text)
            await piece(send, b"", more=False)
        case ["held", gate]:
            if scope["query_string"] == b"after-a-wait":
                await after(0.05)
            await start(send)
            await piece(send, b"one ")
            await hold_async(gate)
            await piece(send, b"two", more=False)
        case ["hold", gate]:
            say(f"holds at {gate}")
            await hold_async(gate)
            await answer(send, b"opened")
        case ["stream-until-shutdown"]:
            await start(send)
            await piece(send, b"begun ")
            await scope["parkade.shutdown"]
            await piece(send, b"and ended", more=False)
        case ["nothing"]:
            await answer(send, b"", 204, [])
        case ["nothing-with-body"]:
            await answer(send, b"a body that is not allowed", 204, [])
        case ["unchanged"]:
            await answer(send, b"", 304, [(b"etag", b'"1"')])
        case ["empty"]:
            await start(send)
            await send({"type": "http.response.body"})
        case ["bare"]:
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": bytearray(b"bare")})
        case ["fields"]:
            await answer(send, b"fields", 201, [*TEXT, (b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2")])
        case ["named"]:
            await answer(send, b"", 200, [(b"x-name", "J\xfcrgen".encode("latin-1"))])
        case ["sent-file"]:
            await start(send, 201)
            await send({"type": "http.response.pathsend", "path": scope["query_string"].decode()})
        case ["sent-file", length]:
            await start(send, 200, [(b"content-length", length.encode())])
            await send({"type": "http.response.pathsend", "path": scope["query_string"].decode()})
        case ["sent-once"]:
            path = scope["query_string"].decode()
            await start(send, 200, [(b"content-length", str(os.path.getsize(path)).encode())])
            await send({"type": "http.response.pathsend", "path": path})
            os.unlink(path)
        case ["long"]:
            await answer(send, b"x" * 3_000_000)
        case ["length", length, count]:
            await answer(send, b"x" * int(count), 200, [(b"content-length", length.encode())])
        case ["streamed-length", length, count]:
            await start(send, 200, [(b"content-length", length.encode())])
            await piece(send, b"x" * int(count))
            await piece(send, b"", more=False)
        case ["down", count]:
            await start(send, 200, [(b"content-length", str(int(count) * 65_536).encode())])
            for _ in range(int(count)):
                await piece(send, b"x" * 65_536)
            await piece(send, b"", more=False)
        case ["back"]:
            await start(send)
            more = True
            while more:
                message = await receive()
                more = message["more_body"]
                await piece(send, message["body"], more)
        case ["trailers", *names]:
            await send({"type": "http.response.start", "status": 200, "headers": TEXT, "trailers": True})
            await piece(send, b"" if scope["query_string"] == b"empty" else b"body", more=False)
            fields = [(name.encode(), b"said") for name in names]
            for field in fields:
                await send({"type": "http.response.trailers", "headers": [field], "more_trailers": field != fields[-1]})
        case ["hints"]:
            for link in (b"</a.css>; rel=preload; as=style", b"</b.js>; rel=preload; as=script"):
                await send({"type": "http.response.early_hint", "links": [link]})
            if gate := scope["query_string"].decode():
                await hold_async(gate)
            await answer(send, b"hinted")
        case ["many-hints", count]:
            for _ in range(int(count)):
                await send({"type": "http.response.early_hint", "links": [b"x" * 16_000]})
            gate = scope["query_string"].decode()
            print("all hints are sent:", gate, file=sys.stderr)
            await hold_async(gate)
            await answer(send, b"hinted")
        case ["impossible-hint"]:
            await send({"type": "http.response.early_hint", "links": [b"</a.css>\r\nx-more: 1"]})
            await answer(send, b"hinted")
        case ["late-hint"]:
            await start(send)
            await send({"type": "http.response.early_hint", "links": [b"</a.css>"]})
        case ["unannounced-trailers"]:
            await start(send)
            await piece(send, b"body")
            await send({"type": "http.response.trailers", "headers": []})
        case ["missing-trailers"]:
            await send({"type": "http.response.start", "status": 200, "headers": TEXT, "trailers": True})
            await piece(send, b"body", more=False)
        case ["sent-but-not-ended"]:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
            await piece(send, b"body")
            while (await receive())["type"] != "http.disconnect":
                pass
        case ["endless"]:
            await start(send)
            with suppress(OSError):
                while True:
                    await piece(send, b"x" * 65_536)
            say("the endless response ends")
        case ["left", _]:
            await until_left(scope, receive, send, path)
        case ["cancellable"]:
            await cancelled(scope, receive, send)
        case ["deadline"]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                say("the deadline has passed")
                raise
        case ["after-response", gate]:
            await answer(send, b"sent")
            await hold_async(gate)
            say("the work after the response is done")
        case ["raises-after-response"]:
            await answer(send, b"sent")
            raise ValueError("after the response")
        case ["context", name]:
            before = named.get()
            named.set(name)
            await asyncio.sleep(0)
            await answer(send, f"{before} {named.get()}".encode())
        case ["thread"]:
            name = await asyncio.to_thread(lambda: threading.current_thread().name)
            await answer(send, name.encode())
        case ["wait"]:
            await after(0.01)
            await answer(send, b"waited")
        case ["wait", "long"]:
            try:
                await channel("never").next()
            except asyncio.CancelledError:
                say("the wait was cancelled")
                raise
        case ["two-tasks"]:
            await start(send)
            await asyncio.gather(*(piece(send, b"x" * 300_000) for _ in range(3)))
            await piece(send, b"", more=False)
        case ["raises"]:
            raise ValueError("at once")
        case ["raises", "started"]:
            await start(send)
            raise ValueError("after the start")
        case ["broken"]:
            await start(send)
            await piece(send, b"one")
            raise ValueError("in the middle")
        case ["exits"]:
            raise SystemExit("of a request")
        case ["silent"]:
            return
        case ["unfinished"]:
            await start(send)
        case ["unended"]:
            await start(send)
            await piece(send, b"one")
        case ["twice"]:
            await start(send)
            await start(send)
        case ["unstarted"]:
            await piece(send, b"a body")
        case ["too-much"]:
            await answer(send, b"sent")
            await piece(send, b"more")
        case ["text"]:
            await start(send)
            await send({"type": "http.response.body", "body": "text"})
        case ["status", status]:
            await answer(send, b"", int(status) if status.isdecimal() else status)  # type: ignore[arg-type]
        case ["text-field"]:
            await answer(send, b"", 200, [("x-a", "b")])  # type: ignore[list-item]
        case ["strange"]:
            await send({"type": "websocket.accept"})
        case ["line-end"]:
            await answer(send, b"", 200, [(b"x-a", b"b\r\nx-c: d")])
        case _:
            await answer(send, b"there is no such path", 404)
