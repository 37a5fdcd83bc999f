"""The compiled accelerator does what the Python code does, for any bytes, and leaks nothing."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parkade._compiled import accelerator, state
from parkade._hosting import asgi_sender, environ, scope, sending
from parkade._hosting.asgi_heads import head_of
from parkade._hosting.root_path import RootPath
from parkade._limits import INLINE_MAX
from parkade._wire import payloads as p
from parkade._wire.codec import encode_payload
from parkade.errors import InvalidResult

PACKAGE = Path(__file__).parents[1] / "src"
COUNT = 100_000

compiled = pytest.mark.skipif(state != "used", reason=f"the accelerator is {state}")


def encoded(headers: object, **told: object) -> msgspec.Raw:
    """The head of a request with these headers."""
    head = {
        "method": "GET",
        "path": "/a",
        "query": "",
        "headers": headers,
        "client": "192.0.2.7",
        "scheme": "http",
        "version": "1.1",
        "id": "an id",
        "client_port": 4711,
        "server": "127.0.0.1",
        "server_port": 8000,
    }
    return msgspec.Raw(msgspec.msgpack.encode(list((head | told).values())))


def result(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it returns, or that it refuses the arguments."""
    try:
        return function(*arguments)
    except (ValueError, KeyError, TypeError, InvalidResult) as error:
        return type(error)


ENVIRONS = environ.Environs(RootPath("/shop"), threads=True)


def compiled_environ(raw: msgspec.Raw) -> Any:
    return accelerator.wsgi_environ(raw, ENVIRONS._constants)


def environ_in_python(raw: msgspec.Raw) -> Any:
    return ENVIRONS._of_head(p.read_head(raw))


def compiled_scope(raw: msgspec.Raw, has_trailers: bool = True) -> Any:
    return accelerator.asgi_scope(raw, scope._CONSTANTS, has_trailers)


def scope_in_python(raw: msgspec.Raw, has_trailers: bool = True) -> Any:
    return scope._request_scope(p.read_head(raw), has_trailers)


def start_in_python(status: Any, headers: Any) -> Any:
    return sending._status_of(status), sending._flat(headers)


def agree(made: Any, python: Callable[..., Any], *arguments: Any) -> bool:
    """Whether it was ordinary. If so, both have to say the same, in the same types."""
    if made is None:
        return False
    expected = python(*arguments)
    assert made == expected
    assert same_types(made, expected)
    return True


