"""Folders and imports match the design: which module may import which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness.server import ROOT

CRATES = ROOT / "crates"
PYTHON = ROOT / "workers" / "python" / "src" / "parkade"

STRANGERS = ("http", "upstream", "databases", "store", "admin", "status_view")
"""Modules of `parkade` that interact only through `server`, by events and effects."""

# Modules that all of them may use: words for people, the clock, polling, limits.
ALLOWED = {("status_view", "admin"): "the report that it reads again is the one that the admin endpoints write"}

WORDS_OF_DATABASES = {"IdMap", "Int8", "Isolation", "LeaseId", "Parameter", "QueryId", "Shape", "TransactionMode"}
"""Shared types for any program with databases, not only Parkade."""

PYTHON_ORDER = [
    "errors",
    "_log",
    "_limits",
    "_origin",
    "_suggestions",
    "_unicode",
    "_compiled",
    "_wire",
    "_session",
    "_link",
    "_mappings",
    "_validation",
    "_requests",
    "_job",
    "_waits",
    "_sql",
    "_websocket",
    "_responses",
    "_cors",
    "_hooks",
    "_routing",
    "jobs",
    "_router",
    "_openapi",
    "_app",
    "_handling",
    "_hosting",
    "_django_store",
    "django",
    "testing",
    "_loading",
    "_own_files",
    "_watched",
    "_importing",
    "__main__",
]
"""Modules and packages of the Python package, from the bottom up: each imports only those before it."""


def sources(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*.rs")):
        yield path, without_tests(re.sub(r"//.*", "", path.read_text()))


def without_tests(text: str) -> str:
    return text.partition("#[cfg(test)]\nmod tests {")[0]


# Folders


@pytest.mark.parametrize(
    "path",
    [
        "protocol/PROTOCOL.md",
        "protocol/vectors/frames",
        "protocol/vectors/sessions",
        "crates/parkade-model",
        "crates/parkade-wire",
        "crates/parkade-core",
        "crates/parkade/src/http",
        "crates/parkade/src/upstream",
        "crates/parkade/src/databases",
        "crates/parkade-sql",
        "crates/parkade-postgres",
        "crates/parkade-sqlite",
        "crates/parkade-jobs",
        "crates/parkade-files",
        "crates/parkade-websocket",
        "crates/parkade-heap",
        "crates/parkade/src/files",
        "crates/parkade/src/store",
        "workers/python/src/parkade",
        "examples/delayed_echo/README.md",
        "examples/auction/README.md",
        "examples/hola/README.md",
        "examples/cancelled_query/README.md",
        "docs/queries.md",
        "tests",
        "bench",
        "docs/guide.md",
        "docs/operations.md",
        "docs/decisions.md",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "Cargo.toml",
        "clippy.toml",
        "rustfmt.toml",
        "pyproject.toml",
    ],
)
def test_the_layout_is_that_of_the_design(path: str) -> None:
    assert (ROOT / path).exists()


# Rust


def dependencies(crate: str) -> set[str]:
    section = re.search(
        r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", (CRATES / crate / "Cargo.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    return set(re.findall(r"^([\w-]+)\s*[=.]", section[1], re.MULTILINE)) if section else set()


def parkades(crate: str) -> set[str]:
    """The crates of Parkade that a crate depends on."""
    return {name for name in dependencies(crate) if name.startswith("parkade")}


HARMLESS = {"rustc-hash", "thiserror"}
"""Crates that do no I/O, and that the core may have."""


def test_wire_and_core_are_strangers() -> None:
    """They share only the types of the model."""
    assert parkades("parkade-wire") <= {"parkade-model"}
    assert parkades("parkade-core") <= {"parkade-model"}
    assert {"parkade-core", "parkade-model", "parkade-wire"} <= dependencies("parkade")


def test_the_shared_types_import_no_crate_of_parkade() -> None:
    """The bottom layer: every crate may import it. So it imports none of them, and nothing that the core must not."""
    assert parkades("parkade-model") == set()
    assert dependencies("parkade-model") <= HARMLESS
    for path, text in sources(CRATES / "parkade-model" / "src"):
        assert set(re.findall(r"\bparkade_\w+", text)) == set(), path


def test_the_shared_types_decide_nothing() -> None:
    """They are parsed, checked and written: nothing here changes a value or handles an event; only a table grows."""
    for path, text in sources(CRATES / "parkade-model" / "src"):
        changes = r"\bEvent\b|\bEffect\b" if path.name == "segments.rs" else r"&mut self|\bEvent\b|\bEffect\b"
        assert not re.search(changes, text), path


@pytest.mark.parametrize(
    "forbidden",
    [
        r"\btokio\b",
        r"\bmio\b",
        r"\bhyper\b",
        r"\bbytes::",
        r"std::net\b",
        r"std::fs\b",
        r"std::io\b",
        r"std::process\b",
        r"std::thread\b",
        r"std::env\b",
        r"std::path\b",
        r"\bparkade_sql\b",
        r"\bInstant\b",
        r"\bSystemTime\b",
        r"\brand\b",
        r"\bfastrand\b",
        r"\bprintln!",
        r"\btracing\b",
    ],
)
def test_the_core_knows_no_world(forbidden: str) -> None:
    """No clock, no socket, no bytes, no paths, no SQL, no randomness but its own."""
    for crate in ("parkade-model", "parkade-core"):
        assert [path.name for path, text in sources(CRATES / crate / "src") if re.search(forbidden, text)] == []


def test_the_core_depends_on_nothing_that_touches_the_world() -> None:
    assert dependencies("parkade-core") <= HARMLESS | {"parkade-model"}


@pytest.mark.parametrize("crate", ["parkade-files", "parkade-websocket"])
def test_files_and_websockets_are_decided_without_io(crate: str) -> None:
    """No file or socket is opened and no clock is read there, and they know nothing of Parkade."""
    assert parkades(crate) == set()
    for path, text in sources(CRATES / crate / "src"):
        assert not re.search(r"\btokio\b|std::(fs|io|net|thread)\b|SystemTime::now|\bInstant\b", text), path


def test_the_wire_is_bytes_only() -> None:
    for path, text in sources(CRATES / "parkade-wire" / "src"):
        assert not re.search(r"\btokio\b|std::net|std::fs|std::process|std::thread|Instant|SystemTime", text), path


@pytest.mark.parametrize("crate", ["parkade-sql", "parkade-postgres", "parkade-sqlite"])
def test_databases_know_nothing_of_parkade(crate: str) -> None:
    """Other programs could use them as they are: they take the shared types for databases, through `parkade-sql`."""
    assert parkades(crate) <= ({"parkade-model"} if crate == "parkade-sql" else {"parkade-sql"})
    assert "tokio" not in dependencies(crate)


def test_databases_take_only_their_own_words_from_the_shared_types() -> None:
    for path, text in sources(CRATES / "parkade-sql" / "src"):
        imported = re.findall(r"parkade_model::(\w+|\{[^}]*\})", text)
        assert set(re.findall(r"\w+", " ".join(imported))) <= WORDS_OF_DATABASES, path


def test_a_store_of_jobs_knows_nothing_of_the_server() -> None:
    """It does not decide what runs, how often, or what follows."""
    assert parkades("parkade-jobs") <= {"parkade-model", "parkade-sql", "parkade-postgres"}
    assert "tokio" not in dependencies("parkade-jobs")


def test_the_machine_of_postgresql_does_no_io() -> None:
    """Only `transport` and `database` have sockets; the rest is told the time and the bytes that were read."""
    folder = CRATES / "parkade-postgres" / "src"
    for path, text in sources(folder):
        if path.relative_to(folder).parts[0] not in ("transport", "database", "settings", "proof"):
            assert not re.search(r"\bmio::|std::net\b|std::fs\b|std::thread\b|Instant::now", text), path


def module_of(path: Path) -> str:
    parts = path.relative_to(CRATES / "parkade" / "src").parts
    return parts[0].removesuffix(".rs")


def imports_of(text: str) -> set[str]:
    """The modules of the crate that a source imports: `crate::http::…` and `crate::{http, …}`."""
    found = set(re.findall(r"\bcrate::(\w+)", text))
    for group in re.findall(r"\bcrate::\{([^;]*)\}", text):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
    return found


@pytest.mark.parametrize("module", STRANGERS)
def test_strangers_inside_parkade_do_not_import_each_other(module: str) -> None:
    others = {other for other in STRANGERS if other != module and (module, other) not in ALLOWED}
    forbidden = others | {"server", "serve", "cli"} - ({"cli"} if module == "status_view" else set())
    for path, text in sources(CRATES / "parkade" / "src"):
        if module_of(path) == module:
            assert imports_of(text) & forbidden == set(), path.relative_to(ROOT)


def test_the_server_knows_of_workers_what_every_kind_of_them_has() -> None:
    """Processes, pipes and frames are below `Upstream`, so that another kind can be added next to them."""
    assert not re.search(r"pub(\([^)]*\))? mod process\b", (CRATES / "parkade/src/upstream/mod.rs").read_text())
    for path, text in sources(CRATES / "parkade" / "src"):
        if module_of(path) in ("server", "clients", "queries", "application"):
            assert not re.search(r"\bprocess::|\bLaunch\b|\bmio\b|std::process", text), path.relative_to(ROOT)


@pytest.mark.parametrize("module", ["queries", "application", "files", "jobs", "loading"])
def test_what_the_server_is_made_of_knows_no_server(module: str) -> None:
    """Jobs have the store to themselves, and know what a worker is given for a run."""
    others = set() if module == "jobs" else {"upstream", "store"}
    for path, text in sources(CRATES / "parkade" / "src"):
        if module_of(path) == module:
            assert imports_of(text) & ({"server", "serve", "cli"} | others) == set(), path.relative_to(ROOT)


def test_configuration_and_logs_know_no_server() -> None:
    for path, text in sources(CRATES / "parkade" / "src"):
        if module_of(path) in ("config", "log", "clock", "poll", "words"):
            known = imports_of(text) & {*STRANGERS, "server", "serve"}
            assert known == set(), path.relative_to(ROOT)


def test_routes_are_looked_up_without_the_server() -> None:
    """A pure look-up: paths in, destinations out."""
    for path, text in sources(CRATES / "parkade" / "src"):
        if module_of(path) == "routing":
            assert imports_of(text) == set(), path.relative_to(ROOT)
            assert not re.search(r"\bCore\b|\btokio\b|\bbytes::|std::(net|fs|io|time::Instant)\b", text), path


def test_nothing_is_unsafe_but_one_declaration() -> None:
    """`parkade-heap` declares one function of the C library, and says why that is sound."""
    declares = CRATES / "parkade-heap" / "src" / "lib.rs"
    for path, text in sources(CRATES):
        found = re.findall(r"\bunsafe\s*(?:\{|fn|impl|extern)", text)
        assert len(found) == (1 if path == declares else 0), path
    assert len(re.findall(r"\bsafe fn\b", declares.read_text())) == 1
    assert 'unsafe_code = "forbid"' in (ROOT / "Cargo.toml").read_text()
    lints = {path.parent.name: path.read_text().partition("[lints]")[2] for path in CRATES.glob("*/Cargo.toml")}
    own_lints = [crate for crate, text in lints.items() if "workspace = true" not in text]
    assert own_lints == ["parkade-heap"]


def test_only_one_clippy_configuration() -> None:
    found = [path for path in ROOT.rglob("clippy.toml") if not {"target", ".venv"} & set(path.parts)]
    assert found == [ROOT / "clippy.toml"]


# Python


def python_modules() -> dict[str, Path]:
    """The modules of the package by their names inside it: `_wire.frames`; a package is its `__init__`."""
    found = {}
    for path in sorted(PYTHON.rglob("*.py")):
        parts = path.relative_to(PYTHON).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = python_modules()


def python_imports(module: str) -> set[str]:
    """The modules of the package that one imports, at its top or inside a function, including imports for types.

    Importing a module of another package implies importing that package first.
    """
    path = MODULES[module]
    folder = path.relative_to(PYTHON).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= len(folder) + 1, f"{path} imports from outside the package"
            parent = folder[: len(folder) - (node.level - 1)] + tuple(node.module.split(".") if node.module else ())
            names = [".".join((*parent, name.name)) for name in node.names]
            found |= {name if name in MODULES else ".".join(parent) for name in names}
    for imported in list(found):
        package = imported.partition(".")[0]
        found |= {package} if package != module.partition(".")[0] else set()
    return found


@pytest.mark.parametrize("module", [module for module in MODULES if module])
def test_python_imports_only_what_stands_before(module: str) -> None:
    own = module.partition(".")[0]
    assert own in PYTHON_ORDER, f"{own} has no place in PYTHON_ORDER: give it one"
    others = {imported.partition(".")[0] for imported in python_imports(module)} - {own}
    assert {other for other in others if PYTHON_ORDER.index(other) > PYTHON_ORDER.index(own)} == set()


def test_python_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {module: python_imports(module) for module in MODULES}
    while leaves := [module for module, imported in graph.items() if not imported & graph.keys()]:
        for module in leaves:
            del graph[module]
    assert graph == {}, "these import each other, or what does"


@pytest.mark.parametrize("part", ["_wire", "_session", "_link/answers.py"])
def test_the_session_knows_no_socket(part: str) -> None:
    files = [PYTHON / part] if part.endswith(".py") else sorted((PYTHON / part).rglob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            forbidden = {"socket", "asyncio", "select", "selectors", "threading", "time", "subprocess", "io"}
            assert not {name.split(".")[0] for name in names} & forbidden, path


def test_skins_do_not_import_each_other() -> None:
    for one, other in (("blocking", "concurrent"), ("concurrent", "blocking")):
        text = (PYTHON / "_link" / f"{one}.py").read_text()
        assert not re.search(rf"^\s*(from|import) .*\b{other}\b", text, re.MULTILINE)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PYTHON / "py.typed").exists()


# The tests themselves


def test_these_tests_know_only_http() -> None:
    """A black box: only `tests/apps` imports the application side of parkade."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "apps" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
                assert not [name for name in names if name.split(".")[0] == "parkade"], path


def test_nothing_sleeps_as_an_answer() -> None:
    """Only `harness/until.py` sleeps between two attempts. Applications may be slow, and a gate may delay."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "apps" not in path.parts and path.name not in ("until.py", "gate.py"):
            called = [
                ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
            ]
            assert not [name for name in called if name.endswith("sleep")], path


PROMISES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)


def test_every_promise_has_a_black_box_test() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "tests").glob("test_*.py")))
    proved = {int(number) for number in re.findall(r"^@pytest\.mark\.promise\((\d+)\)", text, re.MULTILINE)}
    assert proved == set(PROMISES)


@pytest.mark.parametrize("file", sorted(path.stem for path in (ROOT / "tests").glob("test_*.py")))
def test_every_test_file_is_listed(file: str) -> None:
    listed = (ROOT / "tests" / "README.md").read_text()
    assert f"`{file}`" in listed or f"`{file}.py`" in listed, "give it a row in tests/README.md"
