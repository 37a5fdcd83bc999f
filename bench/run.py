"""Runs the benchmarks: `python bench/run.py [--only hola,constant] [--runs 3]`."""

import argparse
import resource
import sys
from datetime import datetime

import catalogue
import catalogue_jobs
import catalogue_perl
import catalogue_postgres
import report
from scenarios import ALL
from settings import LOAD, Settings, parkade_binary


def main() -> int:
    options = _options()
    settings = Settings(options.runs, options.seconds, options.peers_only)
    if reason := _hindrance(settings):
        print(reason, file=sys.stderr)
        return 2
    raise_descriptor_limit()
    began = datetime.now()
    outcomes: dict[str, report.Outcome] = {}
    for name in options.only:
        print(name, file=sys.stderr)
        outcomes[name] = ALL[name](settings)
    others = (catalogue_postgres, catalogue_jobs, catalogue_perl)
    versions = catalogue.versions()
    for more in others:
        versions |= more.versions()
    print(report.table(outcomes))
    print("".join(f"\n- {remark}" for remark in report.remarks(outcomes)))
    if reason := report.why_not_kept(settings):
        print(f"\nnot kept: {reason}", file=sys.stderr)
        return 0
    written = report.write(outcomes, settings, versions, began)
    print("\nwritten: " + ", ".join(f"bench/results/{path.name}" for path in written), file=sys.stderr)
    print("Now run bench/figures.py: it brings the figures and plots of both READMEs up to date.", file=sys.stderr)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures Parkade and its peers.")
    parser.add_argument("--only", type=_scenarios, default=list(ALL), help=f"some of: {','.join(ALL)}")
    parser.add_argument("--runs", type=int, default=5, help="how often each server is measured (5)")
    parser.add_argument("--seconds", type=float, default=5, help="how long a run of constant load lasts (5)")
    parser.add_argument("--peers-only", action="store_true", help="leave Parkade out")
    return parser.parse_args()


def _scenarios(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in ALL]:
        raise argparse.ArgumentTypeError(f"no scenario {', '.join(unknown)}; there are {', '.join(ALL)}")
    return names


def _hindrance(settings: Settings) -> str | None:
    if not LOAD.exists():
        return "The load generator is not built: run bench/install.sh first."
    if not settings.peers_only and not parkade_binary().exists():
        return f"There is no Parkade at {parkade_binary()}: run `make setup`, set PARKADE_BIN, or ask for --peers-only."
    return None


def raise_descriptor_limit() -> None:
    """The servers inherit it; the load generator raises its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
