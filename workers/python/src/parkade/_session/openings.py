"""The short way for the frames that open a stream: nine in ten of those that a worker reads."""

from __future__ import annotations

from .._limits import BRANCH_FIRST, FRAME_MAX
from .._wire import frames as f
from .._wire.codec import FROM_CORE
from .events import Event, Given, Opened
from .streams import HELD, Stream

# Used for every request and every job: names in this module spare attribute lookups.
_HEADER_SIZE = f.HEADER_SIZE
_BRANCH_FIRST = BRANCH_FIRST
_PLAIN_REQUEST = f.PLAIN_REQUEST
_PLAIN_RUN = f.PLAIN_RUN
_unpack_plain = f.unpack_plain
_decode_request = FROM_CORE[f.REQUEST].decode
_decode_run = FROM_CORE[f.RUN].decode


def plain_openings(data: bytes, streams: dict[int, Stream], highest: int, events: list[Event]) -> tuple[bytes, int]:
    """Takes the complete requests and runs at the beginning of `data`, and opens their streams. `highest` is the
    number of the newest stream. Returns the rest of the data, and that number.

    This loop handles only valid frames. Anything else is left unread for the session's rules, so that each rule is in
    one place. A frame costs 1.0 µs here and 1.35 µs there, half of it for decoding (CPython 3.11).
    """
    add = events.append
    position, size = 0, len(data)
    if size > FRAME_MAX:
        return data, highest
    try:
        while size - position >= _HEADER_SIZE:
            length, kind, stream = _unpack_plain(data, position)
            end = position + _HEADER_SIZE + length
            if end > size or not highest < stream < _BRANCH_FIRST:
                break
            if kind == _PLAIN_REQUEST:
                add(Opened(stream, _decode_request(data[position + _HEADER_SIZE : end])))
            elif kind == _PLAIN_RUN:
                add(Given(stream, _decode_run(data[position + _HEADER_SIZE : end])))
            else:
                break
            streams[stream] = HELD
            highest = stream
            position = end
    except ValueError:  # invalid: the slow path says why
        pass
    return data[position:] if position else data, highest
