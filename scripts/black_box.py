"""Runs black-box tests: `python scripts/black_box.py [arguments of pytest]`.

They run real processes by the hundred on a busy machine, so one of thousands may lose a race of its own. Up to
`RERUN_MAX` failed tests run again, each alone and `TIMES` times; the run passes if all of them do, and names them at
its end. What fails again, or more failures than that, is a failure: no bug that shows itself each time can hide here.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

RERUN_MAX = 2
TIMES = 3
SOME_FAILED = 1
"""The exit status of pytest for failed tests. Others are failures of the run itself."""
CACHE = Path(__file__).parent.parent / "target/black_box"


def main() -> int:
    shutil.rmtree(CACHE, ignore_errors=True)
    status = _pytest("-o", f"cache_dir={CACHE}", *sys.argv[1:])
    if status != SOME_FAILED:
        return status
    failed = list(json.loads((CACHE / "v/cache/lastfailed").read_text()))
    if not 0 < len(failed) <= RERUN_MAX:
        return status
    for test in failed:
        for _ in range(TIMES):
            if _pytest("-p", "no:cacheprovider", test) != 0:
                return SOME_FAILED
    names = "\n  ".join(failed)
    print(
        f"Failed at first, and passed {TIMES} times alone: a race in a test or in the product.\n  {names}", flush=True
    )
    return 0


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
