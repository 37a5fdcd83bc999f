"""Writing from the main thread without a lock, until another thread writes too."""

from __future__ import annotations

import os
import threading
from functools import partial

from parkade._link import gathering
from parkade._link.writer import Writer
from parkade._wire.frames import Parts


class Link:
    """A pipe that takes at most this many bytes at a time, and waits at a gate."""

    def __init__(self, at_most: int = 1_000) -> None:
        self.written: list[bytes] = []
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self._at_most = at_most

    def send(self, data: bytes) -> int:
        self.reached.set()
        self.gate.wait()
        self.written.append(data[: self._at_most])
        return len(self.written[-1])

    def send_parts(self, parts: Parts) -> int:
        return self.send(b"".join(parts))


def writer_on(link: Link) -> Writer:
    return Writer(link.send, link.send_parts)


def test_the_rest_of_a_short_write_is_written() -> None:
    link = Link(at_most=2)
    writer_on(link).write(b"frame")
    assert link.written == [b"fr", b"am", b"e"]


def test_a_thread_waits_for_what_the_main_thread_has_begun() -> None:
    link = Link()
    link.gate.clear()
    writers: list[Writer] = []
    made = threading.Event()

    def main() -> None:
        writers.append(writer_on(link))
        made.set()
        writers[0].write(b"begun first")
        writers[0].write(b"later")

    first = threading.Thread(target=main)
    first.start()
    assert made.wait(20)
    assert link.reached.wait(20)
    second = threading.Thread(target=writers[0].write_from_any, args=(b"of a thread",))
    second.start()
    second.join(0.02)
    assert link.written == []
    link.gate.set()
    first.join(20)
    second.join(20)
    assert sorted(link.written) == [b"begun first", b"later", b"of a thread"]
    assert link.written[0] == b"begun first"


def test_frames_of_several_threads_do_not_mix() -> None:
    theirs, ours = os.pipe()
    writer = Writer(partial(os.write, ours), partial(gathering.write, ours))
    size, count, threads = 300_000, 20, 4

    def write(letter: bytes) -> None:
        for _ in range(count):
            writer.write_from_any(letter * size)

    others = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    received: list[bytes] = []

    def read() -> None:
        with open(theirs, "rb") as file:
            received.extend(file.read(size) for _ in range(count * threads))

    reader = threading.Thread(target=read)
    for thread in (reader, *others):
        thread.start()
    write(b"m")  # this thread made the writer
    for _ in range(count):
        writer.write_parts([b"p", b"p" * 65_536, memoryview(b"p" * (size - 65_537))])
    for thread in (reader, *others):
        thread.join(60)
    assert sorted(piece[:1] for piece in received) == [
        letter for letter in (b"a", b"b", b"m", b"p") for _ in range(count)
    ]
    assert all(len(set(piece)) == 1 for piece in received)
    os.close(ours)
