"""100,000 rows of ten columns to one client: how many per second, and how much of them the core keeps."""

import json
import socket
import time

import catalogue_postgres as catalogue
import postgres
import processes
from alternate import Sample, alternate
from report import Outcome, Row, met, number, times
from servers import Server, Unavailable
from settings import Settings

ROWS = 100_000
COLUMNS = 10
RATIO_MIN = 5.0
GROWTH_MB_MAX = 8.0

TABLE = f"""
    create table wide as
    select n as id, n * 1000003::bigint as number, 'Customer ' || n as name,
           'customer' || n || '@example.com' as email, n / 7.0::float8 as amount, n % 3 = 0 as is_paid,
           timestamptz '2026-01-01' + n * interval '1 minute' as created, date '2026-01-01' + n % 365 as due,
           n % 100 as quantity, md5(n::text) as reference
    from generate_series(1, {ROWS}) n;
    analyze wide
"""


def run(settings: Settings) -> Outcome:
    with postgres.running() as cluster:
        cluster.ask(TABLE)
        ours, peer = catalogue.parkade(cluster), catalogue.starlette(cluster)
        found = alternate(settings, [ours, peer], streamed)
    ratio, growth = found.ratio(ours.name, peer.name, "rows_per_second"), found.worst(ours.name, "growth_mb")
    rows = [
        Row(
            work=f"{ROWS:,} rows × {COLUMNS} columns to one client",
            target=f"≥ {RATIO_MIN:g} × {peer.name}",
            parkade=number(found.median(ours.name, "rows_per_second"), " rows/s"),
            peer=f"{peer.name} {number(found.median(peer.name, 'rows_per_second'), ' rows/s')}",
            ratio=times(ratio),
            met=met(ratio, at_least=RATIO_MIN),
        ),
        Row(
            work="– memory above idle at the peak",
            target=f"≤ {GROWTH_MB_MAX:g} MB",
            parkade=number(growth, " MB", 1),
            peer=f"{peer.name} {number(found.median(peer.name, 'growth_mb'), ' MB', 1)}",
            met=met(growth, at_most=GROWTH_MB_MAX),
        ),
    ]
    return Outcome(
        rows, {"rows": found}, ["Rows: resident memory of the core for Parkade, of the only process for its peer."]
    )


def streamed(server: Server) -> Sample:
    """Memory counts from before the first row; the time is that of a second download, when statements are prepared."""
    taken(server, "/constant")
    idle = processes.memory(server.core).rss
    processes.forget_peak(server.core)
    _check(taken(server, "/rows"))
    began = time.monotonic()
    size = len(taken(server, "/rows"))
    seconds = time.monotonic() - began
    return {
        "rows_per_second": ROWS / seconds,
        "mb_per_second": size / seconds / 1e6,
        "growth_mb": (processes.peak(server.core) - idle) / 1e6,
    }


def taken(server: Server, path: str) -> bytearray:
    """The complete response, head and chunks unparsed: the client must cost as little as possible."""
    answer, buffer = bytearray(), memoryview(bytearray(1 << 20))
    with socket.create_connection(("127.0.0.1", server.ports.main), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
        while count := connection.recv_into(buffer):
            answer += buffer[:count]
    return answer


def _check(answer: bytearray) -> None:
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    if b"\r\ntransfer-encoding: chunked" in head.lower():
        body = _unchunked(body)
    found = json.loads(body)
    if len(found) != ROWS or len(found[0]) != COLUMNS:
        raise Unavailable(f"gave {len(found)} rows")


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        line = body.index(b"\r\n", at)
        size = int(body[at:line], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(body[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
