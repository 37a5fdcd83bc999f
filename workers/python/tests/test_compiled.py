"""The compiled accelerator does what the Python code does, for any bytes, and leaks nothing."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parkade._compiled import accelerator, state
from parkade._hosting import environ, sending
from parkade._hosting.asgi_heads import head_of
from parkade._wire import payloads as p
from parkade.errors import InvalidResult

PACKAGE = Path(__file__).parents[1] / "src"
COUNT = 100_000

compiled = pytest.mark.skipif(state != "used", reason=f"the accelerator is {state}")


def encoded(headers: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(headers))


def result(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it returns, or that it refuses the arguments."""
    try:
        return function(*arguments)
    except (ValueError, KeyError, TypeError, InvalidResult) as error:
        return type(error)


def environ_in_python(raw: msgspec.Raw) -> Any:
    return environ._fields(p.read_headers(raw))


def scope_in_python(raw: msgspec.Raw) -> Any:
    each = iter(msgspec.msgpack.decode(raw))
    return [(name.encode(), next(each)) for name in each]


def start_in_python(status: Any, headers: Any) -> Any:
    return sending._status_of(status), sending._flat(headers)


def agree(made: Any, python: Callable[..., Any], *arguments: Any) -> bool:
    """Whether it was ordinary. If so, both have to say the same, in the same types and order."""
    if made is None:
        return False
    expected = python(*arguments)
    assert made == expected
    assert repr(made) == repr(expected)
    return True


BROWSER = {
    "host": b"example.com:8000",
    "user-agent": b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "accept": b"text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
    "cookie": "name=Zoë".encode(),
    "content-type": b"text/plain",
    "content-length": b"0",
    "transfer-encoding": b"chunked",
    "proxy": b"http://192.0.2.1",
    "x-a_b": b"",
    "x" * 300: b"v" * 70_000,
    "": b"no name",
}
FLAT = [part for pair in BROWSER.items() for part in pair]


@compiled
@pytest.mark.parametrize("headers", [[], FLAT[:2], FLAT, FLAT * 2, FLAT[:18] * 9])
def test_headers_of_requests_are_ordinary(headers: list[Any]) -> None:
    raw = encoded(headers)
    assert agree(accelerator.asgi_fields(raw), scope_in_python, raw)
    assert agree(accelerator.wsgi_fields(raw), environ_in_python, raw) is (len(headers) <= len(FLAT))


@compiled
@pytest.mark.parametrize(
    "headers", [["a"], ["é", b""], ["a", "text"], ["a", None], [b"a", b""], {"a": b""}, None, 7, ["a", b"", "b"]]
)
def test_other_headers_are_left_to_python(headers: object) -> None:
    assert accelerator.wsgi_fields(encoded(headers)) is None
    assert accelerator.asgi_fields(encoded(headers)) is None


@compiled
def test_headers_that_end_anywhere_are_left_to_python() -> None:
    whole = bytes(encoded(FLAT[:6]))
    for end in range(len(whole)):
        assert accelerator.wsgi_fields(msgspec.Raw(whole[:end])) is None
        assert accelerator.asgi_fields(msgspec.Raw(whole[:end])) is None
    assert accelerator.wsgi_fields(msgspec.Raw(whole + b"\x00")) is None
    assert accelerator.asgi_fields(msgspec.Raw(whole + b"\x00")) is None


@compiled
@example(b"\xdd\xff\xff\xff\xfe\xdb\xff\xff\xff\xff")
@example(b"\x92\xa1a\xc6\xff\xff\xff\xff")
@given(st.binary(max_size=64))
def test_any_bytes_are_refused_or_read_as_python_reads_them(data: bytes) -> None:
    raw = msgspec.Raw(data)
    agree(accelerator.wsgi_fields(raw), environ_in_python, raw)
    agree(accelerator.asgi_fields(raw), scope_in_python, raw)


NAMES = st.one_of(st.sampled_from(list(BROWSER)), st.text(max_size=60))


@compiled
@given(st.lists(st.tuples(NAMES, st.binary(max_size=80)), max_size=20), st.integers(0, 10_000))
def test_any_headers_are_read_as_python_reads_them(pairs: list[tuple[str, bytes]], seed: int) -> None:
    data = bytearray(encoded([part for pair in pairs for part in pair]))
    if seed % 3 == 0 and data:  # bytes that went wrong
        noise = random.Random(seed)
        data[noise.randrange(len(data))] = noise.randrange(256)
    raw = msgspec.Raw(bytes(data))
    agree(accelerator.wsgi_fields(raw), environ_in_python, raw)
    agree(accelerator.asgi_fields(raw), scope_in_python, raw)


