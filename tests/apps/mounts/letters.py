"""Jobs that two applications of a server import: one of them runs each."""

from __future__ import annotations

import os

from parkade.jobs import Jobs

jobs = Jobs()


@jobs.job
def write(to: str) -> dict[str, object]:
    """Tells where it runs."""
    return {"to": to, "pid": os.getpid()}
