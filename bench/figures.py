#!/usr/bin/env python3
"""Writes everything that is derived from `bench/results`: the tables of bench/README.md, five lines of README.md, the
plots.

bench/figures.py            write them
bench/figures.py --check    write nothing; name what disagrees with the results, and fail
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plots import Bar, Group, Plot
from report import number, times

OURS = "Parkade"
GROUPS = {
    "HTTP and waits": ["hola", "constant", "delayed", "parked_memory", "release", "rounds", "mixed_sync"],
    "Hosted applications": ["hosting", "bodies", "asgi_wait", "flask_poll", "websocket_echo", "streams"],
    "Perl": ["psgi", "psgi_frameworks", "echo_perl"],
    "Queries": ["select_one", "serial", "rows", "queued_memory", "shared", "cancel"],
    "Jobs": ["log", "lost", "jobs", "job_latency", "million"],
    "What other clients wait for meanwhile": ["delays"],
}
VERDICTS = {True: "yes", False: "**no**", None: "–"}


class Results:
    """The latest series of each scenario."""

    def __init__(self, folder: Path) -> None:
        self._series: dict[str, dict[str, Any]] = {
            path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))
        }

    def __getitem__(self, scenario: str) -> dict[str, Any]:
        return self._series[scenario]

    @property
    def scenarios(self) -> list[str]:
        return list(self._series)

    def samples(self, scenario: str, comparison: str, server: str, key: str) -> list[float]:
        return [sample[key] for sample in self[scenario]["comparisons"][comparison]["samples"][server]]

    def median(self, scenario: str, comparison: str, server: str, key: str) -> float:
        return statistics.median(self.samples(scenario, comparison, server, key))


# Ratios


@dataclass(frozen=True, slots=True)
class Pair:
    """Two servers that took turns."""

    work: str
    scenario: str
    comparison: str
    ours: str
    theirs: str
    key: str

    def ratio(self, results: Results) -> str:
        """The ratio of the medians, and the lowest and highest ratio of adjacent runs."""
        ours, theirs = (
            results.samples(self.scenario, self.comparison, server, self.key) for server in (self.ours, self.theirs)
        )
        each = [one / other for one, other in zip(ours, theirs, strict=True)]
        whole = statistics.median(ours) / statistics.median(theirs)
        return f"| {self.work} | {self.theirs} | {times(whole)} | {min(each):.2f}–{max(each):.2f} | {len(each)} |"


AXUM_SQL = "axum + deadpool + tokio-postgres"
PAIRS = [
    Pair("hello, `def`: rate", "hola", "hola", "Parkade def", "Granian RSGI", "per_second"),
    Pair("hello, `def`: CPU", "hola", "hola", "Parkade def", "Granian RSGI", "cpu_us"),
    Pair("hello, `async def`: rate", "hola", "hola", "Parkade async def", "Granian RSGI", "per_second"),
    Pair("a constant: rate", "constant", "constant", "Parkade", "axum", "per_second"),
    Pair("10,000 wait 2 s, handler: time", "delayed", "delayed 10000", "Parkade handler", "axum", "last_ms"),
    Pair("10,000 wait 2 s, handler: CPU", "delayed", "delayed 10000", "Parkade handler", "axum", "cpu_us"),
    Pair("one publish to 10,000: time", "release", "release 10000", "Parkade", "nginx + nchan, 2 workers", "last_ms"),
    Pair("one publish to 19,000: time", "release", "release 19000", "Parkade", "nginx + nchan, 2 workers", "last_ms"),
    Pair("`select 1`, route: rate", "select_one", "select_one", "Parkade route", "uvicorn + asyncpg", "per_second"),
    Pair("`select 1`, route: rate", "select_one", "select_one", "Parkade route", AXUM_SQL, "per_second"),
    Pair("`select 1`, `def`: rate", "select_one", "select_one", "Parkade def", AXUM_SQL, "per_second"),
    Pair("100,000 rows: rate", "rows", "rows", "Parkade", "Starlette + asyncpg + orjson", "rows_per_second"),
    Pair("`POST /log`, 10 clients: rate", "log", "log 10", "Parkade", "uvicorn + Starlette", "per_second"),
    Pair("`POST /log`, 200 clients: rate", "log", "log 200", "Parkade", "uvicorn + Starlette", "per_second"),
    Pair("jobs, SQLite: rate", "jobs", "jobs", "Parkade", "PgQueuer, 500 at a time", "per_second"),
    Pair("jobs, PostgreSQL: rate", "jobs", "jobs", "Parkade on PostgreSQL", "PgQueuer, 500 at a time", "per_second"),
]


# Text


def tables(results: Results) -> str:
    """For bench/README.md."""
    parts = []
    for title, names in GROUPS.items():
        # One that has never been measured has no rows yet.
        if not (scenarios := [name for name in names if name in results.scenarios]):
            continue
        lines = [
            f"### {title}",
            "",
            "| work | target | Parkade | compared with | ratio | met? |",
            "|---|---|---|---|---|---|",
        ]
        for scenario in scenarios:
            for row in results[scenario]["rows"]:
                cells = [row["work"], row["target"], row["parkade"], row["peer"], row["ratio"], VERDICTS[row["met"]]]
                lines.append(f"| {' | '.join(cells)} |")
        series = ", ".join(f"`{name}` {measured(results[name])}" for name in scenarios)
        parts.append("\n".join([*lines, "", *wrapped(f"Series: {series}.")]))
    spread = [
        "### Ratios and their spread",
        "",
        "| work | compared with | ratio | lowest–highest | runs |",
        "|---|---|---|---|---|",
    ]
    parts.append("\n".join([*spread, *[pair.ratio(results) for pair in PAIRS]]))
    return "\n\n".join(parts)


def measured(series: dict[str, Any]) -> str:
    """When the series began, and how many runs each server had: large measurements have fewer."""
    counts = {len(runs) for comparison in series["comparisons"].values() for runs in comparison["samples"].values()}
    fewest, most = min(counts), max(counts)
    runs = f"{most} {'run' if most == 1 else 'runs'}" if fewest == most else f"{fewest} to {most} runs"
    return f"{series['began'].replace('T', ' ')[:16]} ({runs})"


def wrapped(words: str, width: int = 100) -> Iterator[str]:
    line = ""
    for word in words.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def five_lines(results: Results) -> str:
    """For README.md."""

    def median(scenario: str, comparison: str, server: str, key: str) -> float:
        return results.median(scenario, comparison, server, key)

    hello, granian = (median("hola", "hola", name, "per_second") for name in ("Parkade def", "Granian RSGI"))
    waits = {
        name: median("delayed", "delayed 10000", name, "last_ms") / 1000
        for name in ("Parkade handler", "axum", "Twiggy")
    }
    parked = median("parked_memory", "parked on a channel 10000", "Parkade", "pss_bytes")
    peers = {
        name: median("parked_memory", "parked on a channel 10000, peers", name, "pss_bytes")
        for name in ("nginx + nchan", "uvicorn", "axum")
    }
    gone = median("cancel", "cancel gone", "Parkade", "p99_ms")
    jobs = {
        name: median("jobs", "jobs", name, "per_second")
        for name in ("Parkade", "Parkade on PostgreSQL", "PgQueuer, 500 at a time")
    }
    lines = [
        f"* Hello from one `def` worker: {number(hello)} requests/s; Granian (RSGI) {number(granian)}.",
        f"* 10,000 requests that each wait 2 s: all answered after {waits['Parkade handler']:.2f} s; "
        f"axum {waits['axum']:.2f} s, Twiggy {waits['Twiggy']:.2f} s.",
        f"* Memory for a parked request: {number(parked)} bytes; nchan {number(peers['nginx + nchan'])}, "
        f"uvicorn {number(peers['uvicorn'])}, axum {number(peers['axum'])}.",
        f"* The client leaves: its SQL statement ends within {number(gone)} ms (p99); "
        "with uvicorn + asyncpg it runs on.",
        f"* Durable jobs: {number(jobs['Parkade'])}/s on SQLite, "
        f"{number(jobs['Parkade on PostgreSQL'])}/s on PostgreSQL; "
        f"PgQueuer, 500 at a time, {number(jobs['PgQueuer, 500 at a time'])}.",
    ]
    return "\n".join(lines)


# Plots


def plots(results: Results) -> dict[str, Plot]:
    def bar(name: str, scenario: str, comparison: str, server: str, key: str) -> Bar:
        return Bar(name, results.samples(scenario, comparison, server, key), server.startswith(OURS))

    def memory(what: str, peers: list[str]) -> Group:
        ours = bar(OURS, "parked_memory", f"{what} 10000", OURS, "pss_bytes")
        theirs = [bar(name, "parked_memory", f"{what} 10000, peers", name, "pss_bytes") for name in peers]
        return Group(what, [ours, *theirs])

    delayed = {
        "Parkade, a route": "Parkade route",
        "Parkade, a handler": "Parkade handler",
        "axum": "axum",
        "Twiggy": "Twiggy",
    }
    hello = {"Parkade, def": "Parkade def", "Parkade, async def": "Parkade async def", "Granian, RSGI": "Granian RSGI"}
    return {
        "parked_memory": Plot(
            "Memory for each parked request",
            "bytes, logarithmic scale; 10,000 requests wait; less is better",
            " B",
            [
                memory("parked on a timer", ["Twiggy", "uvicorn", "axum"]),
                memory("parked on a channel", ["nginx + nchan", "uvicorn", "axum", "Tomcat async"]),
            ],
            is_logarithmic=True,
        ),
        "delayed_echo": Plot(
            "10,000 delayed echoes at once: how late is the last?",
            "milliseconds beyond the 2 s that each of them waits; less is better",
            " ms",
            [
                Group(
                    "last answer, minus 2 s",
                    [
                        Bar(
                            name,
                            [last - 2000 for last in results.samples("delayed", "delayed 10000", server, "last_ms")],
                            server.startswith(OURS),
                        )
                        for name, server in delayed.items()
                    ],
                )
            ],
        ),
        "release": Plot(
            "One message releases many long polls",
            "milliseconds from publishing to the last answer; less is better",
            " ms",
            [
                Group(
                    f"{count:,} clients",
                    [
                        bar(name, "release", f"release {count}", server, "last_ms")
                        for name, server in {OURS: OURS, "nginx + nchan": "nginx + nchan, 2 workers"}.items()
                    ],
                )
                for count in (10_000, 19_000)
            ],
        ),
        "hello": Plot(
            "Hello from one Python worker",
            "requests/s, 64 connections; more is better",
            "/s",
            [
                Group(
                    "/hola/{name}", [bar(name, "hola", "hola", server, "per_second") for name, server in hello.items()]
                )
            ],
        ),
    }


# Writing


def between(text: str, mark: str, content: str) -> str:
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"there is no {begin} … {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def printed(root: Path) -> dict[Path, str]:
    """Each file, and its correct contents."""
    bench = root / "bench"
    results = Results(bench / "results")
    if missing := set(results.scenarios) - {name for names in GROUPS.values() for name in names}:
        raise SystemExit(f"results that no table shows: {', '.join(sorted(missing))}")
    found = {
        root / "README.md": between((root / "README.md").read_text(), "figures", five_lines(results)),
        bench / "README.md": between((bench / "README.md").read_text(), "results", tables(results)),
    }
    return found | {bench / "plots" / f"{name}.svg": plot.svg() for name, plot in plots(results).items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if something disagrees")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="of the repository")
    options = parser.parse_args()
    stale = {
        path: text for path, text in printed(options.root).items() if not path.exists() or path.read_text() != text
    }
    for path, text in stale.items():
        if options.check:
            print(
                f"{path.relative_to(options.root)} disagrees with bench/results: run bench/figures.py", file=sys.stderr
            )
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
