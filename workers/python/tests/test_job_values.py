"""What a job may give back."""

from __future__ import annotations

import functools

import pytest

from parkade._responses.response import InvalidResult
from parkade.jobs._values import decode_result, encode_result


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({(1, 2): 3}, r"\(1, 2\) cannot be a key"),
        ([{"a": {None: 1, (): 2}}], r"\(\) cannot be a key"),
        (functools.reduce(lambda inner, _: [inner], range(100_000), 1), "recursion"),
        (2**64, "MessagePack"),
        ("\ud800", "MessagePack"),
        (object(), "object that cannot be encoded"),
    ],
)
def test_a_result_that_no_client_could_be_told_is_refused(value: object, told: str) -> None:
    with pytest.raises(InvalidResult, match=told):
        encode_result(value)


def test_a_result_with_keys_that_are_written_as_text_is_kept_as_it_is() -> None:
    value = {None: 1, True: 2, 1.5: 3, 7: 4, "a": [{None: 5}]}
    assert decode_result(encode_result(value)) == value
