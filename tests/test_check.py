"""`parkade serve --check` refuses whatever `parkade serve` refuses, with the same words and the same exit status."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.ports import free_port
from .harness.postgres import Postgres
from .harness.server import APPS, PARKADE, clean_environment, run

APP = "from parkade import App\napp = App()\napp.get('/x', 'x')\n"
WITH_JOBS = APP + "@app.job\ndef write_log(line: str) -> None: ...\n"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def both(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """What `serve --check` and `serve` say of the same words, in this folder."""

    def ended(*more: str) -> subprocess.CompletedProcess[str]:
        command = [PARKADE, "serve", "app.py", *words, *more]
        if "--bind" not in words:
            command += ["--bind", "127.0.0.1:0"]
        environment = clean_environment(XDG_RUNTIME_DIR=str(folder))
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=30)

    return ended("--check"), ended()


@pytest.mark.parametrize(
    ("code", "words", "status", "says"),
    [
        (APP, ["--database", "mysql://x/y"], 2, "write postgres://"),
        (APP, ["--database", "shop"], 2, "--database"),
        (APP, ["--listen", "news"], 2, "--listen needs a PostgreSQL database"),
        (APP, ["--jobs", "mysql://x/y"], 2, "--jobs"),
        (APP, ["--bind", "127.0.0.1:{taken}"], 1, "another server uses it"),
        (APP, ["--bind", "192.0.2.1:80"], 1, "no such address"),
        (APP, ["--bind", "unix:/nowhere/x.sock"], 1, "cannot listen on unix:/nowhere/x.sock"),
        (APP, ["--admin", "{taken}"], 1, "cannot listen at the admin address"),
        (APP, ["--access-log", "text", "--access-log-file", "/nowhere/log"], 1, "cannot open the access log"),
        (APP, ["--python", "/nowhere/python3"], 2, "cannot run the interpreter /nowhere/python3"),
        (WITH_JOBS, ["--state", "nowhere/state"], 1, "--state"),
        ("x = 1", [], 1, "has no 'app'"),
        (APP + "from parkade import query\napp.get('/q', query('select 1', database='no'))\n", [], 1, "no"),
        (APP + "app.get('/{a:int}/{a:int}', 'x')\n", [], 1, "a"),
    ],
)
def test_what_serve_refuses_a_check_refuses(
    tmp_path: Path, taken: int, code: str, words: list[str], status: int, says: str
) -> None:
    (tmp_path / "app.py").write_text(code)
    check, serve = both(tmp_path, *(word.format(taken=taken) for word in words))
    assert (check.returncode, serve.returncode) == (status, status), check.stderr + serve.stderr
    assert says in check.stderr
    assert says in serve.stderr
    assert check.stdout == ""


def test_a_store_that_another_server_uses_is_refused(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WITH_JOBS)
    server = serve(tmp_path / "app.py", folder=tmp_path, state=tmp_path / "state")
    server.until(lambda status: any(worker["role"] == "jobs" for worker in status["workers"]))
    check, again = both(tmp_path, "--state", str(tmp_path / "state"))
    assert (check.returncode, again.returncode) == (1, 1)
    assert "is in use by another Parkade server" in check.stderr
    assert "--state" in check.stderr
    assert server.get("/x").text == "x"


def test_a_file_in_the_place_of_the_folder_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    (tmp_path / "app.py").write_text(WITH_JOBS)
    check, _ = both(tmp_path, "--state", str(tmp_path / "state"))
    assert (check.returncode, "--state" in check.stderr) == (1, True)


def test_a_database_of_jobs_is_tried_and_left(postgres: Postgres, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WITH_JOBS)
    good = postgres.url
    ended = run("serve", tmp_path / "app.py", "--check", "--bind", "127.0.0.1:0", "--jobs", good, "--state", tmp_path)
    assert (ended.returncode, ended.stdout) == (
        0,
        f"{tmp_path}/app.py loads: written for Parkade, 2 routes, 1 job\n",
    ), ended.stderr


def test_a_check_leaves_no_trace_where_others_look(tmp_path: Path) -> None:
    """It opens the addresses for a moment; commands find no server, and sockets are gone."""
    (tmp_path / "app.py").write_text(APP)
    path, port = tmp_path / "x.sock", free_port()
    check = run("serve", tmp_path / "app.py", "--check", "--bind", f"unix:{path}", "--admin", str(port))
    assert (check.returncode, check.stdout) == (0, f"{tmp_path}/app.py loads: written for Parkade, 1 route\n"), (
        check.stderr
    )
    assert not path.exists()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_routes_needs_no_address(taken: int, tmp_path: Path) -> None:
    ended = run("routes", APPS / "basic.py", "--bind", f"127.0.0.1:{taken}")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_folder_for_data_is_ignored_by_git(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WITH_JOBS)
    serve(tmp_path / "app.py", folder=tmp_path)
    assert (tmp_path / ".parkade" / ".gitignore").read_text().endswith("\n*\n")


WSGI = """
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"x"]
"""
ASGI = """
async def application(scope, receive, send):
    raise ValueError("nobody asks it")
