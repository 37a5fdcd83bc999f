"""What clients write in odd ways: cookies, percent escapes, charsets, decimals, deep JSON."""

from __future__ import annotations

import contextlib
import gc
import json
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
import pytest

from parkade import HTTPError
from parkade._limits import JSON_DEPTH_MAX
from parkade._log import format_error, log_error, log_fault
from parkade._requests.charsets import decode_text
from parkade._requests.cookies import parse_cookies
from parkade._requests.percent import PIECE, percent_decode, percent_decode_text
from parkade._validation.json import depth, json_decoder


@pytest.mark.parametrize("value", ["x", "x y", 'a"b', "a\\b", "a;b", "ü", "\x01\x7f", '\\"\\073', "", "\\", "\\1012"])
def test_what_the_standard_library_writes_as_a_cookie_is_read(value: str) -> None:
    written = SimpleCookie({"name": value})["name"].OutputString()
    assert parse_cookies([written]) == {"name": value}


@pytest.mark.parametrize(
    ("line", "cookies"),
    [
        ("a=1; a=2", {"a": "1"}),
        ("a; =b; ;c=d=e", {"a": "", "c": "d=e"}),
        ('a="', {"a": ""}),
        ('a="b', {"a": "b"}),
        ('a="b"c"', {"a": 'b"c'}),
        ('a="\\400"', {"a": "400"}),
        ('a="\\"', {"a": "\\"}),
    ],
)
def test_odd_cookies_are_read_as_well_as_can_be(line: str, cookies: dict[str, str]) -> None:
    assert parse_cookies([line]) == cookies


@pytest.mark.parametrize("data", [b"", b"%", b"%4", b"%41", b"%zz%41", b"%%41%", b"\\x41%5c", b"%\xff%c3%bc", b"a+b"])
@pytest.mark.parametrize("before", [0, PIECE - 4, PIECE - 3, PIECE - 2, PIECE - 1, PIECE])
def test_escapes_are_decoded_wherever_pieces_end(data: bytes, before: int) -> None:
    whole = b"x" * before + data + b"%42" * 3
    assert percent_decode(whole) == unquote_to_bytes(whole)


def test_what_is_no_utf8_is_replaced() -> None:
    assert percent_decode_text("/caf%E9/%C3%BC") == "/caf\ufffd/ü"


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("UTF-8", "ü".encode(), "ü"),
        ("us-ascii", b"a", "a"),
        ("Latin1", b"\xfc", "ü"),
        ("windows-1252", b"\x80", "€"),
        ("utf-16", "ü".encode("utf-16-le"), "ü"),
        ("utf-16", b"\xfe\xff" + "ü".encode("utf-16-be"), "ü"),
        ("utf-16be", "ü".encode("utf-16-be"), "ü"),
    ],
)
def test_a_text_is_decoded_by_its_charset(charset: str, body: bytes, text: str) -> None:
    assert decode_text(body, charset) == text


@dataclass
class Node:
    price: Decimal
    parts: list[Node]


class Basket(msgspec.Struct):
    prices: dict[Decimal, Decimal | None] = {}


@pytest.mark.parametrize(
    ("annotation", "body"),
    [
        (Any, b"[" * 200 + b"]" * 200),
        (list[Any], b"[" * 200 + b"]" * 200),
        (Any, b'["' + b"[" * 1_000 + b'"]'),
        (list[list[int]], b"[" + b"[],[1]," * 500 + b"[]]"),
    ],
)
def test_json_may_be_as_deep_as_its_limit(annotation: Any, body: bytes) -> None:
    assert json_decoder(annotation)(body) == msgspec.json.decode(body)


