"""`stream=True` and `body_limit=…` of a route: its handler reads bodies while they arrive."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import SignatureError

_SIZE = re.compile(r"([0-9]{1,18}) ?(kB|MB|GB|KiB|MiB|GiB)?")
_UNITS = {"kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LIMIT_MIN = 65_536  # shorter bodies come in one piece, with their requests
_LIMIT_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Streaming:
    """`limit`: the most bytes that a body may have; None for the server's `--stream-limit`."""

    limit: int | None = None


def streaming(told: str, stream: bool, body_limit: int | str | None) -> Streaming | None:
    """What the two options say, or None for a route that gets whole bodies. `told` names the route in errors.

    Raises `SignatureError` for a limit without a stream, and `ValueError` for what is no size.
    """
    if body_limit is not None and not stream:
        raise SignatureError(
            f"{told}: body_limit is for a route with stream=True; --body-limit is the limit of bodies that the server "
            "collects"
        )
    return Streaming(None if body_limit is None else _bytes_of(told, body_limit)) if stream else None


def _bytes_of(told: str, size: int | str) -> int:
    """As the server reads its settings: an int, or `65536`, `64KiB`, `16MiB`, `1GiB`, or the decimal `kB`, `MB`,
    `GB`.
    """
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    number = int(match[1]) * _UNITS.get(match[2] or "", 1) if match else size
    if not isinstance(number, int) or not _LIMIT_MIN <= number <= _LIMIT_MAX:
        raise ValueError(
            f"{told}: body_limit must be {_LIMIT_MIN} bytes or more, or a size such as '64KiB' or '2GB', not {size!r}"
        )
    return number
