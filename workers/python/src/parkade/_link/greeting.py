"""The beginning of a link, until the application is loaded: HELLO, and the frames before READY."""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any

from .._session.events import Draining, Ended, Greeted, Pinged, Reply
from .._session.session import Session
from .link import Link


class Stopped(Exception):
    """The link ended, or should end, before the worker was ready. The text says why; empty if that is no fault."""


def greet(link: Link, session: Session) -> Mapping[str, Any]:
    """Exchanges HELLO; returns the core's information (`core`, `target`, perhaps `dev`). Raises `Stopped`."""
    while True:
        info = _receive(link, session)
        if info is not None:
            return info


def still_wanted(link: Link, session: Session) -> None:
    """Reads what arrived while the application was loading. Raises `Stopped` if the core no longer needs the worker."""
    poll = select.poll()
    poll.register(link.reader, select.POLLIN)
    while poll.poll(0):
        _receive(link, session)


def _receive(link: Link, session: Session) -> Mapping[str, Any] | None:
    data = link.receive()
    if not data:
        raise Stopped("")
    info = None
    for event in session.receive(data):
        match event:
            case Reply(data=reply):
                link.send(reply)
            case Greeted(info=told):
                info = told
            case Pinged(token=token):
                link.send(session.pong(token))
            case Draining():
                link.send(session.goodbye("stopping", ""))
                raise Stopped("")
            case Ended(code="stopping"):
                raise Stopped("")
            case Ended(code=code, text=text):
                raise Stopped(f"{code}: {text}")
            case _:
                pass
    return info
