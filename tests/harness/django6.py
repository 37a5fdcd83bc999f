"""Django 6, which needs Python 3.12: an environment of its own, and Django's own tests of Tasks, from its sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from . import newest_python
from .server import ROOT

PLACE = ROOT / "target" / "django6"
VERSION = "6.0.*"

PLACES = {
    "django.tasks.backends.dummy.DummyBackend": "adapted.Held",
    "django.tasks.backends.immediate.ImmediateBackend": "adapted.AtOnce",
    "from django.tasks.backends.dummy import DummyBackend": "from adapted import Held as DummyBackend",
    "from django.tasks.backends.immediate import ImmediateBackend": "from adapted import AtOnce as ImmediateBackend",
}
"""The backends of Django in its tests, and what stands in for them."""

LEFT_OUT = {
    "test_throws_keyboard_interrupt": "the task runs in another process",
    "test_enqueue_logs": "the task runs, and logs, in another process",
    "test_failed_logs": "as before",
    "test_successful_task_no_none_in_logs": "as before",
    "test_cannot_get_result": "this backend can",
    "test_cannot_refresh_result": "this backend can",
    "test_cannot_pass_run_after": "this backend can",
    "test_refresh_result": "it changes what the dummy backend has in memory",
    "test_refresh_result_async": "as before",
    "test_clear": "it clears what the dummy backend has in memory",
    "test_doesnt_wait_until_transaction_commit_by_default": "this backend waits, by default",
}
"""Tests that cannot be about this backend, and why."""


def python() -> Path | None:
    """The interpreter of an environment with Django 6, which is made once; None without a Python 3.12 or newer."""
    with newest_python.alone(PLACE):
        is_made = any(PLACE.glob("*.tar.gz")) and any(PLACE.glob("venv/lib/*/site-packages/psycopg"))
        if not is_made:
            shutil.rmtree(PLACE, ignore_errors=True)
            pip = newest_python.make(PLACE / "venv", f"django=={VERSION}", "msgspec", "psycopg[binary]")
            if pip is None:
                return None
            sources = [*pip, "download", "--no-deps", "--no-binary", ":all:", f"django=={VERSION}"]
            subprocess.run(sources, cwd=PLACE, check=True)
    return PLACE / "venv" / "bin" / "python"


def required_python() -> Path:
    """The same; without it, the test is skipped."""
    found = python()
    if found is None:
        pytest.skip("Django 6 needs Python 3.12 or newer, and there is none")
    return found


def adapted_tests() -> Path:
    """A folder with Django's tests of Tasks as the package `tasks`, about the backend of Parkade."""
    folder = PLACE / "adapted"
    shutil.rmtree(folder, ignore_errors=True)
    (source,) = PLACE.glob("[Dd]jango-6*.tar.gz")
    with tarfile.open(source) as archive:
        for member in archive.getmembers():
            if found := re.fullmatch(r"[^/]+/tests/tasks/(\w+\.py)", member.name):
                file = archive.extractfile(member)
                assert file is not None
                target = folder / "tasks" / found[1]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_adapted(file.read().decode(), found[1]))
    return folder


def _adapted(text: str, name: str) -> str:
    if name == "tasks.py":
        return text
    for before, after in PLACES.items():
        text = text.replace(before, after)
    # A task that fails logs that where it runs.
    text = re.sub(r"with self\.assertLogs\(\"django\.tasks\"(, level=\"ERROR\")?\):", "if True:", text)
    text = re.sub(r"self\.assertLogs\(\"django\.tasks\", level=\"ERROR\"\) as captured_logs,", "", text)
    text = re.sub(r"self\.assert\w+\([^\n]*captured_logs\.output[^\n]*\)\n", "pass\n", text)
    left_out = "|".join(LEFT_OUT)
    if name == "test_tasks.py":  # there a refreshed result is one that the backend tells
        left_out = left_out.replace("test_refresh_result|", "")
    text = f'import django.test\nleft_out = django.test.tag("left out")\n{text}'
    return re.sub(rf"( +)((?:async )?def ({left_out})\()", r"\1@left_out\n\1\2", text)