"""


@pytest.mark.parametrize(
    ("source", "interface", "name"), [(APP, "native", "Parkade"), (WSGI, "wsgi", "WSGI"), (ASGI, "asgi", "ASGI")]
)
def test_everybody_is_told_what_the_application_is_written_for(
    serve: Serve, tmp_path: Path, source: str, interface: str, name: str
) -> None:
    (tmp_path / "app.py").write_text(source)
    check = run("serve", tmp_path / "app.py", "--check", "--bind", "127.0.0.1:0", "--state", tmp_path)
    told = f"written for {name}, {'1 route' if interface == 'native' else 'it decides its paths itself'}"
    assert (check.returncode, check.stdout) == (0, f"{tmp_path}/app.py loads: {told}\n"), check.stderr
    listed = run("routes", tmp_path / "app.py")
    told = f"The application decides its paths itself: it is written for {name}.\n"
    assert (told in listed.stdout) is (interface != "native")
    assert json.loads(run("routes", tmp_path / "app.py", "--json").stdout)["interface"] == interface
    server = serve(tmp_path / "app.py", workers=1)
    server.until_logged(rf'a worker is ready .*interface="?{name}')
    assert server.status()["interface"] == interface


NOISY = """
import logging
logging.getLogger("shop").warning("the price list is %d days old", 9)
"""


@pytest.mark.parametrize("end", ["", "raise RuntimeError('no luck')"], ids=["loads", "does not"])
def test_a_check_shows_the_last_line_that_the_application_logs(tmp_path: Path, end: str) -> None:
    """It comes over another pipe than whether the application has loaded."""
    talks = "import logging\nfor n in range(500): logging.getLogger('shop').warning('line %d', n)\n"
    (tmp_path / "app.py").write_text(APP + talks + end)
    told = run("serve", "--check", "--bind", "127.0.0.1:0", tmp_path / "app.py", "--state", tmp_path)
    assert told.returncode == (1 if end else 0), told.stderr
    assert "line 499" in told.stderr
    assert ("no luck" in told.stderr) == bool(end)


@pytest.mark.parametrize(
    "command", [["serve", "--check", "--bind", "127.0.0.1:0"], ["routes"]], ids=["check", "routes"]
)
def test_what_the_application_logs_while_it_loads_is_shown(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "app.py").write_text(NOISY + APP)
    told = run(*command, tmp_path / "app.py", "--state", tmp_path)
    assert told.returncode == 0, told.stderr
    assert "the price list is 9 days old" in told.stderr
    silent = run(*command, tmp_path / "app.py", "--state", tmp_path, "--log-level", "error")
    assert (silent.returncode, silent.stderr) == (0, "")
