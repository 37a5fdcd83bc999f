"""A wall clock that the test sets: for one server and its workers alone, while their monotonic clock goes on."""

from __future__ import annotations

from pathlib import Path

PLACES = ("lib/*/faketime", "lib/faketime", "lib64/faketime", "local/lib/faketime")


def libfaketime() -> Path | None:
    """The library that does it, if it is installed."""
    found = (path for place in PLACES for path in Path("/usr").glob(f"{place}/libfaketime.so.1"))
    return next(found, None)


class WallClock:
    """`environment` is for the server."""

    def __init__(self, folder: Path) -> None:
        self._offset = folder / "offset"
        self.jump("+0")
        self.environment = {
            "LD_PRELOAD": str(libfaketime()),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, offset: str) -> None:
        """It is so many seconds before or behind the true time from now on: `+3600`."""
        whole = self._offset.with_suffix(".new")
        whole.write_text(offset)
        whole.rename(self._offset)
