"""Workers for Perl: how they are started from this checkout, and which modules are installed."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from .server import APPS, ROOT, clean_environment

WORKER = ROOT / "workers" / "perl" / "script" / "parkade-perl-worker"
"""What the core starts."""

MODULES = ROOT / "workers" / "perl" / "lib"
"""The distribution, not installed."""

PERL_APPS = APPS / "perl"


@functools.cache
def has(*modules: str) -> bool:
    """Whether Perl is there, and can load these modules."""
    if shutil.which("perl") is None:
        return False
    words = [word for module in modules for word in ("-M" + module,)]
    return subprocess.run(["perl", *words, "-e", "1"], capture_output=True, check=False).returncode == 0


@functools.cache
def is_compiled() -> bool:
    """Whether the loop in C was built for this Perl."""
    code = "exit !Parkade::Compiled::IS_USED"
    words = ["perl", f"-I{ROOT / 'workers' / 'perl' / 'lib'}", "-MParkade::Compiled", "-e", code]
    return has() and subprocess.run(words, env=clean_environment(PARKADE_ACCELERATOR="1"), check=False).returncode == 0


PSGI = ["raw.psgi"] if has("JSON::PP") else []
"""The application of PSGI, for tests of several applications, if there is a Perl."""


def app(name: str) -> Path:
    """An application of `tests/apps/perl`."""
    return PERL_APPS / name
