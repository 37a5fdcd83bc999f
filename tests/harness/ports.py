"""Ports that a test may name before something listens to them."""

from __future__ import annotations

import os
import socket
from itertools import count

FIRST, EACH = 20_000, 1_500
"""The first port of the first test process, and how many ports each test process has.

They lie below the ports that the system gives away itself (from 32,768 on). Anybody could take
one of those between the moment a test chooses it and the moment the server binds it.
"""

_turns = count(os.getpid() * 7)  # two runs of the tests at once begin at different places


def free_port() -> int:
    """A port that nobody listens to, and that no other test process chooses."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    for turn in _turns:
        port = FIRST + process * EACH + turn % EACH
        if _is_free(port):
            return port
    raise AssertionError("the count never ends")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
