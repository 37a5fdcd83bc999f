"""Which decimal numbers are taken from a client.

`Decimal` takes more than anybody computes with: `sNaN`, which raises when it is compared, and `1E+999999999`, of which
`int(x)` and `f"{x:f}"` make a gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import msgspec

from .._limits import DIGITS_MAX
from .records import LEAVES, named_parts_of, parts_of


def is_reasonable(value: Decimal) -> bool:
    """Whether it is finite and, written out, has at most `DIGITS_MAX` digits before and after its point."""
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, int) and -DIGITS_MAX <= exponent <= DIGITS_MAX - len(digits)


def check_decimals(value: object) -> None:
    """Raises `msgspec.ValidationError`, as msgspec words it, when one in a decoded value is not reasonable."""
    whole, rest = value, [value]
    while rest:
        value = rest.pop()
        if type(value) is Decimal:
            if not is_reasonable(value):
                raise msgspec.ValidationError(f"{_EXPECTED} - at `{_place(whole)}`")
        else:
            rest.extend(part for part in parts_of(value) if type(part) not in LEAVES)
            if type(value) is dict:
                rest.extend(key for key in value if type(key) is Decimal)


def _place(value: object) -> str:
    """The place of the first one that is not reasonable, as msgspec writes it. Only needed to refuse a value."""
    names: list[object] = []
    branches: list[Iterator[tuple[object, object]]] = [iter([(None, value)])]
    while branches:
        for name, part in branches[-1]:
            if type(part) is Decimal and not is_reasonable(part):
                names.append(name)
                return "$" + "".join(name if isinstance(name, str) else f"[{name}]" for name in names[1:])
            if type(part) not in LEAVES:
                names.append(name)
                branches.append(named_parts_of(part))
                break
        else:
            branches.pop()
            names[-1:] = []
    return "$"  # it is a key


_EXPECTED = f"Expected a finite decimal number, with at most {DIGITS_MAX} digits before and after its point"
