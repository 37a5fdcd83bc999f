"""A private Redis: on a free loopback port, with its data in a given folder, ended after the block."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import catalogue
from postgres import quiet_port
from servers import Unavailable
from settings import PEERS

START_SECONDS = 10
KEPT = PEERS / "redis" / "target" / "usr"
"""Where install.sh unpacks it, if the system has none."""

# Each command is on disk before it is answered, as with the commits of PostgreSQL and Parkade.
DURABLE = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Its URL."""
    if not _program().exists():
        raise Unavailable("redis-server is not installed")
    port = quiet_port()
    place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as output:
        process = subprocess.Popen(
            [str(_program()), *place, *DURABLE], stdout=output, stderr=output, env=_environment()
        )
    try:
        _until_ready(process, port, folder / "redis.log")
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def version() -> str:
    """`redis 7.0.15`; empty if it is not installed."""
    try:
        done = subprocess.run([str(_program()), "--version"], capture_output=True, text=True, env=_environment())
    except OSError:
        return ""
    found = re.search(r"v=([\d.]+)", done.stdout)
    return f"redis {found[1]}" if found else ""


def _program() -> Path:
    unpacked = KEPT / "bin" / "redis-server"
    return unpacked if unpacked.exists() else catalogue.on_path("redis-server")


def _environment() -> dict[str, str]:
    """With the libraries that were unpacked next to it."""
    folders = [str(library.parent) for library in KEPT.glob("lib/*/libjemalloc.so.*")]
    return os.environ | ({"LD_LIBRARY_PATH": folders[0]} if folders else {})


def _until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise Unavailable(f"Redis does not start: {log.read_text(errors='replace')[-200:]}")
        time.sleep(0.02)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
