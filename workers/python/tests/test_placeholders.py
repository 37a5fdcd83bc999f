"""Values for placeholders: what each becomes on the link, and which are refused where `query` is called."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID

import pytest

from parkade import HTTPError, Json, query


class Colour(Enum):
    RED = "red"


class Weight(IntEnum):
    HEAVY = 3


class Name(str):
    pass


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (-(2**63), -(2**63)),
        (2**63, "9223372036854775808"),
        (0.1, 0.1),
        ("ü", "ü"),
        (Name("n"), "n"),
        (b"\x00", b"\x00"),
        (bytearray(b"a"), b"a"),
        (memoryview(b"a"), b"a"),
        (datetime(2026, 11, 22, 3, 4, 5), "2026-11-22T03:04:05"),
        (datetime(2026, 11, 22, 3, 4, 5, 6, timezone.utc), "2026-11-22T03:04:05.000006+00:00"),
        (date(2026, 11, 22), "2026-11-22"),
        (time(3, 4, 5), "03:04:05"),
        (timedelta(days=1, seconds=2, microseconds=3), "P1DT2.000003S"),
        (timedelta(seconds=-1), "P-1DT86399.000000S"),
        (Decimal("1.10"), "1.10"),
        (Decimal("NaN"), "NaN"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Weight.HEAVY, 3),
        ([1, None, [Decimal(2), Colour.RED]], [1, None, ["2", "red"]]),
        ((), []),
        ({"a": [1, date(2026, 1, 2)]}, {"json": '{"a":[1,"2026-01-02"]}'}),
        (Json([1, "ü"]), {"json": '[1,"ü"]'}),
        (Json(None), {"json": "null"}),
    ],
)
def test_a_value_goes_as_what_databases_read(value: object, sent: object) -> None:
    (parameter,) = query("select $1", value)._wait.parameters
    assert (parameter, type(parameter) in (type(sent), Name)) == (sent, True)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ((1, {1, 2}), TypeError, r"\$2 is of the type set: .* list\(value\)"),
        ((object(),), TypeError, r"\$1 is of the type object"),
        (([1, object()],), TypeError, r"\$1 is of the type object"),
        (({"a": object()},), TypeError, r"\$1 object is not JSON-able"),
        (("a\0b",), ValueError, r"\$1 contains a NUL"),
        ((1, ["a\0b"]), ValueError, r"\$2 contains a NUL"),
        ((nested(7),), ValueError, r"\$1 has more than 6 nested arrays"),
        ((0,) * 65_536, ValueError, "at most 65535 parameters"),
    ],
)
def test_a_value_that_no_database_takes_is_refused_at_once(
    values: tuple[object, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        query("select", *values)


def test_arrays_may_stand_in_six_arrays() -> None:
    assert query("select $1", nested(6))._wait.parameters == [nested(6)]


def test_text_with_a_nul_is_the_clients_fault() -> None:
    with pytest.raises(HTTPError) as caught:
        query("select $1", "a\0b")
    assert caught.value.status == 400


def test_a_document_does_not_show_what_it_holds() -> None:
    assert repr(Json({"secret": 1})) == "<Json of 12 characters>"
