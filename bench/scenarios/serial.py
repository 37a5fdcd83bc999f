"""The article's own test: one statement after the other, first with the driver alone (like DBD::Pg), then over HTTP."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import catalogue_postgres as catalogue
import load
import postgres
from alternate import Comparison, Contender, Sample, in_turn
from catalogue import PARKADE
from postgres import Cluster
from report import Outcome, Row, met, number, times
from servers import Unavailable, started
from settings import PEERS, Settings

DRIVER = f"{PARKADE}'s driver"
HTTP = f"{PARKADE} over HTTP"
PEER = "DBD::Pg"


@dataclass(frozen=True, slots=True)
class Case:
    work: str
    sql: str
    path: str
    count: int
    ratio_min: float


CASES = [
    Case("`select 1`", "select 1", "/one", 20_000, 0.9),
    Case("50 ms", "select 1 from pg_sleep(0.05)", "/50ms", 40, 0.99),
    Case("200 ms", "select 1 from pg_sleep(0.2)", "/200ms", 10, 0.99),
]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Serial: the ratio is that of statements for each second; over HTTP, one client that keeps its connection."
        ]
    )
    with postgres.running() as cluster:
        for case in CASES:
            found = in_turn(settings, _contenders(cluster, case))
            outcome.comparisons[f"serial {case.work}"] = found
            outcome.rows += [_driver_row(found, case), _http_row(found)]
    return outcome


def _contenders(cluster: Cluster, case: Case) -> dict[str, Contender]:
    perl = ["perl", str(PEERS / "serial.pl"), cluster.dsn, case.sql, str(case.count)]
    ours = [str(catalogue.serial_driver()), cluster.url, case.sql, str(case.count)]
    return {
        DRIVER: lambda: _printed(ours, catalogue.serial_driver()),
        PEER: lambda: _printed(perl, catalogue.perl_driver()),
        HTTP: lambda: _over_http(cluster, case),
    }


def _printed(command: list[str], needed: Path) -> Sample:
    if not needed.exists():
        raise Unavailable(f"{needed.name} is not installed or built")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"failed: {done.stderr.strip()[-200:]}")
    found = json.loads(done.stdout)
    return _sample(found["seconds"], found["count"])


def _over_http(cluster: Cluster, case: Case) -> Sample:
    with started(catalogue.parkade(cluster)) as server:
        load.serial(server, case.path, 3)
        found = load.serial(server, case.path, case.count)
        if found["failed"]:
            raise Unavailable(f"{found['failed']} of {case.count} requests failed: {found['failures']}")
        return _sample(found["last_ms"] / 1000, case.count)


def _sample(seconds: float, count: int) -> Sample:
    return {"each_us": seconds / count * 1e6, "per_second": count / seconds}


def _driver_row(found: Comparison, case: Case) -> Row:
    ratio = found.ratio(DRIVER, PEER, "per_second")
    return Row(
        work=f"{case.work}, one after the other, straight from the driver",
        target=f"≥ {case.ratio_min} × {PEER}",
        parkade=_each(found, DRIVER),
        peer=f"{PEER} {_each(found, PEER)}",
        ratio=times(ratio),
        met=met(ratio, at_least=case.ratio_min),
    )


def _http_row(found: Comparison) -> Row:
    way = None
    if (http := found.median(HTTP, "each_us")) is not None and (driver := found.median(DRIVER, "each_us")) is not None:
        way = http - driver
    return Row(
        work="– over HTTP",
        target="–",
        parkade=f"{_each(found, HTTP)}, the way {number(way, ' µs')}",
        peer=f"{PEER} {_each(found, PEER)}",
        ratio=times(found.ratio(HTTP, PEER, "per_second")),
    )


def _each(found: Comparison, name: str) -> str:
    return number(found.median(name, "each_us"), " µs each")
