"""Django 6, which needs Python 3.12: an environment of its own, and Django's own tests of Tasks, from its sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

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
    made = PLACE / "venv" / "bin" / "python"
    if not any(PLACE.glob("*.tar.gz")):
        newest = _python_of_choice()
        if newest is None:
            return None
        shutil.rmtree(PLACE, ignore_errors=True)
        subprocess.run([newest, "-m", "venv", PLACE / "venv"], check=True)
        pip = [PLACE / "venv" / "bin" / "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", f"django=={VERSION}", "msgspec"], check=True)
        subprocess.run(
            [*pip, "download", "--no-deps", "--no-binary", ":all:", f"django=={VERSION}"],
            cwd=PLACE,
            check=True,
        )
    return made


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


def _python_of_choice() -> str | None:
    on_path = [found for name in ("python3.14", "python3.13", "python3.12") if (found := shutil.which(name))]
    installed = sorted(map(str, Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python3")), reverse=True)
    for found in on_path + installed:  # some are shims, which have no interpreter behind them
        if subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None
