"""What the database itself shows at the end: cancelled statements, backends that are left, rows that are stored."""

import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ledger import Ledger
from postgres import Cluster

REST_SECONDS_MAX = 2.0
"""After the last client has left, no backend may work, or hold a transaction, for longer."""

SETTINGS: dict[str, object] = {
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": 200,
    # The log is read here: the statement of each error, with its parameters, and its user.
    "log_min_error_statement": "error",
    "log_parameter_max_length_on_error": 64,
    "log_line_prefix": "%n [%p] ",
    "lc_messages": "C",
}

TABLES = "create table written (n bigint); create table paired (n bigint)"

LINE = re.compile(r"(\d+\.\d+) \[(\d+)\] (\w+):  (.*)")
CANCELLED = "canceling statement due to user request"
NUMBER = re.compile(r"/\* pk:(\d+) \*/")
CLOCK_SECONDS = 0.002
"""The log has milliseconds, and the clock is read a moment before a client has really left."""

PREPARED = "$1"
PARAMETER = re.compile(r"with parameters: \$1 = '(\d+)'")

BACKENDS = r"""
    select pid, state, left(regexp_replace(query, '\s+', ' ', 'g'), 100) from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()
"""


@dataclass(slots=True)
class Verdicts:
    """The outcome of the cancels that hit a statement."""

    right: int = 0
    unknown: int = 0
    """BEGIN, which has no number, or a statement whose parameters had not arrived: rare, because cancels wait."""
    strays: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Hit:
    """A statement that was ended by a cancel; the log has its context and its text in separate lines."""

    moment: float
    context: str = ""


def cancelled(log: Path, ledger: Ledger) -> Verdicts:
    verdicts = Verdicts()
    hits: dict[str, Hit] = {}
    """By process, until the text follows."""
    with log.open(errors="replace") as lines:
        for line in lines:
            if not (found := LINE.match(line)):
                continue
            moment, process, kind, text = found.groups()
            match kind:
                case "ERROR" if text == CANCELLED:
                    hits[process] = Hit(float(moment))
                case "CONTEXT" if process in hits:
                    hits[process].context = text
                case "STATEMENT" if process in hits:
                    _judge(verdicts, ledger, hits.pop(process), text)
    verdicts.strays += [f"process {process}, without a statement" for process in hits]
    return verdicts


def _judge(verdicts: Verdicts, ledger: Ledger, hit: Hit, statement: str) -> None:
    found = NUMBER.search(statement) or PARAMETER.search(hit.context)
    since = ledger.given_up.get(int(found[1])) if found else None
    if since is not None and hit.moment >= since - CLOCK_SECONDS:
        verdicts.right += 1
    elif statement.upper().startswith("BEGIN") or (PREPARED in statement and not found):
        verdicts.unknown += 1
    else:
        when = "" if since is None else f", {(since - hit.moment) * 1000:.0f} ms before its client left"
        verdicts.strays.append(f"{statement} {hit.context}".strip() + when)


def errors(log: Path) -> Counter[str]:
    """How often the server logged each complaint."""
    with log.open(errors="replace") as lines:
        found = (LINE.match(line) for line in lines)
        return Counter(one[4] for one in found if one and one[3] in ("ERROR", "FATAL", "PANIC"))


def check_rest(cluster: Cluster, ledger: Ledger) -> None:
    """All clients have left: no backend works or holds a transaction."""
    end = time.monotonic() + REST_SECONDS_MAX
    while busy := [row for row in cluster.ask(BACKENDS) if row[1] != "idle"]:
        if time.monotonic() > end:
            ledger.violated(f"{len(busy)} backends are not idle {REST_SECONDS_MAX} s after the last client: {busy[:5]}")
            return
        time.sleep(0.05)


def check_kept(cluster: Cluster, ledger: Ledger) -> None:
    """Everything that was acknowledged is stored exactly once; of each pair of rows there are two or none."""
    written = Counter(int(row[0]) for row in cluster.ask("select n from written"))
    if lost := ledger.written - written.keys():
        ledger.violated(f"{len(lost)} acknowledged writes are lost: {sorted(lost)[:5]}")
    if twice := [number for number, count in written.items() if count > 1]:
        ledger.violated(f"{len(twice)} writes were made twice: {twice[:5]}")
    paired = Counter(int(row[0]) for row in cluster.ask("select n from paired"))
    if lost := ledger.paired - paired.keys():
        ledger.violated(f"{len(lost)} acknowledged transactions are lost: {sorted(lost)[:5]}")
    if torn := [number for number, count in paired.items() if count != 2]:
        ledger.violated(f"{len(torn)} transactions are torn: {torn[:5]}")


def backends(cluster: Cluster) -> set[int]:
    return {int(row[0]) for row in cluster.ask(BACKENDS)}
