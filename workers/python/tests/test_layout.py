"""The shape of the package. Which module may import which is in `tests/test_boundaries.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import parkade
import parkade.errors
import parkade.jobs
import parkade.testing
from parkade import HTTPError
from parkade._log import format_error, is_our_code
from parkade._requests.forms import parse_form

PACKAGE = Path(__file__).parents[1] / "src" / "parkade"

MODULES = {"django", "errors", "jobs", "testing"}
"""The public modules of the package."""


@pytest.mark.parametrize("module", [parkade, parkade.jobs, parkade.testing], ids=lambda module: module.__name__)
def test_a_public_module_shows_its_public_names_and_nothing_else(module: Any) -> None:
    assert dir(module) == sorted(module.__all__)
    shown = {name for name in vars(module) if not name.startswith("_")}
    assert shown - (MODULES if module is parkade else set()) == set(module.__all__) - MODULES


def test_every_other_module_says_by_an_underscore_that_it_is_private() -> None:
    paths = [file.relative_to(PACKAGE).with_suffix("").parts for file in PACKAGE.rglob("*.py")]
    assert {path[0] for path in paths if not path[0].startswith("_")} == MODULES
    inside = [path for path in paths if path[0] in MODULES and len(path) > 1]
    assert [path for path in inside if not path[1].startswith("_")] == []


def test_to_import_parkade_imports_what_an_application_needs_and_no_more() -> None:
    """Not what runs it (`_handling`), not `testing`, and neither of the worker's links."""
    printed = subprocess.run(
        [sys.executable, "-c", "import parkade, sys; print(*sys.modules)"],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    unwanted = (
        "parkade.testing",
        "parkade._handling",
        "parkade._loading",
        "parkade._session",
        "sqlite3",
        "http.client",
    )
    assert "parkade._app" in printed
    assert [module for module in printed if module.startswith(unwanted)] == []


def test_no_file_is_longer_than_a_page_too_many() -> None:
    """A file is about one noun. With more than 500 lines it is about several; from 300 on, ask whether it is."""
    assert [file.name for file in PACKAGE.rglob("*.py") if len(file.read_text().splitlines()) > 500] == []


def test_every_module_is_our_code_in_a_traceback_and_a_neighbour_is_not() -> None:
    assert [file for file in PACKAGE.rglob("*.py") if not is_our_code(str(file))] == []
    assert not is_our_code(str(PACKAGE.with_name("parkade_shop") / "app.py"))


def test_a_traceback_has_the_frames_of_the_application_alone() -> None:
    def handler() -> None:
        parse_form("text/plain", b"")

    try:
        handler()
    except HTTPError as error:
        told = format_error(error)
    files = [line for line in told.splitlines() if line.startswith("  File ")]
    assert files
    assert [line for line in files if __file__ not in line] == []
