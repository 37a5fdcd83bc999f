"""Opens more connections through one pool than there are numbers for them: `python soak/connections.py --count 200000`.

A transaction keeps its own meanwhile. Whoever cancels may not call `pg_cancel_backend`, so that each cancel takes a
connection. What is judged is in `crates/parkade-postgres/tests/many`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench"))

import postgres  # noqa: E402

ROLE = """
create role many login;
grant all on database postgres to many;
revoke execute on function pg_cancel_backend(int) from public;
"""
TEST = ["cargo", "test", "--locked", "--quiet", "-p", "parkade-postgres", "--test", "many", "--", "--ignored"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Opens very many connections; exits with 1 if any was mistaken.")
    parser.add_argument("--count", type=int, default=200_000, help="how many (200000)")
    options = parser.parse_args()
    with postgres.running({"log_min_messages": "fatal", "log_min_error_statement": "fatal"}) as cluster:
        cluster.ask(ROLE)
        url = cluster.url.replace("postgres://postgres@", "postgres://many@")
        environment = os.environ | {"PARKADE_POSTGRES": url, "PARKADE_CONNECTIONS": str(options.count)}
        began = time.monotonic()
        ended = subprocess.run([*TEST, "--nocapture"], cwd=HERE.parent, env=environment, check=False)
        print(f"{options.count:,} connections in {time.monotonic() - began:.0f} s")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
