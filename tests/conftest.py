"""Fixtures of the black-box tests. See `tests/README.md`."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .harness.postgres import Postgres
from .harness.server import Server

Serve = Callable[..., Server]

Kind = dict[str, str]

KINDS: dict[str, Kind] = {"plain": {}, "loop": {"CONCURRENT": "yes"}}
"""The kinds of worker, as environment variables for the applications in `tests/apps`."""

DESCRIPTORS = 16_384
"""The limit that the tests with thousands of clients need; a higher one is left unchanged."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(number): proves a promise of the design (tests/README.md has the list)")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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


def _servers() -> Iterator[Serve]:
    with ExitStack() as stack:

        def dispose(server: Server) -> None:
            running.remove(server)
            server.dispose()

        def start(*target: Any, is_ready: bool = True, **settings: Any) -> Server:
            server = Server(*target, **settings)
            running.append(server)
            stack.callback(dispose, server)
            return server.ready(settings.get("workers")) if is_ready else server

        yield start


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, waits until they are ready, and ends them after the test.

    `serve("basic", workers=2, deadline="300ms")`: an application of `tests/apps`, or any target, and flags.
    """
    yield from _servers()


@pytest.fixture(scope="module")
def serve_for_all() -> Iterator[Serve]:
    """The same for all tests of a file."""
    yield from _servers()


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """The server that the tests of a file share, which is their fixture `shared`. After each test it is at rest."""
    yield shared
    shared.cleared()


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS.keys())
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of worker, plain and with an event loop, as the environment of a server."""
    chosen: Kind = request.param
    return chosen


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
