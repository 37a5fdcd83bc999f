"""Started by the core instead of a Python worker: it carries bytes between the link and the test, which plays the
worker.

`relay.py -m parkade TARGET`, as the core calls it; the environment variable `FAKE_WORKERS` names the Unix socket where
the test listens. Uses only the standard library, so that any interpreter will do.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from collections.abc import Callable


def main() -> None:
    """Until either end closes. Then the process ends, and with it both connections."""
    test = socket.socket(socket.AF_UNIX)
    test.connect(os.environ["FAKE_WORKERS"])
    test.sendall(f"{os.getpid()}\n".encode())
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ, test.sendall)
        selector.register(test, selectors.EVENT_READ, write_to_core)
        while True:
            for key, _ in selector.select():
                pass_on: Callable[[bytes], object] = key.data
                try:
                    data = os.read(key.fd, 65_536)
                    if not data:
                        return
                    pass_on(data)
                except ConnectionError:
                    return


def write_to_core(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
    sys.exit(0)