class Text(str):
    pass


TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(["ü", "\udc80", Text("text"), b"bytes", None, 7]))
STATUSES = st.one_of(
    st.sampled_from(["200 OK", "404", "200", "2000", "20", "", "٢٠٠ OK", "099 ", 200, None, Text("200")])
)
PAIRS = st.one_of(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS), st.lists(TEXTS, max_size=3), TEXTS)


@compiled
@given(st.one_of(STATUSES, st.text(max_size=8)), st.one_of(st.lists(PAIRS, max_size=5), st.none()))
def test_any_start_response_is_read_as_python_reads_it(status: object, headers: object) -> None:
    agree(accelerator.wsgi_head(status, headers), start_in_python, status, headers)


@compiled
@given(
    st.one_of(st.integers(-1, 1000), st.sampled_from([10**30, True, None, "200"])),
    st.one_of(st.none(), st.lists(st.one_of(st.tuples(*[st.binary(max_size=9)] * 2), PAIRS), max_size=5)),
)
def test_any_start_of_a_response_is_read_as_python_reads_it(status: object, headers: object) -> None:
    for message in ({"status": status, "headers": headers}, {"status": status}, {"headers": headers}, headers):
        agree(accelerator.asgi_head(message), head_of, message)


@compiled
def test_ordinary_heads_of_responses_are_ordinary() -> None:
    assert accelerator.wsgi_head("200 OK", [("A", "b")]) == (200, ["A", "b"])
    assert accelerator.asgi_head({"status": 200, "headers": [(b"a", b"b"), [b"c", b"d"]]}) == (
        200,
        ["a", b"b", "c", b"d"],
    )


@compiled
def test_the_accelerator_keeps_nothing() -> None:
    """Names that clients choose evict others; whatever else is made is the caller's."""
    noise = [encoded([f"x-{number}", b"v" * 100, *FLAT[:18]]) for number in range(1000)]
    wrong = [msgspec.Raw(bytes(raw)[:-1]) for raw in noise]

    def work(count: int) -> int:
        for number in range(count):
            for raw in (noise[number % 1000], wrong[number % 1000]) if number % 4 == 0 else ():
                accelerator.wsgi_fields(raw)
                accelerator.asgi_fields(raw)
            accelerator.wsgi_head("200 OK", [("Content-Type", "text/plain" * 9), ("A", f"{number}")])
            accelerator.wsgi_head("200 OK", [("Content-Type", "text/plain" * 9), ("A", 7)])
            accelerator.asgi_head({"status": 200, "headers": [(b"content-type", b"a%d" % number)]})
            accelerator.asgi_head({"status": 200, "headers": [(b"content-type", b"a"), (b"a", 7)]})
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB

    before = work(COUNT // 20)
    key = next(key for key in accelerator.wsgi_fields(encoded(FLAT)) or () if key == "HTTP_ACCEPT")
    counted = sys.getrefcount(key), sys.getrefcount(None)
    after = work(COUNT)
    assert after - before < 4096, f"{after - before} KiB"
    assert sys.getrefcount(key) <= counted[0]
    assert abs(sys.getrefcount(None) - counted[1]) < 1000


def state_with(variables: dict[str, str], before: str = "") -> str:
    """What another interpreter says of the accelerator."""
    return subprocess.run(
        [sys.executable, "-c", f"{before}\nfrom parkade import _compiled\nprint(_compiled.state)"],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)} | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.skipif("PARKADE_ACCELERATOR" in os.environ, reason="it is set for these tests")
@pytest.mark.parametrize(("value", "told"), [("0", "not used: PARKADE_ACCELERATOR is 0"), ("1", state)])
def test_a_variable_turns_it_off(value: str, told: str) -> None:
    assert state_with({"PARKADE_ACCELERATOR": value}) == told


STALE = "import sys, types; sys.modules['parkade._accelerator'] = types.SimpleNamespace(BOUNDARY=0)"
MISSING = "import sys; sys.modules['parkade._accelerator'] = None"


@pytest.mark.parametrize(("before", "why"), [(STALE, "built for another version"), (MISSING, "not used: ")])
def test_an_extension_that_is_stale_or_missing_is_not_used(before: str, why: str) -> None:
    assert why in state_with({"PARKADE_ACCELERATOR": "1"}, before)
