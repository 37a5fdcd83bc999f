"""The payload of EARLY_HINTS and TRAILERS: header fields alone."""

from __future__ import annotations

from typing import Any

from .payloads import check_headers
from .values import Array


class Fields(Array, frozen=True):
    headers: list[Any]  # name, value, name, value…

    def __post_init__(self) -> None:
        check_headers(self.headers)