def same_types(one: object, another: object) -> bool:
    if type(one) is not type(another):
        return False
    if isinstance(one, dict) and isinstance(another, dict):
        return all(same_types(one[key], another[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(another, list | tuple):
        return all(map(same_types, one, another))
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
def test_heads_of_requests_are_ordinary(headers: list[Any]) -> None:
    raw = encoded(headers)
    assert agree(compiled_scope(raw), scope_in_python, raw)
    assert agree(compiled_environ(raw), environ_in_python, raw) is (len(headers) <= len(FLAT))


HEADS: list[dict[str, object]] = [
    {"method": "PROPFIND"},
    {"path": "/a%20b%c3%A9%zz%4"},
    {"path": "/%ff%"},
    {"path": "*", "query": "a=%20&b"},
    {"client": "", "client_port": 0},
    {"scheme": "https"},
    {"version": "1.0"},
    {"version": "2"},
    {"version": "3"},
    {"client_port": 7, "server_port": 200},
    {"server": "::1", "server_port": 65_535},
]


@compiled
@pytest.mark.parametrize("told", HEADS)
@pytest.mark.parametrize("has_trailers", [True, False])
def test_each_element_of_a_head_is_read(told: dict[str, object], has_trailers: bool) -> None:
    raw = encoded(FLAT, **told)
    assert agree(compiled_scope(raw, has_trailers), scope_in_python, raw, has_trailers)
    assert agree(compiled_environ(raw), environ_in_python, raw)


@compiled
@pytest.mark.parametrize(
    "headers", [["a"], ["é", b""], ["a", "text"], ["a", None], [b"a", b""], {"a": b""}, None, 7, ["a", b"", "b"]]
)
def test_other_headers_are_left_to_python(headers: object) -> None:
    assert compiled_environ(encoded(headers)) is None
    assert compiled_scope(encoded(headers)) is None


@compiled
@pytest.mark.parametrize(
    "told",
    [
        {"path": "/é"},
        {"query": "é"},
        {"scheme": "ws"},
        {"scheme": "wss"},
        {"version": "1.10"},
        {"client_port": 65_536},
        {"server_port": -1},
        {"id": None},
        {"later": 7},
    ],
)
def test_other_heads_are_left_to_python(told: dict[str, object]) -> None:
    assert compiled_environ(encoded(FLAT, **told)) is None
    assert compiled_scope(encoded(FLAT, **told)) is None


@compiled
def test_what_only_one_of_them_leaves_to_python() -> None:
    on_a_file = encoded(FLAT, server="/run/parkade.sock", server_port=0)
    assert compiled_environ(on_a_file) is None
    assert agree(compiled_scope(on_a_file), scope_in_python, on_a_file)
    with_codings = encoded([*FLAT, "te", b"trailers"])
    assert compiled_scope(with_codings) is None
    assert agree(compiled_environ(with_codings), environ_in_python, with_codings)


@compiled
def test_heads_that_end_anywhere_are_left_to_python() -> None:
    whole = bytes(encoded(FLAT[:6]))
    for end in range(len(whole)):
        assert compiled_environ(msgspec.Raw(whole[:end])) is None
        assert compiled_scope(msgspec.Raw(whole[:end])) is None
    assert compiled_environ(msgspec.Raw(whole + b"\x00")) is None
    assert compiled_scope(msgspec.Raw(whole + b"\x00")) is None


@compiled
@example(b"\x9b\xa1a\xa1/\xa0\xdd\xff\xff\xff\xfe\xdb\xff\xff\xff\xff")
@example(b"\x9b\xa1a\xa1/\xa0\x92\xa1a\xc6\xff\xff\xff\xff")
@given(st.binary(max_size=64))
def test_any_bytes_are_refused_or_read_as_python_reads_them(data: bytes) -> None:
    raw = msgspec.Raw(data)
    agree(compiled_environ(raw), environ_in_python, raw)
    agree(compiled_scope(raw), scope_in_python, raw)


NAMES = st.one_of(st.sampled_from([*BROWSER, "te"]), st.text(max_size=60))
PATHS = st.one_of(st.text(max_size=9), st.text("/a%0fF", max_size=12))


@compiled
@given(st.lists(st.tuples(NAMES, st.binary(max_size=80)), max_size=20), PATHS, PATHS, st.integers(0, 10_000))
def test_any_head_is_read_as_python_reads_it(pairs: list[tuple[str, bytes]], path: str, query: str, seed: int) -> None:
    head = encoded([part for pair in pairs for part in pair], path=path, query=query)
    data = bytearray(head)
    if seed % 3 == 0:  # bytes that went wrong
        noise = random.Random(seed)
        data[noise.randrange(len(data))] = noise.randrange(256)
    raw = msgspec.Raw(bytes(data))
    agree(compiled_environ(raw), environ_in_python, raw)
    agree(compiled_scope(raw), scope_in_python, raw)


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


FLAT_PARTS = st.one_of(TEXTS, st.text(max_size=300), st.binary(max_size=300))


@compiled
@example((200, []), b"x" * INLINE_MAX)
@example((404, ["a", b"b" * 70_000] * 9), b"")
@given(
    st.one_of(st.tuples(st.integers(-1, 700), st.lists(FLAT_PARTS, max_size=40)), st.none(), st.tuples()),
    st.one_of(st.binary(max_size=300), st.text(max_size=3), st.none()),
)
def test_any_response_is_encoded_as_python_encodes_it(head: Any, body: Any) -> None:
    agree(accelerator.response(head, body), lambda: encode_payload((*head, body)))


@compiled
def test_which_responses_are_ordinary() -> None:
    assert accelerator.response((200, ["a", b"b", "c", "d"]), b"x" * INLINE_MAX) is not None
    assert accelerator.response((200, []), b"x" * (INLINE_MAX + 1)) is None
    assert accelerator.response((200, ["a", bytearray()]), b"") is None
    assert accelerator.response((10**30, []), b"") is None


class Link:
    """What a response needs of its link, its exchange and its request."""

    stream = 7
    waiters = None
    end: object = None

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def respond(self, stream: int, response: bytes) -> None:
        self.sent.append((stream, msgspec.msgpack.decode(response)))

    def complete(self) -> None:
        self.sent.append("complete")


START = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
BODY = {"type": "http.response.body", "body": b"body"}


def sender(link: Link) -> Any:
    class Response(accelerator.AsgiSender):  # type: ignore[misc]
        __slots__ = ()

        async def _send(self, message: object) -> None:
            link.sent.append(message)

    return Response(link, link, link, None, {})


@compiled
def test_an_ordinary_response_is_sent_at_once() -> None:
    response, link = sender(link := Link()), link
    response.send(START)
    assert (link.sent, response._phase, response._head) == ([], asgi_sender.STARTED, (200, ["a", b"b"]))
    response.send(BODY)
    assert link.sent == [(7, [200, ["a", b"b"], b"body"]), "complete"]
    assert response._phase == asgi_sender.OVER


@compiled
@pytest.mark.parametrize(
    "messages",
    [
        [BODY],
        [START | {"type": 7}],
        [START | {"trailers": True}],
        [START | {"status": "200"}],
        [{}],
        [None],
        [START, START],
        [START, BODY | {"more_body": True}],
        [START, BODY | {"body": bytearray(b"body")}],
        [START, BODY | {"body": b"x" * (INLINE_MAX + 1)}],
        [START, {"type": "http.response.body"}],
        [START, {"type": "http.response.pathsend", "path": "/a"}],
        [START, BODY, BODY],
    ],
)
def test_other_messages_are_left_to_python(messages: list[Any]) -> None:
    async def run() -> None:
        for message in messages:
            await response.send(message)

    response, link = sender(link := Link()), link
    asyncio.run(run())
    assert link.sent[-1] == messages[-1]


@compiled
@pytest.mark.parametrize("name", ["end", "waiters", "parked"])
def test_a_response_in_another_state_is_left_to_python(name: str) -> None:
    response, link = sender(link := Link()), link
    if name == "parked":
        response = type(response)(link, link, link, None, {1: "a response of park"})
    else:
        response.send(START)
        setattr(link, name, "set")
    message = START if name == "parked" else BODY
    asyncio.run(response.send(message))
    assert link.sent == [message]


@compiled
def test_what_is_over_passes_for_a_coroutine() -> None:
    async def run() -> None:
        assert await response.send(START) is None
        assert await asyncio.create_task(response.send(BODY)) is None
        assert await asyncio.wait_for(done, 10) is None
        assert await asyncio.gather(done, done) == [None, None]

    response, done = sender(Link()), sender(Link()).send(START)
    asyncio.run(run())
    assert isinstance(done, Coroutine)
    with pytest.raises(StopIteration):
        done.send(None)
    with pytest.raises(KeyError, match="key"):
        done.throw(KeyError("key"))
    with pytest.raises(ValueError, match="value"):
        done.throw(ValueError, "value")
    done.close()


@compiled
def test_errors_of_the_link_are_raised() -> None:
    response, link = sender(link := Link()), link
    response.send(START)
    del link.sent
    with pytest.raises(AttributeError):
        response.send(BODY)


@compiled
def test_the_accelerator_keeps_nothing() -> None:
    """Names that clients choose evict others; whatever else is made is the caller's."""
    noise = [encoded([f"x-{number}", b"v" * 100, *FLAT[:18]]) for number in range(1000)]
    wrong = [msgspec.Raw(bytes(raw)[:-1]) for raw in noise]

    link = Link()
    kind = type(sender(link))

    def work(count: int) -> int:
        for number in range(count):
            for raw in (noise[number % 1000], wrong[number % 1000]) if number % 4 == 0 else ():
                compiled_environ(raw)
                compiled_scope(raw)
            accelerator.wsgi_head("200 OK", [("Content-Type", "text/plain" * 9), ("A", f"{number}")])
            accelerator.wsgi_head("200 OK", [("Content-Type", "text/plain" * 9), ("A", 7)])
            accelerator.asgi_head({"status": 200, "headers": [(b"content-type", b"a%d" % number)]})
            accelerator.asgi_head({"status": 200, "headers": [(b"content-type", b"a"), (b"a", 7)]})
            accelerator.response((200, ["a", b"%d" % number]), b"v" * 99)
            accelerator.response((200, ["a", b"%d" % number, None]), b"v" * 99)
            if number % 4 == 0:
                response = kind(link, link, link, None, {})
                response.send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"%d" % number)]})
                response.send(BODY)
                link.sent.clear()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB

    before = work(COUNT // 20)
    key = next(key for key in compiled_environ(encoded(FLAT)) if key == "HTTP_ACCEPT")
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
