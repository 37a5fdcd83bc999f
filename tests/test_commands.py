"""`parkade reload` and `parkade stop`: they wait until it is done, and their exit status says how it went."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import PARKADE, Server, clean_environment, run

APP = """
import time
from parkade import App, after
app = App()
VERSION = {version!r}
@app.get("/version")
def version(): return VERSION
@app.get("/hola/{{name}}")
def hola(name: str): return f"Hola {{name}}"
@app.get("/after/{{seconds:float}}")
def later(seconds: float): return after(seconds)
"""


def command(server: Server, *words: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
    """Runs a command that asks this server, by its process id."""
    return run(*words, "--pid", str(server.pid), seconds=seconds, XDG_RUNTIME_DIR=str(server.folder))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(APP.format(version="one"))
    return file


def test_reload_returns_when_the_new_code_serves(serve: Serve, file: Path) -> None:
    server = serve(file, workers=2)
    file.write_text(APP.format(version="two"))
    ended = command(server, "reload")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{file} (process {server.pid}) is reloaded: generation 2 serves\n"
    assert server.get("/version").text == "two"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("def broken(:", "SyntaxError"),
        ("raise RuntimeError('the new code is broken')", "RuntimeError: the new code is broken"),
        ("import os; os._exit(4)", "exit status 4"),
        ("from parkade import App, query\napp = App()\napp.get('/x', query('select 1', database='no'))", "no"),
    ],
)
def test_reload_fails_with_the_traceback_of_code_that_does_not_load(
    serve: Serve, file: Path, broken: str, says: str
) -> None:
    server = serve(file)
    file.write_text(broken)
    ended = command(server, "reload")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert says in ended.stderr
    assert ended.stderr.endswith("the new code does not load (above); the old code goes on serving\n")
    assert server.get("/version").text == "one"
    assert says in server.status()["code"]["error"]
    file.write_text(APP.format(version="two"))
    assert command(server, "reload").returncode == 0
    assert server.status()["code"]["error"] is None


def test_each_of_many_who_reload_gets_code_from_after_its_request(serve: Serve, file: Path) -> None:
    """A reload that has begun may have read the file before it was changed."""
    server = serve(file)
    file.write_text(APP.format(version="two").replace("import time", "import time; time.sleep(1)"))
    first = subprocess.Popen(
        [PARKADE, "reload", "--pid", str(server.pid)], env=clean_environment(XDG_RUNTIME_DIR=str(server.folder))
    )
    server.until(lambda status: status["code"]["reloading"])
    file.write_text(APP.format(version="three"))
    assert command(server, "reload").returncode == 0
    assert server.get("/version").text == "three"
    assert first.wait(20) == 0


def test_reload_gives_up_waiting_after_its_timeout_but_the_reload_goes_on(serve: Serve, file: Path) -> None:
    server = serve(file)
    file.write_text(APP.format(version="two").replace("import time", "import time; time.sleep(2)"))
    ended = command(server, "reload", "--timeout", "100ms")
    assert ended.returncode == 1
    assert "still reloading after 100ms" in ended.stderr
    server.until(lambda status: status["code"]["last_reload"] == "done")
    assert server.get("/version").text == "two"


def test_a_script_can_follow_a_reload_over_http(serve: Serve, file: Path) -> None:
    server = serve(file)
    status, body = server.admin("POST", "/reload?wait=20")
    assert (status, json.loads(body)) == (200, {"reload": 1, "state": "done", "generation": 2, "error": None})
    file.write_text("nothing = 1")
    status, body = server.admin("POST", "/reload?wait=20")
    told = json.loads(body)
    assert (status, told["reload"], told["state"], "has no 'app'" in told["error"]) == (200, 2, "aborted", True)
    assert json.loads(server.admin("GET", "/reload/2")[1]) == told
    assert server.admin("GET", "/reload/3")[0] == 404
    assert server.admin("POST", "/reload", Origin="http://evil.example")[0] == 403


def test_stop_returns_when_the_server_has_ended(serve: Serve, file: Path) -> None:
    server = serve(file, grace="20s")
    client = server.connect().ask("GET", "/after/1")
    server.until_parked(1)
    ended = command(server, "stop")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{file} (process {server.pid}) has stopped\n"
    assert not server.private.exists()
    assert server.ended(5) == 0
    assert client.answer().status == 204, "what was waiting had its time"


def test_stop_says_what_still_runs_and_can_end_it(serve: Serve, file: Path) -> None:
    server = serve(file, grace="60s")
    client = server.connect().ask("GET", "/after/50")
    server.until_parked(1)
    ended = command(server, "stop", "--timeout", "300ms")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "1 parked" in ended.stderr
    assert "parkade stop --now" in ended.stderr
    assert command(server, "reload").returncode == 1, "a server that stops does not reload"
    ended = command(server, "stop", "--now")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert client.answer().status == 503
    assert server.ended(5) == 0


def test_both_reach_a_server_by_its_admin_address(serve: Serve, file: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    server = serve(file, admin=address)
    assert run("reload", "--admin", address).returncode == 0
    assert server.status()["code"]["generation"] == 2
    with Client(("127.0.0.1", int(address.rpartition(":")[2])), host=address) as page:
        assert page.ask("POST", "/stop", "Origin: http://evil.example").answer().status == 403
    ended = run("stop", "--admin", address)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert server.ended(5) == 0
