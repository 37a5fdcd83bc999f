"""Mappings in which a name may have several values: headers, and the fields of a query or a form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

V = TypeVar("V")

HTTP_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, a method or a sub-protocol (RFC 9110, section 5.6.2)."""


class Fields(Mapping[str, V], Generic[V]):
    """Fields in the order they came. `fields[name]` is the first of a name, `getlist(name)` all of them."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, V]] = ()) -> None:
        self._values: dict[str, list[V]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> V:
        return self._values[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def getlist(self, name: str) -> list[V]:
        """Every value of a name; empty when there is none."""
        return list(self._values.get(name, ()))

    def items_all(self) -> list[tuple[str, V]]:
        """Every name with every value of it."""
        return [(name, value) for name, values in self._values.items() for value in values]

    def __repr__(self) -> str:
        return f"Fields({self.items_all()!r})"


class Headers(MutableMapping[str, str]):
    """Header fields; names in any case, shown in lower case. Setting replaces every value of a name, `add` keeps them.

    A value with CR, LF or NUL, or a name that is not a token, is refused with `ValueError`: it would end one header and
    begin another (RFC 9110, section 5.5).
    """

    __slots__ = ("_pairs",)

    def __init__(self, given: Mapping[str, str] | Iterable[tuple[str, str]] | None = None) -> None:
        self._pairs: list[tuple[str, str]] = []
        if not given:
            return
        pairs = given.items() if isinstance(given, (dict, Mapping)) else given
        for name, value in pairs:
            self.add(name, value)

    @classmethod
    def _of_request(cls, flat: list[Any]) -> Headers:
        """Headers as the protocol has them: name, value (bytes or text), name…; they were checked by the core.

        Values are read as Latin-1.
        """
        headers = cls()
        values = iter(flat)
        headers._pairs = [
            (name, value.decode("latin-1") if isinstance(value, bytes) else value)
            for name, value in zip(values, values, strict=True)
        ]
        return headers

    def _first(self, name: str) -> str:
        """The first value of a name in lower case, or empty: for what is read of every request."""
        for known, value in self._pairs:
            if known == name:
                return value
        return ""

    def add(self, name: str, value: str) -> None:
        """Adds a value, keeping those there are: for `Set-Cookie`, `Link` and the like."""
        name, value = _checked(str(name)), str(value)
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError(f"the value of the header {name} has a line break: {value!r}")
        self._pairs.append((name, value))

    def _copied(self) -> Headers:
        """Others with the same fields."""
        copy = Headers()
        copy._pairs = self._pairs.copy()
        return copy

    def getlist(self, name: str) -> list[str]:
        """Every value of a name; empty when there is none."""
        name = name.lower()
        return [value for known, value in self._pairs if known == name]

    def _flat(self) -> list[str]:
        """Name, value, name, value… as the protocol has them."""
        return [text for pair in self._pairs for text in pair]

    def pairs(self) -> list[tuple[str, str]]:
        """Every name with every value of it, in order."""
        return list(self._pairs)

    def __getitem__(self, name: str) -> str:
        name = name.lower()
        for known, value in self._pairs:
            if known == name:
                return value
        raise KeyError(name)

    def __setitem__(self, name: str, value: str) -> None:
        self._pairs = [pair for pair in self._pairs if pair[0] != name.lower()]
        self.add(name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        self._pairs = [pair for pair in self._pairs if pair[0] != name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._pairs))

    def __len__(self) -> int:
        return len({name for name, _ in self._pairs})

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(known == name.lower() for known, _ in self._pairs)

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"


@lru_cache(maxsize=1_024)
def _checked(name: str) -> str:
    """The name in lower case. There are few, and they come again and again."""
    name = name.lower()
    if not HTTP_TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a header")
    return name
