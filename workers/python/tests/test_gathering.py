"""Frames in parts: they arrive whole and in order, and large payloads are not copied."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from parkade._link import gathering
from parkade._link.gathering import IOV_MAX, PART_SIZE_MIN, gathered, rest_of
from parkade._link.outlet import Outlet
from parkade._wire.frames import Parts

PIECE = bytes(range(256)) * 256


class Owner:
    """Hears nothing."""

    def pipe_is_full(self) -> None: ...

    def pipe_is_empty(self) -> None: ...

    def pipe_is_lost(self) -> None: ...


@pytest.mark.parametrize("sent", range(8))
def test_the_rest_begins_where_the_last_write_ended(sent: int) -> None:
    assert b"".join(rest_of([b"ab", b"", memoryview(b"cde"), b"fg"], sent)) == b"abcdefg"[sent:]


def test_large_parts_stay_where_they_are_and_small_ones_are_joined() -> None:
    large: Parts = [b"header", PIECE, b"header", memoryview(PIECE)]
    assert all(one is other for one, other in zip(gathered(large), large, strict=True))
    assert gathered([b"a", b"b", b"c" * PART_SIZE_MIN]) == [b"ab" + b"c" * PART_SIZE_MIN]


def test_a_pipe_gets_frames_in_order_however_much_it_takes_at_a_time() -> None:
    theirs, ours = os.pipe()
    received: list[bytes] = []

    def read() -> None:
        with open(theirs, "rb") as file:
            received.append(file.read())

    async def write() -> None:
        outlet = Outlet(asyncio.get_running_loop(), Owner())
        outlet.put(b"early")
        outlet.open(ours)
        for number in range(100):
            outlet.put_parts([b"<%d>" % number, PIECE, memoryview(PIECE)[number:]])
            outlet.put(b"small")
            if number % 10 == 0:
                outlet.flush()
        outlet.put_parts([b"part"] * 3 + [PIECE] * 2 * IOV_MAX)
        await outlet.sent()
        await outlet.close()

    reader = threading.Thread(target=read)
    reader.start()
    asyncio.run(write())
    reader.join(60)
    expected = [b"early", *(b"<%d>" % number + PIECE + PIECE[number:] + b"small" for number in range(100))]
    assert b"".join(received) == b"".join([*expected, b"part" * 3, PIECE * 2 * IOV_MAX])


def test_one_part_is_written_like_any_bytes() -> None:
    theirs, ours = os.pipe()
    assert gathering.write(ours, [b"frame"]) == 5
    assert os.read(theirs, 9) == b"frame"
    os.close(ours)
    os.close(theirs)
