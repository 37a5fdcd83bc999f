#!/usr/bin/env python3
"""Draws docs/status.svg: what `parkade status` prints while the demo is busy. Needs Python 3.11 and `rich`.

    scripts/picture.py

It starts the demo on free ports, opens the clients itself, and prints the status that it has drawn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PARKADE = ROOT / ".venv" / "bin" / "parkade"
PICTURE = ROOT / "docs" / "status.svg"
ECHOES = 2_000
FOLLOWERS = 400
CARS = 12
SECONDS_MAX = 20.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def ask(port: int, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
    return reader, writer


async def status_of_a_busy_demo(port: int, admin: int) -> str:
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await ask(admin, "GET /health/ready")
                if b" 200 " in await reader.readline():
                    break
                writer.close()
            await asyncio.sleep(0.1)
    clients = [await ask(port, "GET /auction") for _ in range(FOLLOWERS)]
    clients.append(await ask(port, f"POST /wash?cars={CARS}"))
    await asyncio.sleep(0.5)
    clients += await asyncio.gather(*(ask(port, "GET /echo?word=hola") for _ in range(ECHOES)))
    await asyncio.sleep(0.8)
    words = [str(PARKADE), "status", "--once", "--admin", f"127.0.0.1:{admin}"]
    printed = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True)
    for _, writer in clients:
        writer.close()
    return printed.stdout


def drawn(text: str) -> str:
    """As in a terminal, but without the fonts that rich would download."""
    lines = [f"$ parkade status --once\n\n{text.rstrip()}"]
    width = max(len(line) for line in lines[0].splitlines()) + 1
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, highlight=False)
        console.print(Text(lines[0]))
    svg = console.export_svg(title="make demo", unique_id="status")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, admin = free_port(), free_port()
    with tempfile.TemporaryDirectory() as state:
        words = [
            *(str(PARKADE), "serve", str(ROOT / "examples" / "demo" / "app.py"), "--state", state),
            *("--bind", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"),
        ]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            text = asyncio.run(status_of_a_busy_demo(port, admin))
        finally:
            server.terminate()
            server.wait()
    PICTURE.write_text(drawn(text.replace(str(ROOT), ".")))
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
