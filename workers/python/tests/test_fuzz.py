"""Whatever clients send: each reader gives a value or the client's fault, agrees with a simple reference, and takes
time in proportion. Whatever a core says: the session goes on, or ends with a violation. `make test` always tries the
same inputs, `soak/input.py` others for a minute each.
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from http.cookies import SimpleCookie
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode
from uuid import UUID

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vectors
from parkade import App, HTTPError, Request, Upload
from parkade._limits import FIELDS_MAX
from parkade._requests.charsets import decode_text
from parkade._requests.cookies import parse_cookies
from parkade._requests.filenames import plain_name
from parkade._requests.forms import parse_content_type, parse_form, parse_query
from parkade._requests.percent import percent_decode, percent_decode_text
from parkade._session.session import Session
from parkade._validation.converters import converter
from parkade._validation.faults import Mismatch
from parkade._validation.json import json_decoder
from parkade._wire import frames as f
from parkade._wire.codec import FROM_CORE, FROM_WORKER, read
from parkade._wire.ready import Application
from parkade.errors import Violation
from parkade.testing import Client

settings.register_profile("test", derandomize=True, database=None, deadline=None, max_examples=60)
settings.register_profile("soak", derandomize=False, database=None, deadline=None, max_examples=2_000)
settings.load_profile("test")

URLENCODED = "application/x-www-form-urlencoded"


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


@dataclass
class Order:
    price: Decimal
    at: datetime | None = None
    parts: list[Order] = field(default_factory=list)


class Tree(msgspec.Struct):
    children: list[Tree] = []
    more: Any = None


def of(pieces: list[str], most: int = 30) -> st.SearchStrategy[str]:
    """Texts that are made of these and of anything that a header may hold."""
    anything = st.characters(max_codepoint=255, exclude_characters="\0\r\n")
    return st.lists(st.sampled_from(pieces) | anything, max_size=most).map("".join)


def of_bytes(pieces: list[bytes], most: int = 30) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(pieces) | st.binary(max_size=3), max_size=most).map(b"".join)


COOKIES = of(["a", "=", ";", '"', "\\", "\\0", "\\101", "\\377", "\\400", " ", ","])
QUERIES = of(["a", "=", "&", "%", "+", "%4", "%41", "%zz", "%C3%BC", "%FF", "%00", "\\", "\\x41"])
CONTENT_TYPES = of(
    ["text/plain", "multipart/form-data", ";", "=", '"', "\\", "charset", "boundary", "a", " ", "utf-8", "idna"]
)
FORMS = of_bytes([b"a", b"=", b"&", b"%", b"+", b"%41", b"%zz", b"\\", b"\xff", b"%C3%BC"])
PARTS = of_bytes(
    [
        *(b"--x", b"\r\n", b"--", b"\r\n--x\r\n", b"--x--\r\n", b"\r\n\r\n", b";", b'"', b"\\", b":"),
        *(b'Content-Disposition: form-data; name="a"', b"; filename=b", b"; filename*=x''%41", b"Content-Type: "),
    ]
)
JSON = of_bytes(
    [
        *(b"{", b"}", b"[", b"]", b'"', b":", b",", b'"price"', b'"parts"', b'"children"', b'"more"', b'"1e9"', b"NaN"),
        *(b"1", b"e", b"-", b".", b"\\u", b"\\ud800", b"null", b"1e999", b"9" * 5_000, b"[" * 300, b"]" * 300),
    ]
)
NUMBERS = of(
    [
        "1",
        "0",
        "9" * 4_001,
        "e",
        "E",
        "-",
        "+",
        ".",
        "_",
        "NaN",
        "inf",
        "1e999999999",
        "true",
        "red",
        "T",
        ":",
        "Z",
        "²",
    ]
)


def clients_fault(read: Callable[[], Any]) -> Any:
    """What it gives, or None when the client has been told of its mistake; nothing else may be raised."""
    try:
        return read()
    except HTTPError as error:
        if error.status >= 500:
            raise
    except ValueError as error:
        if type(error) not in (msgspec.ValidationError, Mismatch, ValueError):
            raise
    return None


@given(COOKIES)
@example('a="' + "\\" * 30_000 + '"')
@example('a="\\')
def test_cookies(line: str) -> None:
    cookies = parse_cookies([line])
    assert all(cookies)
    assert sum(map(len, cookies)) <= len(line)


@given(st.text(st.characters(max_codepoint=255)))
def test_cookies_as_the_standard_library_writes_them(value: str) -> None:
    written = SimpleCookie({"name": value})["name"].OutputString()
    assert parse_cookies([written]) == {"name": value}


@given(FORMS)
@example(b"%" * 70_000)
def test_percent_escapes(data: bytes) -> None:
    assert percent_decode(data) == unquote_to_bytes(data)


@given(QUERIES)
@example("a&" * 1_000)
@example("\udc80%41")
def test_queries(text: str) -> None:
    fields = clients_fault(lambda: parse_query(text))
    if text.isascii() and text.count("&") < FIELDS_MAX:
        assert fields == parse_qsl(text, keep_blank_values=True)
    percent_decode_text(text)


@given(FORMS)
def test_urlencoded_bodies(body: bytes) -> None:
    form = clients_fault(lambda: parse_form(URLENCODED, body))
    assert (form is None) is (b"\xff" in body or not is_utf8(body))


def is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_urlencoded_bodies_as_the_standard_library_writes_them(fields: list[tuple[str, str]]) -> None:
    assert parse_form(URLENCODED, urlencode(fields).encode()).items_all() == grouped(fields)


def grouped(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    names = dict.fromkeys(name for name, _ in fields)
    return [(name, value) for name in names for known, value in fields if known == name]


@given(PARTS)
@example(b"--x\r\nContent-Disposition: form-data; name=a; filename*=''%\r\n\r\n\r\n--x--")
@example(b"--x--")
@example(b"--x")
@example(b"\r\n--x--\r\n--x--")
def test_multipart_bodies(body: bytes) -> None:
    clients_fault(lambda: parse_form("multipart/form-data; boundary=x", body))


BOUNDARIES = st.from_regex(re.compile(r"[0-9A-Za-z*+_.-]{1,70}"), fullmatch=True)
NAMES = st.from_regex(re.compile(r'[^"\\%\0-\x1f]{0,20}'), fullmatch=True)


@given(BOUNDARIES, st.lists(st.tuples(NAMES, st.none() | NAMES, st.binary()), max_size=4))
def test_multipart_bodies_as_browsers_write_them(boundary: str, parts: list[tuple[str, str | None, bytes]]) -> None:
    if any(b"\r\n--" in content for _, _, content in parts):
        return
    body, expected = b"", []
    for name, filename, content in parts:
        content = content if filename is not None else content.decode(errors="replace").encode()
        told = "" if filename is None else f'; filename="{filename}"'
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{told}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
        if filename is None:
            expected.append((name, content.decode()))
        else:
            expected.append((name, Upload(plain_name(filename), "application/octet-stream", content, filename)))
    form = parse_form(f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode())
    assert form.items_all() == grouped(expected)  # type: ignore[arg-type,comparison-overlap]


@given(CONTENT_TYPES, st.binary(max_size=20))
@example('a/b; charset="' + '\\"' * 10_000, b"x")
@example("text/plain; charset=idna", b"xn--a-")
@example("text/plain; charset=undefined", b"x")
def test_content_types_and_texts(content_type: str, body: bytes) -> None:
    _, parameters = parse_content_type(content_type)
    clients_fault(lambda: decode_text(body, parameters.get("charset", "utf-8")))
    clients_fault(lambda: parse_form(content_type, body))


DECODERS = [json_decoder(kind) for kind in (Any, dict, list[int], Order, Tree, dict[str, Decimal], list[Colour | None])]


@given(JSON)
@example(b"[" * 100_000)
@example(b'{"price":NaN}')
@example(b'{"price":"sNaN"}')
@example(b'{"price":1e999999999}')
@example(b'{"children":[' * 300)
@example(b'"\\ud800"')
def test_json_bodies(body: bytes) -> None:
    for decode in DECODERS:
        clients_fault(lambda decode=decode: decode(body))  # type: ignore[misc]


KINDS = (bool, int, float, Decimal, UUID, datetime, date, time_of_day, Colour, Number, Literal["a", "b"], Literal[1, 2])


@given(NUMBERS)
@example("9" * 100_000)
@example("sNaN")
@example("0e999999999")
@example("2020-01-01T00:00:00." + "1" * 100_000)
def test_parameters(text: str) -> None:
    for kind in KINDS:
        convert = converter(kind)
        assert convert is not None
        value = clients_fault(lambda convert=convert: convert(text))  # type: ignore[misc]
        if kind in (float, Decimal, int) and value is not None:
            assert value == value
            assert len(f"{value:f}") < 10_000


FRAMES = [
    frame
    for _, vector in vectors.frames()
    if "frame" in vector
    for frame in f.Decoder().feed(vectors.unhex(vector["hex"]))
    if len(frame[3]) < 500
]
OPENING = [frame for frame in FRAMES if frame[0] in (f.REQUEST, f.RUN)]
FROM_A_CORE = OPENING + [frame for frame in FRAMES if frame[0] in FROM_CORE and frame[0] not in (f.HELLO, f.GOODBYE)]
PAYLOADS = of_bytes([b"\x80", b"\x90", b"\x9f", b"\xc0", b"\xc4\xff", b"\xdd\xff\xff\xff\xff", b"\xa2\xc3\x28"], 6)
"""What MessagePack begins with: maps, arrays, bytes that do not come, text that is none."""


def changed(draw: st.DrawFn, payload: bytes) -> bytes:
    """The same, or with something else in the place of a part."""
    begin, end = sorted(draw(st.tuples(*[st.integers(0, len(payload))] * 2)))
    return draw(st.just(payload) | PAYLOADS.map(lambda piece: payload[:begin] + piece + payload[end:]))


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame of the vectors, changed; its header fits."""
    kind, flags, stream, payload = draw(st.sampled_from(FRAMES))
    return f.frame(kind, stream, changed(draw, payload), flags)


