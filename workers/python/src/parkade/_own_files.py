"""Tells `parkade dev` which files the application opens for writing, so that these do not make it load anew."""

from __future__ import annotations

import contextlib
import os
import socket
import sys

ADDRESS = "PARKADE_DEV_FILES"
"""The environment variable with the path of the datagram socket; programs that the application starts do not get it."""

PATIENCE = 0.1
"""Seconds to wait for a core that does not listen: the application goes on, and may be loaded anew."""

WRITING = os.O_WRONLY | os.O_RDWR


def tell_own_files() -> None:
    """Tells from now on, if anybody wants to know."""
    address = os.environ.pop(ADDRESS, None)
    if address is None:
        return
    teller = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    teller.settimeout(PATIENCE)
    try:
        teller.connect(address)
    except OSError:
        return
    told: set[bytes] = set()

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        path = _written(event, arguments)
        if path is None or path in told:
            return
        told.add(path)
        # Before the file is opened: the core hears of the file first, and of its change later.
        with contextlib.suppress(OSError):
            teller.send(path)

    sys.addaudithook(hear)


def _written(event: str, arguments: tuple[object, ...]) -> bytes | None:
    """The file that is about to be written, created or replaced."""
    if event == "open":
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & WRITING:
            return None
    elif event == "os.rename":
        path = arguments[1]
    else:
        return None
    if not isinstance(path, str | bytes):
        return None  # a descriptor
    try:
        return os.fsencode(os.path.abspath(path))
    except (OSError, ValueError):
        return None
