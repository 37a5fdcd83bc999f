"""Sends random input to the worker's readers: cookies, queries, forms, JSON. Tests each property of
`workers/python/tests/test_fuzz.py` for `--seconds`, with a new seed each time.

What it finds is added there as an `@example`, so that it is always tested.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from pathlib import Path

from hypothesis import seed, settings

TESTS = Path(__file__).resolve().parents[1] / "workers" / "python" / "tests"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="time for each property (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="the first seed, as printed by an earlier run")
    seconds, first = (asked := parser.parse_args()).seconds, asked.seed
    sys.path.insert(0, str(TESTS))
    test_fuzz = importlib.import_module("test_fuzz")

    soak = settings.get_profile("soak")
    for name in sorted(name for name in vars(test_fuzz) if name.startswith("test_")):
        number = random.randrange(2**32) if first is None else first
        print(f"{name}: the first seed is {number}", flush=True)
        # The settings that were loaded when the property was defined are those of the tests.
        tested = settings(soak)(getattr(test_fuzz, name))
        end, runs = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            seed(number + runs)(tested)()
            runs += 1
        print(f"{name}: passed with {runs} seeds", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