@pytest.mark.parametrize(
    ("annotation", "body"),
    [
        (Any, b"[" * 201 + b"]" * 201),
        (dict, b'{"a":' * 201 + b"1" + b"}" * 201),
        (dict[str, Any], b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"),
        (object, b"[" * 100_000),
        (int, b"[" * 100_000),
        (Node, b'{"price":1,"parts":[' * 101 + b"]}" * 101),
        (Basket, b'{"other":' + b"[" * 100_000),
        (Any, b"[1"),
        (Any, b'"\xff"'),
    ],
)
def test_json_that_is_too_deep_or_none_is_400(annotation: Any, body: bytes) -> None:
    with pytest.raises(HTTPError) as raised:
        json_decoder(annotation)(body)
    assert raised.value.status == 400
    assert JSON_DEPTH_MAX == 200


def test_how_deep_json_is_nested_is_seen_in_its_text() -> None:
    chance = random.Random(11)

    def text() -> str:
        return "".join(chance.choices('[]{}"\\a\n é', k=chance.randrange(6)))

    def value(levels: int) -> tuple[Any, int]:
        kind = chance.choice("sld") if levels else "s"
        if kind == "s":
            return text(), 0
        parts = [value(levels - 1) for _ in range(chance.randrange(4))]
        deepest = max((levels for _, levels in parts), default=0) + 1
        made = [part for part, _ in parts]
        return (made if kind == "l" else {f"{text()}{at}": part for at, part in enumerate(made)}), deepest

    for _ in range(3_000):
        made, levels = value(7)
        for ascii_only in (True, False):
            assert depth(json.dumps(made, ensure_ascii=ascii_only).encode()) == levels


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("body", [b"[" + b"[]," * 300 + b"[]]", b"[" + b"[]," * 300])
def test_the_collector_of_cycles_is_afterwards_what_it_was(enabled: bool, body: bytes) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with contextlib.suppress(HTTPError):
            json_decoder(Any)(body)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_many_arrays_are_decoded_in_less_time_than_msgspec_takes_with_the_collector() -> None:
    decoded, read = (min(seconds(way, 4_000) for _ in range(3)) for way in (msgspec.json.decode, json_decoder(Any)))
    assert read < decoded


def seconds(decode: Callable[[bytes], object], rows: int) -> float:
    """Of CPU, for rows of 190 arrays in one another."""
    body = b"[" + b",".join([b"[" * 190 + b"]" * 190] * rows) + b"]"
    gc.collect()
    before = time.process_time()
    decode(body)
    return time.process_time() - before


def test_to_see_how_deep_json_is_costs_much_less_than_to_decode_it() -> None:
    decoded, measured = (min(seconds(way, 4_000) for _ in range(3)) for way in (msgspec.json.decode, depth))
    assert measured < decoded / 2, "a walk through what was decoded takes as long as decoding it"


@pytest.mark.parametrize(
    ("annotation", "body", "place"),
    [
        (Node, b'{"price":"1","parts":[{"price":"1","parts":[]},{"price":"NaN","parts":[]}]}', "$.parts[1].price"),
        (Basket, b'{"prices":{"NaN":null}}', "$"),
        (Basket, b'{"prices":{"1":"1e4000"}}', "$.prices[...]"),
        (dict[str, Decimal], b'{"a":"1","b":"inf"}', "$[...]"),
        (list[Decimal], b'["1","1e-4001"]', "$[1]"),
        (Decimal, b"1e999999999", "$"),
        (Decimal, b'"0e4000"', "$"),
    ],
)
def test_a_decimal_that_nobody_computes_with_is_not_of_its_type(annotation: Any, body: bytes, place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="decimal") as raised:
        json_decoder(annotation)(body)
    assert str(raised.value).endswith(f" - at `{place}`")


@pytest.mark.parametrize("number", ["1e3999", "1e-4000", "0.10", "-0", "9" * 4_000])
def test_a_decimal_that_can_be_written_out_is_taken(number: str) -> None:
    assert json_decoder(Decimal)(f'"{number}"'.encode()) == Decimal(number)


# Logs


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


EVIL = "a\nERROR: forged\r\x1b[2J\x85\u2028\u202ez"


def with_note(error: Exception) -> Exception:
    getattr(error, "add_note", lambda note: None)(EVIL)
    return error


@pytest.mark.parametrize(
    "error",
    [
        raised(RuntimeError(EVIL)),
        raised(RuntimeError("x"), raised(ValueError(EVIL))),
        raised(with_note(RuntimeError(EVIL))),
        raised(SyntaxError(EVIL, ("file", 1, 1, "code"))),
        raised(KeyError(EVIL)),
    ],
)
def test_an_exception_writes_no_line_of_its_own(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    log_error(f"GET /{EVIL}", error)
    log_fault(f"GET /{EVIL}")
    written = capsys.readouterr().err
    assert sum(line.startswith("ERROR: ") for line in written.split("\n")) == 2
    assert not any(line.startswith("ERROR: forged") for line in written.split("\n"))
    assert written.split("\n") == [*written.rstrip("\n").splitlines(), ""]
    assert not set("\r\x1b\x85\u2028\u202e") & set(written)


def test_a_traceback_is_as_python_writes_it() -> None:
    error = raised(RuntimeError("one"), raised(ValueError("two")))
    assert format_error(error) == "".join(traceback.format_exception(error))
