"""The templates, for every module that answers with a page."""

from pathlib import Path

from parkade import Templates


def money(cents: int) -> str:
    return f"{cents / 100:.2f} €"


pages = Templates(Path(__file__).parent / "templates", filters={"money": money})
