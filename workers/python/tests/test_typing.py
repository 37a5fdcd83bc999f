"""What type checkers, both strict, say of correct and of incorrect uses of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
MARK = re.compile(r"# E: \[(?P<mypy>[\w-]+)\] (?P<pyright>\w+)$")

Found = dict[tuple[str, int], set[str]]


def expected(checker: str) -> dict[tuple[str, int], str]:
    """What is marked: the rule by the file and the line."""
    found = {}
    for path in (HERE / "typed").glob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if mark := MARK.search(line):
                found[path.name, number] = mark[checker]
    return found


def mypy(folder: Path) -> Found:
    command = ["mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(folder), "--show-error-codes"]
    text = checked(command).stdout
    found: Found = {}
    for name, line, rule in re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", text, re.MULTILINE):
        found.setdefault((name, int(line)), set()).add(rule)
    return found


def pyright(folder: Path) -> Found:
    shutil.copytree(HERE / "typed", folder / "typed")
    settings = {"include": ["typed"], "typeCheckingMode": "strict", "extraPaths": [str(SOURCE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    text = checked(["pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)], files=False).stdout
    found: Found = {}
    for told in json.loads(text)["generalDiagnostics"]:
        place = Path(told["file"]).name, told["range"]["start"]["line"] + 1
        found.setdefault(place, set()).add(told.get("rule", told["message"]))
    return found


def checked(command: list[str], files: bool = True) -> subprocess.CompletedProcess[str]:
    paths = [str(path) for path in sorted((HERE / "typed").glob("*.py"))] if files else []
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    return subprocess.run([sys.executable, "-m", *command, *paths], capture_output=True, text=True, env=environment)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_find_each_incorrect_use_and_no_correct_one(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    found = (mypy if checker == "mypy" else pyright)(tmp_path)
    marked = expected(checker)
    assert found.keys() == marked.keys(), {place: found.get(place) for place in found.keys() ^ marked.keys()}
    assert {place: rule for place, rule in marked.items() if rule not in found[place]} == {}
