"""A client of server-sent events, following the HTML standard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .client import Address, Answer, Client


@dataclass(frozen=True)
class Event:
    """One event. Missing parts are None; `data` of several lines is joined by line feeds."""

    id: str | None = None
    event: str | None = None
    data: str | None = None
    retry: int | None = None
    comments: tuple[str, ...] = ()


class Events:
    """A stream that has been opened. Events without data, such as the first one, are returned, too."""

    def __init__(self, address: Address, target: str, *fields: str) -> None:
        self.client = Client(address)
        self.client.ask("GET", target, "Accept: text/event-stream", *fields)
        self.head: Answer = self.client.opening()
        assert self.head.status == 200, f"{self.head} {self.client.rest() if self.head.status >= 400 else b''!r}"
        assert self.head["content-type"].partition(";")[0] == "text/event-stream"
        self._events = parse(self.client.pieces(self.head))

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes."""
        self.client.close()

    def next(self) -> Event:
        """The next event."""
        return next(self._events)

    def data(self, count: int) -> list[str]:
        """The data of the next messages, this many; events with a name, such as `gap`, are not messages."""
        found: list[str] = []
        while len(found) < count:
            event = self.next()
            if event.data is not None and event.event is None:
                found.append(event.data)
        return found

    def take(self, count: int) -> list[Event]:
        """The next events that have data, this many, with a name or without."""
        found: list[Event] = []
        while len(found) < count:
            event = self.next()
            if event.data is not None:
                found.append(event)
        return found

    def rest(self) -> list[Event]:
        """All events until the stream ends properly."""
        return list(self._events)


def parse(pieces: Iterator[bytes]) -> Iterator[Event]:
    """Parses events from the pieces of a body, split anywhere."""
    text = b""
    for piece in pieces:
        text += piece
        while b"\n\n" in text:
            block, _, text = text.partition(b"\n\n")
            yield _event(block.decode())
    assert not text.strip(), f"the stream ended inside an event: {text!r}"


def _event(block: str) -> Event:
    told: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        told.setdefault(name, []).append(value.removeprefix(" "))
    return Event(
        id=told["id"][-1] if "id" in told else None,
        event=told["event"][-1] if "event" in told else None,
        data="\n".join(told["data"]) if "data" in told else None,
        retry=int(told["retry"][-1]) if "retry" in told else None,
        comments=tuple(told.get("", ())),
    )
