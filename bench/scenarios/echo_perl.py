"""The article's delayed echo in Perl: its program for Twiggy unchanged, with AnyEvent, and in plain code that waits."""

import catalogue_perl as perl
import load
import processes
from alternate import Comparison, Sample, alternate
from report import Outcome, Row, both, cpu_row, met, number, times
from scenarios.delayed import fired
from scenarios.parked_memory import slope
from servers import Server, Unavailable, fetch
from settings import BENCH, Settings

PATH = "/?field=hello"
SAID = "You said: hello"
COUNTS = (200, 10_000)
WARM_UP_CONNECTIONS = 500

NATIVE_LAST_MS_MAX = {200: 2_020, 10_000: 2_150}
NATIVE_BYTES_MAX = 400

UNCHANGED = perl.parkade("AnyEvent", app=perl.TWIGGY)
NATIVE = perl.parkade("native Perl", app=BENCH / "apps" / "perl" / "echo.pl")
TWIGGY = perl.twiggy()


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Echo in Perl: with AnyEvent, memory is the peak of all processes (RSS) above idle; in native Perl, it is"
            " the core's (PSS) while all of them wait for a minute."
        ]
    )
    for count in COUNTS:

        def measure(server: Server, count: int = count) -> Sample:
            return echoed(server, count)

        found = alternate(settings, [UNCHANGED, TWIGGY, NATIVE], measure)
        outcome.comparisons[f"echo {count}"] = found
        outcome.rows.append(_last_row(found, count))
        if count >= 10_000:  # 200 requests use less CPU time, and less memory, than can be measured
            outcome.rows += [cpu_row(found, UNCHANGED.name, TWIGGY.name), _memory_row(found)]
        outcome.rows.append(_native_row(found, count))

    held = alternate(settings, [NATIVE], lambda server: slope(server, "/later?field=hello", COUNTS[-1], "parked"))
    outcome.comparisons[f"echo held {COUNTS[-1]}"] = held
    outcome.rows.append(_native_memory_row(held))
    return outcome


def echoed(server: Server, count: int) -> Sample:
    if SAID not in (text := fetch(server.url(PATH))):
        raise Unavailable(f"answers {text!r}")
    load.fire(server, PATH, WARM_UP_CONNECTIONS)
    before = processes.memory(server.tree).rss
    processes.forget_peak(server.tree)
    sample = fired(server, PATH, count)
    return sample | {"peak_bytes": (processes.peak(server.tree) - before) / count}


def _last_row(found: Comparison, count: int) -> Row:
    ratio, failed = found.ratio(UNCHANGED.name, TWIGGY.name, "last_ms"), found.worst(UNCHANGED.name, "failed")
    return Row(
        work=f"the article's echo with AnyEvent, {count:,} clients: last answer",
        target=f"≤ {TWIGGY.name}, none fails",
        parkade=f"{_seconds(found, UNCHANGED.name)}, {number(failed)} failed",
        peer=f"{TWIGGY.name} {_seconds(found, TWIGGY.name)}",
        ratio=times(ratio),
        met=both(met(ratio, at_most=1), met(failed, at_most=0)),
    )


def _memory_row(found: Comparison) -> Row:
    ratio = found.ratio(UNCHANGED.name, TWIGGY.name, "peak_bytes")
    return Row(
        work="– memory for each client, core and worker",
        target=f"< {TWIGGY.name}",
        parkade=number(found.median(UNCHANGED.name, "peak_bytes")),
        peer=f"{TWIGGY.name} {number(found.median(TWIGGY.name, 'peak_bytes'))}",
        ratio=times(ratio),
        met=None if ratio is None else ratio < 1,
    )


def _native_row(found: Comparison, count: int) -> Row:
    limit_ms = NATIVE_LAST_MS_MAX[count]
    last, failed = found.median(NATIVE.name, "last_ms"), found.worst(NATIVE.name, "failed")
    return Row(
        work=f"the same in native Perl, {count:,} clients: last answer",
        target=f"≤ {limit_ms / 1000} s, none fails",
        parkade=f"{_seconds(found, NATIVE.name)}, {number(failed)} failed",
        peer=f"{TWIGGY.name} {_seconds(found, TWIGGY.name)}",
        ratio=times(found.ratio(NATIVE.name, TWIGGY.name, "last_ms")),
        met=both(met(last, at_most=limit_ms), met(failed, at_most=0)),
    )


def _native_memory_row(held: Comparison) -> Row:
    bytes_each = held.median(NATIVE.name, "pss_bytes")
    return Row(
        work=f"– memory for each of {COUNTS[-1]:,}",
        target=f"≤ {NATIVE_BYTES_MAX} bytes",
        parkade=number(bytes_each),
        peer="–",
        met=met(bytes_each, at_most=NATIVE_BYTES_MAX),
    )


def _seconds(found: Comparison, name: str) -> str:
    last = found.median(name, "last_ms")
    return number(None if last is None else last / 1000, " s", 3)