@st.composite
def links(draw: st.DrawFn) -> list[bytes]:
    """What a core says: requests and jobs on streams that are new, and what may be said of one that was opened."""
    link, opened = [], 0
    for kind, flags, stream, payload in draw(st.lists(st.sampled_from(FROM_A_CORE), max_size=8)):
        if kind in (f.REQUEST, f.RUN):
            opened = stream = opened + 1
        elif stream:
            stream = draw(st.integers(1, max(opened, 1)))
        link.append(f.frame(kind, stream, changed(draw, payload), flags))
    return link


def heard(link: list[bytes], size: int, concurrent: bool) -> list[Any]:
    """What a session that is ready for requests reads in these, `size` bytes at a time."""
    session, events = Session(), []
    session.receive(f.frame(f.HELLO, 0, msgspec.msgpack.encode([1, 1, 0, {}])))
    session.ready(8, Application(interface="native", concurrent=concurrent))
    data = b"".join(link)
    for at in range(0, len(data), size):
        events += session.receive(data[at : at + size])
    return events


@given(links(), st.integers(1, 40), st.booleans())
@example([f.frame(f.REQUEST, 1, b"\xdd\xff\xff\xff\xff")], 1, True)
@example([f.frame(f.RESUME, 0, b"\xdd\xff\xff\xff\xff")], 1, False)
def test_frames_to_a_session(link: list[bytes], size: int, concurrent: bool) -> None:
    assert heard(link, size, concurrent) == heard(link, 1 << 20, concurrent)


