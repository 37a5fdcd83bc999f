"""Fixtures of the black-box tests. See `tests/README.md`."""

from __future__ import annotations

import compileall
import re
import resource
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .harness import perl
from .harness.postgres import Postgres
from .harness.server import APPS, ROOT, Server
from .harness.websocket import Opener

Serve = Callable[..., Server]
Application = Callable[..., Path]

Kind = dict[str, str]

KINDS: dict[str, Kind] = {"plain": {}, "loop": {"CONCURRENT": "yes"}}
"""The kinds of worker in Python, as environment variables for the applications in `tests/apps`."""

LANGUAGES = ("python", "perl")
"""The languages of workers. The applications in `tests/apps/perl` do what those in `tests/apps` do."""

DESCRIPTORS = 16_384
"""The limit that the tests with thousands of clients need; a higher one is left unchanged."""


PARTS = re.findall(
    r"^\\| `(\\w+)` \\|", (ROOT / "protocol" / "PROTOCOL.md").read_text().split("| name | optional")[1], re.M
)
"""The optional parts of the protocol."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parkade", "the tests that are about no language, against another worker")
    group.addoption("--worker", metavar="COMMAND", help="what `parkade serve --worker` runs")
    group.addoption(
        "--applications", metavar="FOLDER", help="its applications: `basic.rb` does what apps/basic.py does"
    )
    group.addoption("--has", metavar="PARTS", help="the optional parts of the protocol that it has; all, if not given")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(number): proves a promise of the design (tests/README.md has the list)")
    config.addinivalue_line("markers", "also_in_perl: runs against the worker for Perl, too")
    config.addinivalue_line("markers", "python_only(reason): in a file that is also_in_perl, runs for Python alone")
    config.addinivalue_line("markers", "needs(part, ...): of a test that is also_in_perl: what its worker must have")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if not hasattr(config, "workerinput"):  # once, not in each process of pytest-xdist
        _compile()


def _compile() -> None:
    """Compiles what workers import. They write no bytecode themselves, because a file that a test writes twice within a
    second would stay the first; without any, each start of a worker compiles for up to 0.3 s.
    """
    for folder in (ROOT / "workers" / "python" / "src", APPS, ROOT / "examples"):
        compileall.compile_dir(folder, quiet=2)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each kind of worker, and each language of the tests that are not about Python."""
    marks = list(metafunc.definition.iter_markers())
    taken = [mark.args[0] for mark in marks if mark.name == "parametrize"]
    in_perl = any(mark.name == "also_in_perl" for mark in marks)

    def is_open(name: str) -> bool:
        return name in metafunc.fixturenames and not any(name in told for told in taken)

    if metafunc.config.getoption("worker"):
        return
    if is_open("kind"):
        metafunc.parametrize("kind", [*KINDS, "perl"] if in_perl else KINDS, indirect=True, scope="module")
    elif is_open("language") and in_perl:
        metafunc.parametrize("language", LANGUAGES, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test, or one of its parameters, that is `python_only` does not run in Perl. Another worker gets those for
    which it has the parts.
    """
    worker, told = config.getoption("worker"), config.getoption("has")
    has = set(PARTS if told is None else filter(None, told.split(",")))
    assert has <= set(PARTS), f"--has names no part of the protocol: {sorted(has - set(PARTS))}; there are {PARTS}"

    def needs(item: pytest.Item) -> set[str]:
        mark = item.get_closest_marker("needs")
        return set(PARTS if mark is None else mark.args)

    def is_left_out(item: pytest.Item) -> bool:
        if worker:
            is_neutral = item.get_closest_marker("also_in_perl") and not item.get_closest_marker("python_only")
            return not is_neutral or not needs(item) <= has
        parameters = getattr(item, "callspec", None)
        in_perl = parameters and "perl" in (parameters.params.get("kind"), parameters.params.get("language"))
        return bool(in_perl and item.get_closest_marker("python_only"))

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


running: list[Server] = []
"""The servers of the running tests."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After a failure, shows the status of the test's servers and the ends of their logs."""
    report = yield
    if call.when == "call" and report.failed:
        report.sections += [(f"server {server.process.pid}", server.told()) for server in running]
    return report


def _servers(language: str, config: pytest.Config) -> Iterator[Serve]:
    with ExitStack() as stack:
        worker, applications = config.getoption("worker"), config.getoption("applications")

        def dispose(server: Server) -> None:
            running.remove(server)
            server.dispose()

        def start(*target: Any, is_ready: bool = True, **settings: Any) -> Server:
            if language == "perl" and target == ("shop_queries",) and not perl.has("Future::AsyncAwait"):
                pytest.skip("there is no Future::AsyncAwait")
            if worker:
                found = sorted(Path(applications).resolve().glob(f"{target[0]}.*")) or pytest.skip(f"no {target[0]}")
                target, settings = (found[0],), settings | {"worker": worker}
            server = Server(*target, **{"language": language} | settings)
            running.append(server)
            stack.callback(dispose, server)
            return server.ready(settings.get("workers")) if is_ready else server

        yield start


@pytest.fixture(scope="module")
def language(request: pytest.FixtureRequest) -> str:
    """In which language the applications of a test are written."""
    return _installed(getattr(request, "param", "python"))


def _installed(language: str) -> str:
    if language == "perl" and not perl.has("JSON::PP"):
        pytest.skip("there is no Perl")
    return language


@pytest.fixture
def serve(language: str, pytestconfig: pytest.Config) -> Iterator[Serve]:
    """Starts servers, waits until they are ready, and ends them after the test.

    `serve("basic", workers=2, deadline="300ms")`: an application of `tests/apps`, or any target, and flags.
    """
    yield from _servers(language, pytestconfig)


@pytest.fixture(scope="module")
def serve_for_all(language: str, pytestconfig: pytest.Config) -> Iterator[Serve]:
    """The same for all tests of a file."""
    yield from _servers(language, pytestconfig)


@pytest.fixture
def application(language: str, tmp_path: Path) -> Application:
    """Writes an application of the test's own: `application(python="...", perl="...")`."""

    def write(language: str = language, **code: str) -> Path:
        file = tmp_path / ("shop.py" if language == "python" else "shop.pl")
        file.write_text(code[language])
        return file

    return write


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """The server that the tests of a file share, which is their fixture `shared`. After each test it is at rest."""
    yield shared
    shared.cleared()


@pytest.fixture(params=["1.1", "2"], ids=["http1", "http2"])
def opened(request: pytest.FixtureRequest) -> Opener:
    """Opens WebSockets over each version of HTTP."""
    return Opener(request.param)


@pytest.fixture(scope="module")
def asgi(serve_for_all: Serve) -> Server:
    """WebSockets of an application of ASGI."""
    return serve_for_all("sockets_asgi", workers=1)


@pytest.fixture(scope="module")
def native(serve_for_all: Serve) -> Server:
    """WebSockets of a native application."""
    return serve_for_all("sockets_native", workers=1)


@pytest.fixture(scope="module")
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of worker, as the environment of a server: plain, with an event loop, and (`also_in_perl`) in Perl."""
    name = getattr(request, "param", "plain")
    return {"LANGUAGE": _installed("perl")} if name == "perl" else KINDS[name]


@pytest.fixture(scope="module", params=["in C", "in Perl"])
def perl_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each loop that a worker in Perl has for applications of PSGI."""
    if request.param == "in C" and not perl.is_compiled():
        pytest.skip("the loop in C was not built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARKADE_ACCELERATOR", "1" if request.param == "in C" else "0")
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for all tests of this process; each process of pytest-xdist has its own."""
    with ExitStack() as stack:
        server = Postgres()
        stack.callback(server.stop)
        yield server


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a Unix socket, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="pk-") as folder:
        yield Path(folder)
