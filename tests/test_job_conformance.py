"""The store in PostgreSQL passes the suite for all stores in `crates/parkade-jobs`, with a real database.

No worker takes part.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess

import pytest

from .harness.postgres import Postgres
from .harness.server import ROOT

# The whole workspace and one target of it, so that the build of `make test` is used. With `-p` the dependencies would
# have other features, and everything would be built again.
# of what they depend on would be others, and all of that would be built once more.
SUITE = ["cargo", "test", "--locked", "--quiet", "--workspace", "--test", "conformance", "--", "--ignored"]


@pytest.mark.promise(9)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_store_in_postgresql_conforms(postgres: Postgres) -> None:
    database = f"conformance_{secrets.token_hex(4)}"
    postgres.psql(f"create database {database}")
    environment = os.environ | {"PARKADE_POSTGRES": postgres.url_of(database)}
    done = subprocess.run(SUITE, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]
    assert re.search(r"ok\. [1-9]\d* passed", done.stdout), "its tests were there, and ran"
