"""The codec against the vectors of the protocol, whole and a byte at a time."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

import vectors
from parkade._wire import frames as f
from parkade._wire import payloads as p
from parkade._wire import ready as r
from parkade._wire.codec import FROM_CORE, FROM_WORKER, encode_payload, read
from parkade.errors import Violation

DEFAULTS = {"database": "default", "shape": "rows", "int8": "number", "ttl": 0}  # of a query's options
DEFAULTS |= {"delay": 0, "queue": "default", "retries": 3, "priority": 0, "timezone": "UTC", "missed": "once"}  # jobs
DEFAULTS |= {"threads": 1, "fallback_kind": "async"}
INFO = {"core", "target", "language", "runtime", "pid"}

ACCEPTED = [pytest.param(vector, id=name) for name, vector in vectors.frames() if "frame" in vector]
REFUSED = [pytest.param(vector, id=name) for name, vector in vectors.frames() if "refused" in vector]
WRITTEN = [
    pytest.param(vector, id=name)
    for name, vector in vectors.frames()
    if "frame" in vector and not vector.get("reading")
]


@pytest.mark.parametrize("vector", ACCEPTED)
@pytest.mark.parametrize("size", [None, 1], ids=["whole", "a byte at a time"])
def test_a_frame_reads_as_its_vector_says(vector: dict[str, Any], size: int | None) -> None:
    expected = vector["frame"]
    kind, flags, stream, payload = received(vector, size)
    assert f.NAMES[kind] == expected["kind"]
    assert (flags & (f.MORE | f.TEXT), stream) == (expected["flags"], expected["stream"])
    assert told(payload) == without_defaults(vectors.value(expected["payload"]))


@pytest.mark.parametrize("vector", REFUSED)
@pytest.mark.parametrize("size", [None, 1], ids=["whole", "a byte at a time"])
def test_a_broken_frame_is_refused(vector: dict[str, Any], size: int | None) -> None:
    with pytest.raises(Violation):
        received(vector, size)


@pytest.mark.parametrize("vector", WRITTEN)
def test_a_frame_is_written_as_its_vector_says(vector: dict[str, Any]) -> None:
    expected = vector["frame"]
    payload = vectors.value(expected["payload"])
    encoded = payload if isinstance(payload, bytes) else encode_payload(payload)
    kind = {name: number for number, name in f.NAMES.items()}[expected["kind"]]
    assert f.frame(kind, expected["stream"], encoded, expected["flags"]) == vectors.unhex(vector["hex"])


@pytest.mark.parametrize("seed", range(40))
def test_frames_of_all_sizes_arrive_however_they_are_cut(seed: int) -> None:
    random = Random(seed)
    sizes = [random.choice([0, 1, 300, f.LARGE_SIZE_MIN - 1, f.LARGE_SIZE_MIN, 65_536, 300_000]) for _ in range(20)]
    frames = [(f.DATA, f.MORE, number, random.randbytes(size)) for number, size in enumerate(sizes, 1)]
    sent = b"".join(f.frame(kind, stream, payload, flags) for kind, flags, stream, payload in frames)
    decoder, found, at = f.Decoder(), [], 0
    most = random.choice([700, 70_000, 700_000])
    while at < len(sent):
        step = decoder.wanted if decoder.wanted and seed % 2 else random.randint(1, most)
        found += decoder.feed(sent[at : at + step])
        at += step
    assert found == frames
    assert decoder.missing == 0


def test_large_payloads_that_are_read_as_the_decoder_wants_are_not_copied() -> None:
    payloads = [bytes([number]) * 65_536 for number in range(3)]
    sent = b"".join(f.frame(f.DATA, 7, payload, f.MORE) for payload in payloads) + f.frame(f.DATA, 7, b"end")
    decoder, found, read = f.Decoder(), [], []
    while sent:
        size = decoder.wanted or 500
        read.append(sent[:size])
        sent = sent[size:]
        found += [payload for _, _, _, payload in decoder.feed(read[-1])]
    assert [len(data) for data in read] == [500, 65_048, 12, 65_536, 12, 65_536, 12, 3]
    assert found == [*payloads, b"end"]
    assert found[1] is read[3]
    assert found[2] is read[5]


def received(vector: dict[str, Any], size: int | None) -> tuple[int, int, int, Any]:
    """The one known frame of a vector, read as production reads it; `Violation` when it is refused."""
    rules = FROM_CORE if vector["from"] == "core" else FROM_WORKER
    decoder = f.Decoder()
    data = vectors.unhex(vector["hex"])
    step = size or len(data)
    if len(data) > 20_000 and size:
        step = 977  # a long body a byte at a time takes minutes: its header is split often enough at a prime
    found = []
    for at in range(0, len(data), step):
        for kind, flags, stream, payload in decoder.feed(data[at : at + step]):
            value = read(rules, kind, stream, payload)
            if isinstance(value, p.Request):
                try:
                    p.read_headers(p.read_head(value.head).headers)
                except ValueError as error:
                    raise Violation(str(error)) from error
            if value is not None:
                found.append((kind, flags, stream, value))
    (frame,) = found
    return frame


def told(value: Any) -> Any:
    """A payload in plain values, to compare with the vector's."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, p.Resume) and value.function is None:
        return plain([value.outcome, value.streams])
    if isinstance(value, p.Error) and value.reason != "retry":
        return [value.reason, value.text]
    if isinstance(value, p.Failure) and not value.watch:
        return [value.text]
    if isinstance(value, p.Publish):
        known = list(msgspec.structs.astuple(value))
        while len(known) > 3 and known[-1] is None:
            known.pop()
        return plain(known)
    if isinstance(value, r.Park):
        return plain([r.read_wait(value.wait), value.then])
    if isinstance(value, p.Hello):
        return plain([*msgspec.structs.astuple(value)[:3], {key: value.info[key] for key in value.info if key in INFO}])
    if isinstance(value, p.Request):
        head = msgspec.structs.astuple(p.read_head(value.head))[: len(msgspec.msgpack.decode(value.head))]
        return plain([*msgspec.structs.astuple(value)[:4], head])
    if isinstance(value, p.Run):
        known = msgspec.structs.astuple(value)
        return plain(known if value.request_id is not None else known[:5])
    return plain(value)


def plain(value: Any) -> Any:
    return without_defaults(msgspec.msgpack.decode(msgspec.msgpack.encode(value)))


def without_defaults(value: Any) -> Any:
    """What says nothing in a map is left out, since a missing key means the same."""
    match value:
        case dict():
            said = {key: item for key, item in value.items() if DEFAULTS.get(key, ...) != item}
            return {key: without_defaults(item) for key, item in said.items() if item not in (None, False, [])}
        case ["message", *message, None]:
            return ["message", *message]
        case ["call", name, state, "sync"]:
            return ["call", name, state]
        case ["answer", response, None]:
            return ["answer", response]
        case list():
            return [without_defaults(item) for item in value]
        case _:
            return value
