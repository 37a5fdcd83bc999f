"""The shape of the package. Which module may import which is in `tests/test_boundaries.py`."""

from __future__ import annotations

from pathlib import Path

from parkade import HTTPError
from parkade._log import format_error, is_our_code
from parkade._requests.forms import parse_form

PACKAGE = Path(__file__).parents[1] / "src" / "parkade"


def test_no_file_is_longer_than_a_page_too_many() -> None:
    """style.md, rule 12: 300 lines are a question, 500 an answer."""
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
