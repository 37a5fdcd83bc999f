"""100 MB to an application and 100 MB from one, one client at a time: how fast, and how much of them the core keeps."""

import socket
import time
from collections.abc import Callable
from functools import partial

import catalogue
import catalogue_hosting as hosted
import processes
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, met, number, times
from servers import Server, Unavailable
from settings import Settings

SIZE = 1_600 * 65_536
RATIO_MIN = 1.0
GROWTH_MB_MAX = 4.0
TIMES = 5
FLAGS = ["--stream-limit", "200MB"]

OURS = {
    "ASGI": (catalogue.parkade("hosted/bodies", label="ASGI", flags=FLAGS), ""),
    "async def": (catalogue.parkade("bodies", label="async def", flags=FLAGS), ""),
    "def": (catalogue.parkade("bodies", label="def", flags=FLAGS), "/def"),
}


def run(settings: Settings) -> Outcome:
    peer, outcome = hosted.uvicorn("bodies"), Outcome()
    prefixes = {recipe.name: prefix for recipe, prefix in OURS.values()}
    found = alternate(settings, [*(recipe for recipe, _ in OURS.values()), peer], partial(_measured, prefixes))
    outcome.comparisons["bodies"] = found
    for kind, (recipe, _) in OURS.items():
        for way in ("up", "down"):
            outcome.rows.append(_rate_row(found, f"100 MB {way}, {kind}", (recipe.name, peer.name), way))
        outcome.rows.append(_memory_row(found, recipe.name, peer.name))
    outcome.notes.append("Bodies: resident memory of the core for Parkade, of the only process for its peer.")
    return outcome


def _measured(prefixes: dict[str, str], server: Server) -> Sample:
    """Memory counts from after small ones of both kinds, and until after the last large one."""
    prefix = prefixes.get(server.recipe.name, "")
    _sent(server, f"{prefix}/up", 65_536)
    _sent(server, f"{prefix}/up", 1_000_000)
    idle = processes.memory(server.core).rss
    processes.forget_peak(server.core)
    up = _mb_per_second(lambda: _sent(server, f"{prefix}/up", SIZE))
    down = _mb_per_second(lambda: _taken(server, f"{prefix}/down"))
    return {"up": up, "down": down, "growth_mb": (processes.peak(server.core) - idle) / 1e6}


def _mb_per_second(transfer: Callable[[], None]) -> float:
    began = time.monotonic()
    for _ in range(TIMES):
        transfer()
    return TIMES * SIZE / (time.monotonic() - began) / 1e6


def _sent(server: Server, path: str, size: int) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    piece = memoryview(bytes(1 << 20))
    with socket.create_connection(("127.0.0.1", server.ports.main), timeout=60) as connection:
        connection.sendall(head.encode())
        for begin in range(0, size, len(piece)):
            connection.sendall(piece[: size - begin])
        answer = b"".join(iter(partial(connection.recv, 65_536), b""))
    if str(size).encode() not in answer.partition(b"\r\n\r\n")[2]:
        raise Unavailable(f"answers {answer[:80]!r} to {size:,} bytes")


def _taken(server: Server, path: str) -> None:
    """Heads and chunks are not parsed: the client must cost as little as possible."""
    count, buffer = 0, memoryview(bytearray(1 << 20))
    with socket.create_connection(("127.0.0.1", server.ports.main), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
        while received := connection.recv_into(buffer):
            count += received
    if count < SIZE:
        raise Unavailable(f"gave {count:,} bytes")


def _rate_row(found: Comparison, work: str, names: tuple[str, str], way: str) -> Row:
    ours, peer = names
    ratio = found.ratio(ours, peer, way)
    return Row(
        work=work,
        target=f"≥ {RATIO_MIN} × uvicorn",
        parkade=number(found.median(ours, way), " MB/s"),
        peer=f"uvicorn {number(found.median(peer, way), ' MB/s')}",
        ratio=times(ratio),
        met=met(ratio, at_least=RATIO_MIN),
    )


def _memory_row(found: Comparison, ours: str, peer: str) -> Row:
    growth = found.worst(ours, "growth_mb")
    return Row(
        work="– memory above idle at the peak",
        target=f"≤ {GROWTH_MB_MAX:g} MB",
        parkade=number(growth, " MB", 1),
        peer=f"uvicorn {number(found.median(peer, 'growth_mb'), ' MB', 1)}",
        met=met(growth, at_most=GROWTH_MB_MAX),
    )
