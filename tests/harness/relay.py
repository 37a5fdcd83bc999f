"""What the core starts in the place of a Python worker: it carries bytes between the link and the test, which plays it.

`relay.py -m parkade TARGET`, as the core calls it; the environment variable `FAKE_WORKERS` names the Unix socket where
the test listens. Only the standard library, so that any interpreter will do.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys


def main() -> None:
    """Until either end closes. Then the process ends, and with it both connections."""
    link = socket.socket(fileno=os.dup(0))
    test = socket.socket(socket.AF_UNIX)
    test.connect(os.environ["FAKE_WORKERS"])
    test.sendall(f"{os.getpid()}\n".encode())
    to = {link: test, test: link}
    with selectors.DefaultSelector() as selector:
        for end in to:
            selector.register(end, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                try:
                    data = key.fileobj.recv(65_536)
                    if not data:
                        return
                    to[key.fileobj].sendall(data)
                except ConnectionError:
                    return


if __name__ == "__main__":
    main()
    sys.exit(0)
