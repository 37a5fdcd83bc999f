"""Channels: named streams of messages, to publish on and to wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, overload

import msgspec

from .._limits import MESSAGE_MAX, NAME_MAX, SUBPROTOCOL_MAX, SUBPROTOCOLS_MAX
from .._link import port
from .._mappings import HTTP_TOKEN
from .._wire import payloads as p
from ..errors import InvalidChannel
from .functions import describe
from .message import History, Message, encode_other
from .said import check_hears
from .wait import Wait, check_seconds

T = TypeVar("T")

BEGINNING: Final = "beginning"
"""As `since`: everything that the channel holds, for a client without a cursor of its own. That is no gap."""


def channel(name: str) -> Channel:
    """The channel of that name: 1 to 200 bytes of UTF-8 without control characters.

    ```python
    @app.get("/auction/{lot}/next")
    def next_bid(lot: str) -> Wait:
        return channel(f"auction/{lot}").next(timeout=30)
    ```

    Raises `InvalidChannel` for any other name.
    """
    return Channel(checked_channel(name))


def checked_channel(name: str) -> str:
    """Raises `InvalidChannel` for a name that no channel can have."""
    if (reason := p.fault_of_channel(name)) is not None:
        raise InvalidChannel(reason)
    return name


class Channel:
    """A named stream of messages that requests wait for. Make it with `channel(name)`."""

    __slots__ = ("name",)

    name: str
    """As it was given to `channel`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"channel({self.name!r})"

    @overload
    def next(self, timeout: float | None = None, since: str | None = None) -> Wait[Message | None]: ...
    @overload
    def next(self, timeout: float | None = None, since: str | None = None, *, type: type[T]) -> Wait[T | None]: ...
    def next(self, timeout: float | None = None, since: str | None = None, *, type: Any = None) -> Wait[Any]:
        """Waits for the next message, or for `timeout` seconds.

        ```python
        @app.get("/news")
        async def news(request: Request) -> list[str]:
            first = await channel("news").next(timeout=30, since=request.cursor)
            second = await channel("news").next(timeout=5, since=first.cursor) if first else None
            return [message.text for message in (first, second) if message]
        ```

        `since` is a cursor: the wait ends with the first message after it, at once if there is one. With `BEGINNING` it
        is the oldest message that is held.

        Returned, the message is the answer and its cursor the ETag; the answer is 204 when the time is up. Without
        `since`, and with `BEGINNING`, the client's own cursor counts (`request.cursor`). With `.then` and awaited, it
        gives a `Message`, or None when the time is up; without `since` the wait begins now. With a `type`, awaiting
        gives the message's content as that type, as `Message.json` does; after `.then` the function's annotation says
        what it gets.

        Give the `timeout` here rather than with `asyncio.timeout`: then the core does all of the waiting, which saves
        two messages on the link.
        """
        convert = None if type is None else partial(_as, type)
        options = p.NextOptions(None if timeout is None else check_seconds(timeout), since)
        return Wait(p.Next(self.name, options), convert=convert)

    def stream(self, since: str | None = None) -> Wait[NoReturn]:
        """Every message from now on, as server-sent events, until the client leaves. Only to be returned.

        With `since=BEGINNING`, everything that is held comes first. A client that comes back sends its own cursor, and
        gets what it has missed. Any other `since` overrides that cursor.

        ```python
        @app.get("/auction/{lot}/bids")
        def bids(lot: str) -> Wait:
            return channel(f"auction/{lot}").stream()
        ```
        """
        return Wait(p.Stream(self.name, p.StreamOptions(since)))

    def socket(
        self,
        on_message: Callable[..., object],
        *,
        on_close: Callable[..., object] | None = None,
        since: str | None = None,
        subprotocols: Sequence[str] = (),
        **state: Any,
    ) -> Wait[NoReturn]:
        """A WebSocket without a coroutine: the server holds it, and sends it every message of the channel. Only to be
        returned, for a request that asks for a WebSocket (`@app.websocket`).

        ```python
        @app.websocket("/rooms/{room}")
        def room(room: str) -> Wait:
            return channel(f"rooms/{room}").socket(on_message=said, room=room)

        def said(message: str, room: str) -> None:
            channel(f"rooms/{room}").publish(message)
        ```

        Any worker calls `on_message` for each message of the client, one after the other. It is defined at the top of a
        module, as a function after `.then`, and `state` is passed by name. Its first parameter gets the message: as it
        is (str for text, bytes for binary), or, with another annotation, its JSON as that type; a message that is not
        of the type closes the WebSocket with 1007.

        What it returns goes to this client alone: str is text, bytes are binary, everything else is JSON, as text. None
        sends nothing, and `Close` closes the WebSocket. It may return a wait whose outcome is one message, for
        instance a query. An `HTTPError` below 500 closes the WebSocket with 1008, every other exception with 1011.

        `on_close` is a function of the same kind, called once when the WebSocket is over, however it ended: when no
        `on_message` of this client runs any more. Its first parameter gets the code (1006 if the connection was lost),
        and `state` is passed as to `on_message`. Nothing is done with what it returns.

        `since` is a cursor: messages after it come first. Of the `subprotocols`, the first that the client offers is
        agreed; without one of them, the WebSocket has none. Raises `SignatureError` as `.then`, `ValueError` for more
        than 16 sub-protocols or one that is not a name of 1 to 200 bytes.
        """
        agreed = _checked_subprotocols(subprotocols)
        function = describe(on_message, frozenset(state), hears=True)
        check_hears(function)
        called = None
        if on_close is not None:
            closing = describe(on_close, frozenset(state), hears=True)
            called = p.OnClose(closing.name, closing.kind)
            function = replace(function, request=function.request or closing.request)
        return Wait(p.Socket(self.name, p.SocketOptions(since, called, agreed)), None, function, state)

    def history(self, count: int | None = None) -> Wait[History]:
        """What the channel holds, at once: at most `count` messages, the newest.

        ```python
        @app.get("/rooms/{room}")
        def room(room: str) -> Wait:
            return channel(f"rooms/{room}").history(count=50)
        ```

        Returned, the answer is JSON: `{"cursor": …, "messages": [{"cursor": …, "event": …, "data": …}, …]}`, where
        `data` is what was published (text unless it is JSON), and `event` is there if the message has one. With `.then`
        and awaited, it gives a `History`. A stream or a wait since its cursor misses nothing.

        All together it is at most 768 KiB; the oldest are left out. Raises `ValueError` for a negative count.
        """
        if count is not None and count < 0:
            raise ValueError(f"count is the number of messages, 0 or more, not {count}")
        return Wait(p.History(self.name, p.HistoryOptions(count)))

    def publish(self, value: object, content_type: str | None = None, *, event: str | None = None) -> Wait[str]:
        """Publishes a message to every waiting client. It is published before any response that is returned after it.

        ```python
        @app.post("/auction/{lot}")
        def bid(lot: str, amount: int) -> Status:
            channel(f"auction/{lot}").publish({"amount": amount})
            return Status(202)
        ```

        str is sent as text/plain, bytes as application/octet-stream, all else as JSON; `content_type` replaces that.
        `event` is the kind of the message, 1 to 200 bytes without control characters: clients of a stream listen for it
        (`source.addEventListener("typing", …)`), others see it as `Message.event`, or as the header `Parkade-Event`.

        The result need not be awaited. Awaited, with `.then`, or returned, it gives the cursor of the message, for the
        request or job that published it.

        Raises `TypeError` for a value that is not JSON-able, `ValueError` over 524,288 bytes or for a name of an event
        that cannot be sent (`gap` is the server's own), `WaitError` where there is no core.
        """
        content_type, body = encode_message(value, content_type, event)
        published = Wait[str](p.UntilPublished(port.port().publish(self.name, content_type, body, event)))
        published._used = True  # nobody has to wait for it
        return published


