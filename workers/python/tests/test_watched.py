"""Where code was loaded from, as `parkade dev` is told."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parkade._limits import WATCHED_COUNT_MAX
from parkade._watched import watched
from parkade.errors import LoadError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def of(folder: Path, error: BaseException | None = None) -> list[str]:
    return [path.removeprefix(f"{folder}/") for path in watched(error) if path.startswith(str(folder))]


def test_packages_are_told_as_folders_and_modules_as_files(folder: Path) -> None:
    written(folder, wt_alone="", wt_package__deep__inner="")
    for package in ("wt_package", "wt_package/deep"):
        (folder / package / "__init__.py").write_text("")
    written(folder, wt_namespace__part="")
    for name in ("wt_alone", "wt_package.deep.inner", "wt_namespace.part"):
        importlib.import_module(name)
    assert of(folder) == ["wt_alone.py", "wt_namespace/part.py", "wt_package"]


def test_what_is_installed_is_not_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = folder / "lib" / "site-packages"
    written(installed, wt_installed="")
    monkeypatch.syspath_prepend(str(installed))
    importlib.import_module("wt_installed")
    assert of(folder) == []
    import parkade

    names = [module.__file__ for module in (sys.modules["json"], pytest, parkade)]
    assert not [path for path in watched() for name in names if name is not None and name.startswith(path)]


def test_a_module_that_does_not_load_is_told_by_its_error(folder: Path) -> None:
    written(folder, wt_raises="1/0", wt_syntax="def (", wt_first="import wt_raises")
    for name, expected in [("wt_first", ["wt_first.py", "wt_raises.py"]), ("wt_syntax", ["wt_syntax.py"])]:
        try:
            importlib.import_module(name)
        except Exception as error:
            wrapped = LoadError("it does not load")
            wrapped.__cause__ = error
            assert [path for path in of(folder, wrapped) if "test_watched" not in path] == expected


def test_there_is_a_limit(folder: Path) -> None:
    for number in range(WATCHED_COUNT_MAX + 1):
        written(folder, **{f"wt_{number}": ""})
        importlib.import_module(f"wt_{number}")
    assert len(watched()) == WATCHED_COUNT_MAX
