"""The figures in both READMEs match `bench/results`; which series replace the kept ones."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .harness.server import ROOT

FIGURES = ROOT / "bench" / "figures.py"
RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))


def figures(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, FIGURES, *words], capture_output=True, text=True, timeout=20)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "bench").mkdir()
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copy(ROOT / "bench" / "README.md", tmp_path / "bench")
    for folder in ("results", "plots"):
        shutil.copytree(ROOT / "bench" / folder, tmp_path / "bench" / folder, ignore=shutil.ignore_patterns("tmp"))
    return tmp_path


def test_both_readmes_and_the_plots_show_the_results() -> None:
    ended = figures("--check")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("README.md", "Hello from one `def` worker: ", "Hello from one `def` worker: 1"),
        ("bench/README.md", "| a constant route | ≥ 0.9 × axum | ", "| a constant route | ≥ 0.9 × axum | 1"),
        ("bench/plots/hello.svg", "/s</text>", "0/s</text>"),
    ],
)
def test_a_figure_that_disagrees_is_found_and_put_right(copy: Path, file: str, old: str, new: str) -> None:
    right = (copy / file).read_text()
    assert old in right
    (copy / file).write_text(right.replace(old, new, 1))
    ended = figures("--check", "--root", copy)
    assert ended.returncode == 1
    assert file in ended.stderr
    assert figures("--root", copy).returncode == 0
    assert (copy / file).read_text() == right


def test_a_new_series_that_nobody_has_shown_is_found(copy: Path) -> None:
    path = copy / "bench" / "results" / "hola.json"
    series = json.loads(path.read_text())
    for sample in series["comparisons"]["hola"]["samples"]["Parkade def"]:
        sample["per_second"] += 1_000
    path.write_text(json.dumps(series))
    ended = figures("--check", "--root", copy)
    assert ended.returncode == 1
    assert [name in ended.stderr for name in ("README.md", "bench/README.md", "hello.svg")] == [True, True, True]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_results_name_no_machine(path: Path) -> None:
    assert set(json.loads(path.read_text())["machine"]) <= {"cpu", "cores", "memory_gib", "kernel"}


KEPT = """
import sys; sys.path.insert(0, "bench")
from pathlib import Path
from datetime import datetime
import report
from settings import Settings
report.RESULTS = Path(sys.argv[1])
print(report.why_not_kept(eval(sys.argv[2])))
for work in ("first", "second"):
    row = report.Row(work, "–", "1", "–")
    report.write({"hola": report.Outcome([row])}, Settings(3, 5), {}, datetime(2026, 11, 22))
"""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("Settings(3, 5)", "None"),
        ("Settings(1, 5)", "a series has at least 3 runs"),
        ("Settings(3, 5, peers_only=True)", "only a part of the servers was measured"),
    ],
)
def test_the_latest_series_of_a_scenario_is_kept(tmp_path: Path, settings: str, reason: str) -> None:
    words = [sys.executable, "-c", KEPT, tmp_path, settings]
    environment = {"PATH": "/usr/bin:/bin"}
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout.strip() == reason
    [kept] = tmp_path.iterdir()
    assert json.loads(kept.read_text())["rows"][0]["work"] == "second"