@given(frames())
def test_frames(frame: bytes) -> None:
    for rules in (FROM_CORE, FROM_WORKER):
        for kind, _, stream, payload in f.Decoder().feed(frame):
            with suppress(Violation):
                read(rules, kind, stream, payload)


def answers() -> Client:
    app = App()

    @app.post("/order")
    def order(body: Order, word: str = "", tag: list[int] | None = None) -> str:
        return f"{body.price:f}"

    @app.post("/echo")
    def echo(body: dict[str, Any]) -> dict[str, Any]:
        return body

    @app.post("/form")
    def form(request: Request, count: int = 0, price: Decimal = Decimal(1), file: Upload | None = None) -> str:
        return f"{len(request.cookies)} {count} {price:f} {request.text[:9]}"

    return Client(app)


CLIENT = answers()
TYPES = st.sampled_from(["application/json", URLENCODED, "multipart/form-data; boundary=x"])


@given(JSON | FORMS | PARTS, QUERIES, COOKIES, CONTENT_TYPES | TYPES)
@example(b'{"a":' * 200 + b"1" + b"}" * 200, "", "", "application/json")
@example(b'{"a":' * 900 + b"1" + b"}" * 900, "", "", "application/json")
@example(b"x", "", "", "text/plain; charset=punycode")
def test_handlers_are_never_at_fault(body: bytes, query: str, cookie: str, content_type: str) -> None:
    headers = {"cookie": cookie, "content-type": content_type}
    for path in ("/order", "/echo", "/form"):
        answer = CLIENT.request("POST", f"{path}?{query}", content=body, headers=headers)
        assert answer.status < 500, answer.body


READERS: dict[str, Callable[[bytes], Any]] = {
    "cookies": lambda data: parse_cookies(['a="' + data.decode("latin-1") + '"']),
    "query": lambda data: parse_query(data.decode("latin-1")),
    "content type": lambda data: parse_content_type('a; b="' + data.decode("latin-1")),
    "form": lambda data: parse_form(URLENCODED, data),
    "multipart": lambda data: parse_form("multipart/form-data; boundary=x", b"--x\r\n" + data + b"\r\n--x--"),
    "JSON": DECODERS[0],
    "a record": DECODERS[3],
    "text": lambda data: decode_text(data, "utf-16"),
} | {f"{kind}": lambda data, kind=kind: converter(kind)(data.decode("latin-1")) for kind in KINDS}  # type: ignore[misc]


def seconds(reader: Callable[[bytes], Any], data: bytes) -> float:
    begin = time.process_time()
    clients_fault(lambda: reader(data))
    return time.process_time() - begin


@given(st.binary(max_size=6), FORMS | PARTS | JSON.filter(lambda data: len(data) < 200), st.binary(max_size=6))
@example(b"", b"\\", b"")
@example(b"", b'\\"', b"")
@example(b'"', b";", b"")
@example(b"--x", b"\r\n--x", b"")
def test_what_is_repeated_costs_in_proportion(begin: bytes, piece: bytes, end: bytes) -> None:
    for name, reader in READERS.items():
        long = begin + piece * (65_536 // max(len(piece), 1)) + end
        # The least of several: collecting the garbage of what was tried before takes time, too.
        if min(taken := [seconds(reader, long)]) > 0.1:
            taken += [seconds(reader, long) for _ in range(3)]
            eighth = seconds(reader, begin + piece * (8_192 // max(len(piece), 1)) + end)
            assert min(taken) <= 0.1 + 24 * eighth, name
