"""Every recipe works: its files load and are served, its commands print what the page says, its tests pass."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.checkers import CHECKERS, complaints
from .harness.ports import free_port
from .harness.server import PARKADE, PYTHON, ROOT, clean_environment
from .harness.until import until

PAGE = ROOT / "docs" / "recipes.md"
FILE = re.compile(r"^```python (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHER = re.compile(r"^```(console|log|dockerfile)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDED = ("httpx", "sqlalchemy")

TITLES = [
    "Login with a cookie",
    "Upload",
    "Download",
    "Chat with history",
    "Dashboard",
    "Report with progress",
    "Cron",
    "CORS",
    "Logging",
    "Docker",
    "A project of five modules",
    "SQLAlchemy alongside",
    "httpx alongside",
]


@dataclass(frozen=True)
class Recipe:
    title: str
    files: dict[str, str]
    blocks: dict[str, str]

    def missing(self) -> str | None:
        """A library that it needs and that is not installed."""
        code = "".join(self.files.values())
        used = (library for library in NEEDED if re.search(rf"^(from|import) {library}\b", code, re.MULTILINE))
        return next((library for library in used if importlib.util.find_spec(library) is None), None)

    def write(self, folder: Path) -> Path:
        """Writes its files; the path of the application."""
        if library := self.missing():
            pytest.skip(f"{library} is not installed")
        for name, code in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(code)
        return folder / "app.py"


def recipes() -> Iterator[Recipe]:
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        yield Recipe(section.partition("\n")[0], dict(FILE.findall(section)), dict(OTHER.findall(section)))


RECIPES = list(recipes())


def having(kind: str) -> list[Any]:
    return [pytest.param(one, id=one.title) for one in RECIPES if kind in one.blocks or kind in one.files]


def test_no_recipe_is_missing() -> None:
    assert [recipe.title for recipe in RECIPES] == TITLES
    assert all("app.py" in recipe.files for recipe in RECIPES)
    contents = re.findall(r"^\* \[(.*)\]\(#(.*)\)$", PAGE.read_text(), re.MULTILINE)
    assert contents == [(title, title.lower().replace(" ", "-")) for title in TITLES]


def commands(console: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, re.compile(".*".join(map(re.escape, output.strip().split("…"))))


@pytest.mark.parametrize("recipe", having("app.py"))
def test_a_recipe_does_what_its_commands_show(recipe: Recipe, serve: Serve, tmp_path: Path) -> None:
    application = recipe.write(tmp_path)
    bind = f"127.0.0.1:{free_port()}"
    environment = {"PRICES": f"http://{bind}"}
    server = serve(application, folder=tmp_path, bind=bind, environment=environment)
    path = f"{PARKADE.parent}:{clean_environment()['PATH']}"
    for command, expected in commands(recipe.blocks.get("console", "")):
        done = subprocess.run(
            ["sh", "-c", command.replace("localhost:8000", bind)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            env=clean_environment(PATH=path),
        )
        said = done.stdout.strip().replace(bind, "localhost:8000")
        assert expected.fullmatch(said), f"{command}\n{said}\n{done.stderr}"
    for line in recipe.blocks.get("log", "").splitlines():
        until(line, lambda line=line: line in server.log(), told=server.log)


@pytest.mark.parametrize("recipe", having("test_app.py"))
def test_the_tests_of_a_recipe_pass(recipe: Recipe, tmp_path: Path) -> None:
    recipe.write(tmp_path)
    words = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    tried = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=clean_environment(), timeout=60)
    assert tried.returncode == 0, tried.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_strict_checkers_have_nothing_to_say(checker: str, tmp_path: Path) -> None:
    for number, recipe in enumerate(RECIPES):
        for name, code in recipe.files.items():
            whole = name if len(recipe.files) > 2 else f"recipe_{number}.py"  # only one has modules of its own
            if not name.startswith("test_") and not recipe.missing():
                (tmp_path / whole).parent.mkdir(exist_ok=True)
                (tmp_path / whole).write_text(code)
    assert complaints(checker, tmp_path) == ""


def test_the_container_of_the_recipe_is_set_up_as_that_of_the_repository() -> None:
    """Docker may not be here; what the image says is compared with the one that is built for releases."""
    [recipe] = [one for one in RECIPES if one.title == "Docker"]
    told, real = recipe.blocks["dockerfile"], (ROOT / "Dockerfile").read_text()
    for pattern in (r"PARKADE_\w+=\S+", r"^USER .*", r"^WORKDIR .*", r"^VOLUME .*", r"^EXPOSE .*", r"^RUN useradd .*"):
        lines = re.findall(pattern, told, re.MULTILINE)
        assert lines
        assert [line for line in lines if line not in real] == [], pattern
    assert 'CMD ["parkade", "serve", "app.py"]' in told
