"""The API reference, as `make docs` makes it: every public name is there, with its description."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import parkade
import parkade.errors
import parkade.jobs
import parkade.testing

SCRIPT = Path(__file__).parents[3] / "scripts" / "reference.py"
ENTRY = re.compile(r'<(?:section|div) id="([\w.]+)"')


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each entry, by module and name."""
    pytest.importorskip("pdoc")
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    folder = tmp_path_factory.mktemp("reference")
    reference.make(folder)
    found = {}
    for page in folder.rglob("*.html"):
        module = ".".join(page.relative_to(folder).with_suffix("").parts)
        _, *parts = ENTRY.split(page.read_text())
        found.update({f"{module}.{name}": text for name, text in zip(parts[::2], parts[1::2], strict=True)})
    return found


def public() -> Iterator[tuple[str, Any]]:
    for module in (parkade, parkade.jobs, parkade.testing):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            yield f"{module.__name__}.{name}", value
            if not inspect.isclass(value):
                continue
            for base in value.__mro__:
                if base.__module__.startswith("parkade"):
                    for part, member in vars(base).items():
                        if not part.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                            yield f"{module.__name__}.{name}.{part}", member


def test_every_public_name_is_in_the_reference_with_a_description(entries: dict[str, str]) -> None:
    missing = []
    for name, value in public():
        if 'class="docstring"' not in entries.get(name, "") and (inspect.isroutine(value) or inspect.isclass(value)):
            missing.append(name)
    assert missing == []


def test_attributes_that_applications_do_not_use_are_left_out(entries: dict[str, str]) -> None:
    assert "parkade.Message.body" in entries
    assert "parkade.Wait.convert" not in entries
    assert "parkade.App.on_start" in entries
