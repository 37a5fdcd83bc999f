"""Who may import whom: `errors <- _wire <- _session <- _link <- waits <- app <- __main__`, and nobody back."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "parkade"
ORDER = [
    "errors",
    "log",
    "limits",
    "_wire",
    "_answers",
    "_events",
    "_streams",
    "_session",
    "_link",
    "mappings",
    "percent",
    "forms",
    "records",
    "decimals",
    "bodies",
    "charsets",
    "cookies",
    "request",
    "job",
    "converters",
    "functions",
    "rows",
    "waits",
    "placeholders",
    "queries",
    "transactions",
    "response",
    "job_options",
    "job_arguments",
    "job_values",
    "job_client",
    "jobs",
    "schedules",
    "sources",
    "parameters",
    "patterns",
    "routes",
    "hooks",
    "job_access",
    "pages",
    "job_runs",
    "handling",
    "job_registry",
    "app",
    "_rehearsal",
    "_test_loop",
    "_test_beside",
    "_test_found",
    "_test_database",
    "_test_response",
    "_test_jobs",
    "_test_job_route",
    "_test_port",
    "_test_request",
    "testing",
    "loading",
    "__main__",
]


def test_every_module_imports_only_what_stands_before_it() -> None:
    backwards = [
        f"{module} imports {imported}"
        for module, imported in imports()
        if module != imported and ORDER.index(imported) >= ORDER.index(module)
    ]
    assert backwards == []


def imports() -> list[tuple[str, str]]:
    """Each import inside the package, as the modules of `ORDER` that it joins."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        tree = ast.parse(file.read_text())
        guarded = {child for node in ast.walk(tree) if _type_checking(node) for child in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level and node not in guarded:
                found += [(parts[0], imported) for imported in _targets(node, len(parts))]
    return found


def _targets(node: ast.ImportFrom, depth: int) -> list[str]:
    """`from .._wire import frames` and `from . import port` in a module at that depth: the modules of the package they
    mean.
    """
    if depth - node.level > 0:
        return []  # inside a sub-package
    return [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_no_file_is_longer_than_a_page_too_many() -> None:
    """style.md, rule 12: 300 lines are a question, 500 an answer."""
    assert [file.name for file in PACKAGE.rglob("*.py") if len(file.read_text().splitlines()) > 500] == []
