"""Makes the API reference of the Python package from its docstrings, in `target/reference`: `make docs`."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import pdoc.doc
import pdoc.render

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("parkade", "parkade.errors", "parkade.testing")
"""`parkade.jobs` is among the public names of `parkade`."""


class Class(pdoc.doc.Class):
    """A public class with what it inherits from Parkade's private modules, where nobody could look it up: `App.get`,
    `App.job`. Left out is what it has from Python itself, and attributes without a description, which are not for
    applications.
    """

    @cached_property
    def own_members(self) -> list[Any]:
        own = super().own_members
        inherited = [each for each in self.members.values() if each.taken_from[0].startswith("parkade.")]
        return [each for each in [*own, *(one for one in inherited if one not in own)] if is_for_applications(each)]


def is_for_applications(member: Any) -> bool:
    """Whether the reference shows it."""
    return bool(member.docstring) or member.name == "__init__"


def make(folder: Path) -> None:
    """Writes the pages into a folder."""
    pdoc.doc.Class = Class  # type: ignore[misc]
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text="Parkade")
    pdoc.pdoc(*MODULES, output_directory=folder)


if __name__ == "__main__":
    target = ROOT / "target" / "reference"
    sys.path.insert(0, str(ROOT / "workers" / "python" / "src"))
    make(target)
    print(target / "parkade.html")
