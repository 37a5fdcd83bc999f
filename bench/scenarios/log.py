"""`POST /log` answers at once and writes a line afterwards: how many per second, and when is the last line written?"""

import time

import catalogue_jobs as catalogue
import wrk
from alternate import Comparison, Contender, Sample, in_turn
from behind import Maker, folder, post, size, until, until_quiet
from catalogue_jobs import log_file
from report import Outcome, Row, both, met, number, times
from servers import Unavailable, started
from settings import Settings

CLIENTS = [10, 200]
PER_SECOND_MIN = {200: 10_000}
LINE = "Doobie Doo: a line of some forty letters"
BEHIND_SECONDS_MAX = 60
MAKERS: list[Maker] = [catalogue.parkade_log, catalogue.threads, catalogue.uvicorn, catalogue.granian]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Log: Parkade's job is on the disk (`--durability power`) before its answer leaves; its peers keep theirs "
            "in memory. Behind: how long the last line comes after the last answer."
        ]
    )
    for clients in CLIENTS:
        contenders: dict[str, Contender] = {}
        for maker in MAKERS:
            with folder() as place:
                name = maker(place).name
            contenders[name] = lambda maker=maker, clients=clients: _logged(maker, clients, settings.seconds)  # type: ignore[misc]
        found = in_turn(settings, contenders)
        outcome.comparisons[f"log {clients}"] = found
        outcome.rows += _rows(found, clients, list(contenders))
    return outcome


def _logged(maker: Maker, clients: int, seconds: float) -> Sample:
    with folder() as place, started(maker(place)) as server:
        if (told := post(server, "/log", LINE)) != b"Doobie Doo":
            raise Unavailable(f"answers {told!r}")
        wrk.flood(server.url("/log"), 1, clients, LINE)
        file = log_file(place)
        until_quiet(file, 0.5, BEHIND_SECONDS_MAX)
        before = size(file)
        cpu = server.cpu_seconds()
        began = time.monotonic()
        found = wrk.flood(server.url("/log"), seconds, clients, LINE)
        wanted = before + found.requests * (len(LINE) + 1)
        ended = time.monotonic()
        behind = until("all lines are written", lambda: size(file) >= wanted, BEHIND_SECONDS_MAX) - ended
        cpu = server.cpu_seconds() - cpu
    return {
        "per_second": found.per_second,
        "done_per_second": found.requests / (ended + behind - began),
        "p99_ms": found.p99_ms,
        "behind_s": behind,
        "cpu_us": cpu / max(found.requests, 1) * 1e6,
        "failed": found.failed,
    }


def _rows(found: Comparison, clients: int, names: list[str]) -> list[Row]:
    ours, *peers = names
    at_least = PER_SECOND_MIN.get(clients)
    rate, failed = found.median(ours, "per_second"), found.worst(ours, "failed")
    rows = [
        Row(
            work=f"`POST /log`, {clients} clients",
            target="–" if at_least is None else f"≥ {at_least:,}/s",
            parkade=f"{number(rate, '/s')}, {number(failed)} failed, durable",
            peer=", ".join(f"{peer} {number(found.median(peer, 'per_second'), '/s')}" for peer in peers),
            ratio=times(found.ratio(ours, peers[0], "per_second")),
            met=None if at_least is None else both(met(rate, at_least=at_least), met(failed, at_most=0)),
        )
    ]
    for what, key, unit, digits in [("p99", "p99_ms", " ms", 1), ("behind", "behind_s", " s", 1)]:
        rows.append(
            Row(
                work=f"– {what}",
                target="–",
                parkade=number(found.median(ours, key), unit, digits),
                peer=", ".join(f"{peer} {number(found.median(peer, key), unit, digits)}" for peer in peers),
            )
        )
    return rows