def _checked_subprotocols(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"subprotocols is a list of names: [{names!r}] instead of {names!r}")
    if len(names) > SUBPROTOCOLS_MAX:
        raise ValueError(f"a WebSocket has at most {SUBPROTOCOLS_MAX} subprotocols to choose from, not {len(names)}")
    for name in names:
        if not isinstance(name, str) or not HTTP_TOKEN.fullmatch(name) or len(name) > SUBPROTOCOL_MAX:
            raise ValueError(f"{name!r} is not the name of a sub-protocol: letters, digits and !#$%&'*+.^_`|~-")
    return tuple(names)


def encode_message(value: object, content_type: str | None, event: str | None) -> tuple[str, bytes]:
    """The content type and the body of a message. Raises `TypeError` and `ValueError` for one that cannot be sent."""
    body, usual = encode_value(value)
    if len(body) > MESSAGE_MAX:
        raise ValueError(f"a message has at most {MESSAGE_MAX} bytes, not {len(body)}")
    content_type = content_type or usual
    if len(content_type.encode()) > NAME_MAX:
        raise ValueError(f"a content type has at most {NAME_MAX} bytes")
    if event is not None and (reason := p.fault_of_event(event)) is not None:
        raise ValueError(reason)
    return content_type, body


def _as(type: type[T], message: Message | None) -> T | None:
    return None if message is None else message.json(type)


_json = msgspec.json.Encoder(enc_hook=encode_other).encode


def encode_value(value: object) -> tuple[bytes, str]:
    """The bytes and the content type of what is published or sent. Raises `TypeError` for what is not JSON-able."""
    match value:
        case str():
            return value.encode(), "text/plain; charset=utf-8"
        case bytes() | bytearray() | memoryview():
            return bytes(value), "application/octet-stream"
        case Message():
            return value.body, value.content_type
        case _:
            return _json(value), "application/json"
