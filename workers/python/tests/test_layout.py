"""The shape of the package. Which module may import which is in `tests/test_boundaries.py`."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "parkade"


def test_no_file_is_longer_than_a_page_too_many() -> None:
    """style.md, rule 12: 300 lines are a question, 500 an answer."""
    assert [file.name for file in PACKAGE.rglob("*.py") if len(file.read_text().splitlines()) > 500] == []
