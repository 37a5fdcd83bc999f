"""The documents are true: settings, the applications of the README and the guide, commands and their output."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.checkers import CHECKERS, complaints
from .harness.server import PYTHON, ROOT, clean_environment, run

SETTINGS = re.compile(r"<!-- settings:begin -->\n(.*?)<!-- settings:end -->", re.DOTALL)
BLOCK = re.compile(r"^```(?:python )?(app\.py|test_app\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDE = ROOT / "docs" / "guide.md"
README = ROOT / "README.md"

COLUMNS_MAX = 100
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMANDS = ("serve", "dev", "routes", "status", "reload", "stop", "publish", "cancel", "jobs", "enqueue", "import")
JOB_ACTIONS = ("list", "show", "retry", "cancel", "drop")


def documents() -> list[Path]:
    """Every Markdown file that a user or a developer of Parkade reads."""
    places = ("", "bench/", "docs/", "examples/*/", "protocol/", "protocol/vectors/", "soak/", "tests/")
    return [path for place in places for path in sorted(ROOT.glob(f"{place}*.md"))]


def test_the_table_of_settings_is_the_one_that_parkade_prints() -> None:
    printed = run("settings").stdout.strip()
    tables = [found.strip() for path in documents() for found in SETTINGS.findall(path.read_text())]
    if not tables:
        pytest.skip("no document has a table of settings yet")
    for table in tables:
        assert table == printed, "print it anew: parkade settings"


def flags(*command: str) -> set[str]:
    return set(FLAG.findall(run(*command, "--help").stdout))


def test_every_flag_that_a_document_names_exists() -> None:
    named = {
        (path.name, command, flag)
        for path in documents()
        for command, line in re.findall(rf"parkade ({'|'.join(COMMANDS)})\b([^`\n|]*)", path.read_text())
        for flag in FLAG.findall(line)
    }
    known = {command: flags(command) for command in COMMANDS}
    known["jobs"] |= {flag for action in JOB_ACTIONS for flag in flags("jobs", action)}
    assert len(named) > 50
    assert {(name, command, flag) for name, command, flag in named if flag not in known[command]} == set()


def test_every_option_of_every_command_is_documented() -> None:
    told = "\n".join(path.read_text() for path in documents() if path.name != "CHANGELOG.md")
    settings = {f"--{name}" for name in re.findall(r"^\| `([a-z-]+)` \| `PARKADE_", told, re.MULTILINE)}
    commands = [*((command,) for command in COMMANDS), *(("jobs", action) for action in JOB_ACTIONS)]
    for command in commands:
        assert flags(*command) - settings - set(FLAG.findall(told)) - {"--help"} == set(), command


def test_every_option_of_another_server_leads_to_a_flag_that_exists() -> None:
    """In the tables of `migrate.md`, the right column is ours."""
    known = set(re.findall(r"--[a-z][a-z-]+", run("serve", "--help").stdout))
    rows = [line.split("|") for line in (ROOT / "docs" / "migrate.md").read_text().splitlines() if line.startswith("|")]
    assert len(rows) > 100
    told = {flag for row in rows for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", row[2])}
    assert len(told) > 30
    assert told - known == set()


def commands(console: str) -> Iterator[tuple[str, str]]:
    """The command after each `$`, and its output below it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.strip()


def test_the_example_of_the_readme_answers_as_it_says(serve: Serve, tmp_path: Path) -> None:
    text = README.read_text()
    [(_, code)] = BLOCK.findall(text)
    [console] = CONSOLE.findall(text)
    (tmp_path / "app.py").write_text(code)
    (first, _), *rest = commands(console)
    assert first == "parkade serve app.py &"
    server = serve(tmp_path / "app.py", folder=tmp_path)
    host, port = server.address
    waiting: list[subprocess.Popen[str]] = []
    for command, output in rest:
        words = shlex.split(command.removesuffix("&").replace("localhost:8000", f"{host}:{port}"))
        started = subprocess.Popen([words[0], "--silent", *words[1:]], stdout=subprocess.PIPE, text=True)
        if command.endswith("&"):
            waiting.append(started)
            server.until_parked(len(waiting))
            continue
        said = started.communicate(timeout=20)[0].strip()
        # A command may release one that has waited in the background.
        while said != output and waiting:
            said = f"{said}{waiting.pop().communicate(timeout=20)[0]}".strip()
        assert said == output, command
    assert not waiting


def test_ci_runs_the_command_that_the_readme_names() -> None:
    command = (ROOT / ".ci/run").read_text().splitlines()[-1]
    assert f"`{command}`" in README.read_text()


def test_the_readme_is_short() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 120, "it is an overview: details have a place in docs/ or bench/"
    assert "Missing: " in "\n".join(lines[:10]), "the first lines say what is missing"


def test_the_architecture_is_a_map() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()
    assert len(lines) <= 200, "it says where things are: details have a place in docs/ or beside the code"


def test_the_answers_about_the_code_are_right() -> None:
    rows = re.findall(r"^\| .*\? \| `(.*)` \| `(.*)` \|$", (ROOT / "docs" / "where.md").read_text(), re.MULTILINE)
    assert len(rows) == 20
    for file, name in rows:
        assert name in (ROOT / file).read_text(), f"{file} has no {name}"


def test_larger_folders_begin_with_a_table_of_their_files() -> None:
    """As the map says. Each file that a table names is in the folder, or next to it."""
    tables = 0
    for module in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        columns = re.findall(r"^//! \| .* \| (.*) \|$", module.read_text(), re.MULTILINE)
        if columns[:1] != ["where"]:
            continue
        tables += 1
        folder = module.parent if module.name in ("mod.rs", "lib.rs") else module.with_suffix("")
        for name in re.findall(r"`([a-z_/0-9]+)`", "".join(columns)):
            places = [folder / name, folder / f"{name}.rs", folder.parent / name, folder.parent / f"{name}.rs"]
            assert any(place.exists() for place in places), f"{module.relative_to(ROOT)}: {name}"
    assert tables > 20


