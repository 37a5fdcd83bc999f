"""The pipe from the core while large frames arrive, for a worker with an event loop."""

from __future__ import annotations

import os

from .._limits import RECEIVE_SIZE, WINDOW
from .._session.events import Event
from .._session.session import Session


def read_on(descriptor: int, session: Session) -> list[Event]:
    """The events in the large frames that are in the pipe, after what the loop has read.

    A loop reads into a buffer of its own, which cuts frames anywhere: their payloads are copied from it, and joined.
    Here each payload is read by itself. Others have their turn after a window.
    """
    events: list[Event] = []
    left = WINDOW
    while left > 0 and (wanted := session.decoder.wanted):
        try:
            data = os.read(descriptor, min(wanted, RECEIVE_SIZE))
        except BlockingIOError:
            break
        if not data:  # the core has gone, which the loop finds out, too
            break
        left -= len(data)
        events += session.receive(data)
    return events
