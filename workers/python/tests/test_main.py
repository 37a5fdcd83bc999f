"""Starting a worker: what TARGET may be, and what is said when it cannot be loaded."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from conftest import PACKAGE, StartCore
from parkade.__main__ import main
from parkade._link import process
from parkade._wire import frames as f

FINE = "from parkade import App\napp = other = App()\napp.get('/', 'fine')\n"


@pytest.mark.parametrize(
    "target", ["application", "application:app", "application:other", "application.py", "./application.py:other"]
)
def test_a_target_is_a_module_or_a_file(core: StartCore, target: str) -> None:
    worker = core(FINE, target)
    assert worker.ready().application.routes[0].kind == "constant"
    assert worker.end()[0] == 0


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (FINE, "nowhere", "there is no module 'nowhere'"),
        (FINE, "missing.py", "there is no file"),
        (FINE, "application:ap", "application has no 'ap'; did you mean 'app'?"),
        ("application = 1\n", "application", "application has no 'app'"),
        ("from parkade import App\nserver = App()\n", "application", "did you mean 'server'?"),
        ("app = 1\n", "application", "is an int, neither a parkade.App nor an application of ASGI or WSGI"),
        ("import nowhere\n", "application", "No module named 'nowhere'"),
        ("from parkade import App\napp = App()\n1 / 0\n", "application", "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "application", "SystemExit"),
        ("def f(:\n", "application", "SyntaxError"),
        (
            "from parkade import App\napp = App()\n@app.get('/{x}')\ndef f(y: int): ...\n",
            "application",
            "has no parameter for x",
        ),
        ("from parkade import App\napp = App()\n@app.on_start\ndef f(): 1 / 0\n", "application", "ZeroDivisionError"),
        (
            "from parkade import App\napp = App()\n@app.on_start\nasync def f(): 1 / 0\n",
            "application",
            "ZeroDivisionError",
        ),
    ],
)
def test_an_application_that_cannot_be_loaded_says_why(core: StartCore, source: str, target: str, said: str) -> None:
    worker = core(source, target)
    assert worker.names(1) == ["HELLO 0"]
    name, _, failed = worker.next()
    assert name == "FAILED"
    assert said in failed.text
    assert "importlib" not in failed.text
    assert "site-packages" not in failed.text
    assert worker.ended()[0] == 1


def test_a_developer_sees_the_traceback_and_others_do_not(core: StartCore) -> None:
    source = "from parkade import App\napp = App()\n@app.get('/')\ndef f(): raise ValueError('<secret>')\n"
    shown, hidden = core(source, dev=True), core(source)
    shown.ready()
    hidden.ready()
    page = shown.answer(0, headers={"accept": "text/html"})
    assert (page.status, "ValueError: &lt;secret&gt;" in page.body) == (500, True)
    assert "<secret>" not in page.body
    hidden_page = hidden.answer(0, headers={"accept": "text/html"}).body
    assert "the application failed; its log says why" in hidden_page
    assert "secret" not in hidden_page
    assert b"secret" not in hidden.answer(0, headers={"accept": "application/json"}).body
    errors = hidden.end()[1]
    assert "ValueError: <secret>" in errors
    assert str(PACKAGE / "parkade") not in errors
    assert str(PACKAGE / "parkade") not in page.body


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_the_core_leaves_the_worker_alone(core: StartCore, number: signal.Signals) -> None:
    worker = core(FINE)
    worker.ready()
    worker.process.send_signal(number)
    worker.send(f.PING, 0, [1])
    assert worker.names(1) == ["PONG 0"]
    assert worker.end()[0] == 0


def test_the_stack_of_an_endless_loop_can_be_seen(core: StartCore) -> None:
    worker = core(
        "from parkade import App\napp = App()\n@app.get('/')\ndef loop():\n    print('in')\n    while True: pass\n"
    )
    worker.ready()
    worker.request(0)
    assert worker.process.stderr is not None
    assert worker.process.stderr.readline() == "in\n"
    worker.process.send_signal(signal.SIGUSR1)
    assert any("in loop" in line for line in iter(worker.process.stderr.readline, ""))


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_worker_that_is_stuck_dies_with_its_core(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text("print('loading', flush=True)\nwhile True: pass\n")
    core = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'parkade', 'application']\n"
        "pipes = dict.fromkeys(['stdin', 'stdout', 'stderr'], subprocess.PIPE)\n"
        "worker = subprocess.Popen(command, bufsize=0, **pipes)\n"
        f"worker.stdin.write(bytes.fromhex({hello().hex()!r}))\n"
        "worker.stderr.readline()\n"
        "print(worker.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", core],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
    )
    assert process.stdout is not None
    worker = os.pidfd_open(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    assert select.select([worker], [], [], 20)[0], "the worker outlived its core"


@pytest.mark.parametrize("arguments", [["serve", "app.py", "--workers", "1"], ["--version"], []])
def test_started_by_a_person_it_is_the_command(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "parkade"
    command.write_text('#!/bin/sh\necho "$@"\n')
    command.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    became: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *given: became.extend(given))
    with open(os.devnull) as nothing:
        monkeypatch.setattr(process, "take_link", lambda: (_ for _ in ()).throw(OSError(nothing)))
        main(arguments)
    assert became == [str(command), [str(command), *arguments]]


def test_without_the_command_it_says_what_to_do(tmp_path: Path) -> None:
    program = "import sysconfig; sysconfig.get_path = lambda name: '/nowhere'; from parkade.__main__ import main; "
    done = subprocess.run(
        [sys.executable, "-c", program + "raise SystemExit(main(['serve', 'app.py']))"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path), "PYTHONPATH": str(PACKAGE)},
    )
    assert done.returncode == 2
    assert "`parkade serve app.py`" in done.stderr


def hello() -> bytes:
    return f.frame(f.HELLO, 0, b"\x94\x01\x01\x00\x80")