def test_the_glossary_has_the_states_of_jobs_slots_and_workers() -> None:
    rows = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    words = {word for row in rows if row.startswith("|") for word in re.split(r",\s*", row.split("|")[1].strip())}
    crates = ROOT / "crates"
    shown = [
        *re.findall(r'WorkerState::\w+ => "(.*)"', (crates / "parkade/src/words.rs").read_text()),
        *re.findall(r'SlotState::\w+ => "(.*)"', (crates / "parkade/src/admin/report/databases.rs").read_text()),
        *re.findall(r'Self::\w+ => "(.*)"', (crates / "parkade-jobs/src/job.rs").read_text()),
        *re.findall(r'\("(.*)", counts\.jobs_', (crates / "parkade/src/admin/metrics/jobs.rs").read_text()),
    ]
    assert len(shown) > 20
    assert set(shown) - {"starting"} <= words


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_is_wrapped(path: Path) -> None:
    """Except code, tables, and lines without a space to break at."""
    is_code = False
    long = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if len(line) > COLUMNS_MAX and not is_code and not line.startswith("|") and " " in line.strip()[:COLUMNS_MAX]:
            long.append(number)
    assert long == []


def blocks() -> list[tuple[str, str, str]]:
    """Each block of the guide that is a whole file: a name, the application, and the test of it (or nothing)."""
    if not GUIDE.exists():
        return []
    found: list[tuple[str, str, str]] = []
    for number, match in enumerate(BLOCK.finditer(GUIDE.read_text())):
        file, code = match.groups()
        if file == "app.py":
            found.append((f"{number}", code, ""))
        else:
            found.append((f"{number}-tests", found[-1][1], code))
    return found


@pytest.mark.parametrize(("application", "tests"), [pytest.param(*rest, id=name) for name, *rest in blocks()])
def test_the_code_of_the_guide_runs(tmp_path: Path, application: str, tests: str) -> None:
    (tmp_path / "app.py").write_text(application)
    ended = run(
        "serve", str(tmp_path / "app.py"), "--check", "--bind", "127.0.0.1:0", "--state", str(tmp_path / ".parkade")
    )
    assert ended.returncode == 0, ended.stderr
    if tests:
        (tmp_path / "test_app.py").write_text(tests)
        words = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
        tried = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=clean_environment(), timeout=60)
        assert tried.returncode == 0, tried.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_strict_checkers_have_nothing_to_say_about_the_guide(checker: str, tmp_path: Path) -> None:
    for name, application, tests in blocks():
        if not tests:
            (tmp_path / f"example_{name}.py").write_text(application)
    assert complaints(checker, tmp_path) == ""


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_code_in_documents_is_valid(path: Path) -> None:
    """Also in blocks that no test runs, because they are parts of something: in these, … stands for anything."""
    for language, code in re.findall(r"^```(python|json|toml)\b[^\n]*\n(.*?)^```$", path.read_text(), re.M | re.DOTALL):
        if language == "json":
            for text in code.splitlines() if code.startswith("{") else [code]:
                json.loads(text)
        elif language == "toml":
            assert re.fullmatch(r"(?:(?:[a-z-]+ = .*|\[\[mount\]\]|# .*|)\n)+", code), f"no settings: {code}"
            known = {*flags("serve"), "--target", *(["--prefix", "--env"] if "[[mount]]" in code else [])}
            assert {f"--{key}" for key in re.findall(r"^[a-z-]+", code, re.M)} <= known
        else:
            imported = [
                node for node in ast.walk(ast.parse(code.replace("…", "..."))) if isinstance(node, ast.ImportFrom)
            ]
            for node in imported:
                if str(node.module).startswith("parkade"):
                    module = importlib.import_module(str(node.module))
                    assert {name.name for name in node.names if not hasattr(module, name.name)} == set()


def test_the_guide_has_code() -> None:
    if not GUIDE.exists():
        pytest.skip("there is no guide yet")
    assert len(blocks()) >= 5


def test_no_document_names_a_machine_of_ours() -> None:
    for path in documents():
        assert not re.search(r"(?<![\w.])/(?:home|root|work|Users)/", path.read_text()), path


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_documents_leads_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in link and not link.startswith("mailto:"):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def places(path: Path) -> dict[str, str]:
    """The anchors of a document, each with the heading that it leads to, as far as there is one."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    is_code = False
    for line in path.read_text().splitlines():
        is_code ^= line.lstrip().startswith("```")
        waiting += re.findall(r'<a id="([^"]+)">', line)
        if not is_code and (heading := re.match(r"#+ (.*)", line)):
            slug = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
            found |= dict.fromkeys([slug, *waiting], heading[1])
            waiting = []
        elif line.strip() and not line.startswith("<a id="):
            found |= dict.fromkeys(waiting, "")
            waiting = []
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_heading_leads_to_it(path: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", path.read_text()):
        if "://" not in name and (not name or name.endswith(".md")):
            assert anchor in places(path.parent / name if name else path), f"{path.name}: {name}#{anchor}"
    for text, anchor in re.findall(r"^\* \[(.*)\]\(#(.*)\)$", path.read_text(), re.MULTILINE):
        heading = places(path)[anchor]
        assert heading.startswith(text), f"the contents of {path.name} say {text}, but lead to {heading}"
