"""Compares two builds of Parkade in one series: `python bench/versus.py OLD NEW [--only hola,release] [--runs 5]`.

OLD and NEW are binaries with their own Python package next to them, as `make setup` leaves them in `.venv/bin/parkade`
of a checkout. Applications, load generator and scenarios are those of this checkout for both. The builds take turns
(old new, new old, …), so that changes of the machine affect both alike.
"""

import argparse
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

SCENARIOS = ["hola", "delayed", "release", "select_one", "log", "jobs"]
BUILDS = ["old", "new"]
HIGHER_IS_BETTER = {"per_second", "enqueued_per_second", "done_per_second"}
NOT_A_SPEED = {"failed", "requests"}

Key = tuple[str, str, str]  # the comparison, the server, the figure
Samples = dict[Key, dict[str, list[float]]]


def main() -> int:
    options = _options()
    binaries = {"old": options.old.absolute(), "new": options.new.absolute()}
    for binary in binaries.values():
        if not binary.exists():
            print(f"There is no Parkade at {binary}.", file=sys.stderr)
            return 2
    os.environ["PARKADE_BIN"] = str(binaries["new"])  # before the import: recipes look for their files

    from run import raise_descriptor_limit
    from scenarios import ALL
    from settings import Settings

    raise_descriptor_limit()
    settings = Settings(runs=1, seconds=options.seconds, ours_only=True)
    for scenario in options.only.split(","):
        samples: Samples = defaultdict(lambda: defaultdict(list))
        for run in range(options.runs):
            for build in BUILDS if run % 2 == 0 else BUILDS[::-1]:
                print(f"{scenario}, {build}, run {run + 1}", file=sys.stderr)
                os.environ["PARKADE_BIN"] = str(binaries[build])
                for name, comparison in ALL[scenario](settings).comparisons.items():
                    for server, found in comparison.samples.items():
                        for figure, value in found[0].items():
                            samples[name, server, figure][build].append(value)
        _print(samples)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares two builds of Parkade.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"scenarios of run.py ({','.join(SCENARIOS)})")
    parser.add_argument("--runs", type=int, default=5, help="how often each build is measured (5)")
    parser.add_argument("--seconds", type=float, default=5, help="how long a run of constant load lasts (5)")
    return parser.parse_args()


def _print(samples: Samples) -> None:
    """A row for each figure: both medians, and the median of the ratios of adjacent runs."""
    for (name, server, figure), found in samples.items():
        old, new = found["old"], found["new"]
        if figure in NOT_A_SPEED or not old or not new:
            continue
        ratios = [n / o for o, n in zip(old, new, strict=True) if o]
        if not ratios:
            continue
        better = "higher" if figure in HIGHER_IS_BETTER else "lower"
        print(
            f"{name:<16} {server:<24} {figure:<20} old {statistics.median(old):>12,.4g}"
            f"  new {statistics.median(new):>12,.4g}  new/old {statistics.median(ratios):.3f}"
            f" ({min(ratios):.3f} to {max(ratios):.3f}; {better} is better)",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
