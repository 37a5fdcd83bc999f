"""The command line as people type it: habits from other servers, which application, how an address is written."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import APPS, PARKADE, PYTHON, clean_environment, run
from .harness.until import until

BASIC = str(APPS / "basic.py")
APP = "from parkade import App\napp = App()\napp.get('/x', 'x')\napp.get('/hola/you', 'Hola you')\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "9113"], "there is no --port: write --bind 127.0.0.1:9113"),
        (["-p", "9113"], "there is no -p: write --bind 127.0.0.1:9113"),
        (["--host", "0.0.0.0", "--port", "80"], "there is no --host: write --bind 0.0.0.0:80"),
        (["--reload"], "parkade dev"),
        (["--uds", "/run/x.sock"], "write --bind unix:/run/x.sock"),
        (["--timeout", "9"], "write --deadline 9"),
    ],
)
def test_a_flag_of_another_server_says_what_to_write(words: list[str], says: str) -> None:
    ended = run("serve", BASIC, *words)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr


def test_short_flags_and_a_bare_port_are_accepted(serve: Serve) -> None:
    port = free_port()
    server = serve("basic", bind=port, admin=free_port())
    assert server.address == ("127.0.0.1", port)
    ended = run("serve", BASIC, "-b", "127.0.0.1:0", "-w", "1", "--check")
    assert (ended.returncode, ended.stderr) == (0, ended.stderr)


@pytest.mark.parametrize("how", ["{port}", "localhost:{port}", "127.0.0.1:{port}"])
def test_an_admin_address_is_written_alike_for_the_server_and_for_commands(serve: Serve, how: str) -> None:
    address = how.format(port=free_port())
    server = serve("basic", admin=address)
    ended = run("status", "--json", "--admin", address)
    assert (ended.returncode, json.loads(ended.stdout)["pid"]) == (0, server.pid)


def test_an_admin_address_may_be_a_socket_file_for_the_servers_user_alone(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "admin.sock"
    server = serve("basic", admin=f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    ended = run("status", "--json", "--admin", f"unix:{path}")
    assert (ended.returncode, json.loads(ended.stdout)["pid"]) == (0, server.pid)
    with Client(str(path)) as client:
        assert client.get("/health/ready").status == 200
    assert server.stop() == 0
    assert not path.exists()


def test_without_a_target_it_is_app_py(serve: Serve, tmp_path: Path) -> None:
    nobody = run("serve", "--directory", tmp_path)
    assert (nobody.returncode, "there is no app.py, manage.py or app.psgi in this folder" in nobody.stderr) == (
        2,
        True,
    ), nobody.stderr
    (tmp_path / "app.py").write_text(APP)
    for words in ([], ["."]):
        ended = run("serve", *words, "--check", "--bind", "127.0.0.1:0", "--directory", tmp_path)
        assert (ended.returncode, ended.stdout) == (0, "app.py loads: written for Parkade, 2 routes\n"), ended.stderr
    server = serve(f"{tmp_path}/")
    assert server.get("/x").text == "x"


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    ended = run("serve", "--directory", tmp_path / "nosuch")
    assert (ended.returncode, f"{tmp_path}/nosuch" in ended.stderr) == (2, True), ended.stderr


def test_a_dot_instead_of_a_colon_is_told(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text(APP)
    ended = run("serve", "ok.app", "--directory", tmp_path)
    assert (ended.returncode, "did you mean `ok:app`?" in ended.stderr) == (2, True), ended.stderr


@pytest.mark.parametrize("words", [["serve", BASIC], ["serve", BASIC, "--check"], ["routes", BASIC]])
def test_an_interpreter_that_cannot_be_run_is_named(words: list[str], tmp_path: Path) -> None:
    unable = tmp_path / "python"
    unable.write_text("")
    folder = tmp_path / "environment"
    folder.mkdir()
    for python, why in (
        ("/nope/python3", "No such file"),
        ("no-such-python", "there is no such program"),
        (str(unable), "Permission denied"),
        (str(folder), "it is a folder"),
    ):
        ended = run(*words, "--python", python)
        assert ended.returncode == 2
        assert f"cannot run the interpreter {python}: {why}" in ended.stderr, ended.stderr


def test_an_interpreter_without_the_package_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {PYTHON} -S -I "$@"\n')
    python.chmod(0o755)
    ended = run("serve", BASIC, "--check", "--python", python, "--bind", "127.0.0.1:0")
    assert ended.returncode == 1
    assert f"It ran {python}, where the package parkade must be installed" in ended.stderr, ended.stderr
    assert "No module named parkade" in ended.stderr


@pytest.mark.parametrize("is_link", [False, True], ids=["not executable", "a link that leads nowhere"])
def test_the_interpreter_next_to_the_command_is_never_silently_another(is_link: bool, tmp_path: Path) -> None:
    """Another one would not have the same packages."""
    command, python = tmp_path / "parkade", tmp_path / "python"
    command.symlink_to(Path(PARKADE).resolve())
    if is_link:
        python.symlink_to("/nowhere/python3")
    else:
        python.write_text("")
    words = [command, "serve", BASIC, "--check", "--bind", "127.0.0.1:0"]
    ended = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), timeout=30)
    assert (ended.returncode, f"cannot run the interpreter {python}: " in ended.stderr) == (2, True), ended.stderr


def test_help_is_short_with_h_and_full_with_help() -> None:
    short, full = (run("serve", flag).stdout for flag in ("-h", "--help"))
    assert len(short.splitlines()) < 60 < len(full.splitlines())
    for told in (short, full):
        assert "Examples:" in told
        assert "--bind" in told
    assert "parkade serve --help" in short
    assert ("--recycle-jitter" in short, "--recycle-jitter" in full) == (False, True)
    assert "--check" in full.partition("Listening:")[0], "it is not a setting of the log"
    routes = run("routes", "--help").stdout
    assert ("--python" in routes, "--bind" in routes) == (True, False)


def test_the_version_has_its_target() -> None:
    target = r"[a-z0-9_]+-[a-z0-9_-]+"
    assert re.fullmatch(rf"parkade \d+\.\d+\.\d+ \(([0-9a-f]{{12}}, )?{target}\)\n", run("--version").stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_are_completions_for_shells(shell: str) -> None:
    ended = run("completions", shell)
    assert ended.returncode == 0
    assert all(word in ended.stdout for word in ("enqueue", "reload", "deadline"))


def test_several_servers_are_told_apart_by_what_they_serve_and_where(serve: Serve, short_folder: Path) -> None:
    environment = {"XDG_RUNTIME_DIR": str(short_folder)}
    servers = []
    for _ in range(2):
        server = serve("basic", environment=environment, is_ready=False)
        until("its socket", (short_folder / "parkade" / f"{server.pid}.sock").exists)
        servers.append(server)
    several = run("reload", XDG_RUNTIME_DIR=str(short_folder))
    assert several.returncode == 1
    for server in servers:
        host, port = server.address
        assert f"--pid {server.pid}  {BASIC} at http://{host}:{port}\n" in several.stderr


def test_publish_ends_its_line(serve: Serve) -> None:
    server = serve("basic")
    ended = run("publish", "news", "hello", "--pid", str(server.pid), XDG_RUNTIME_DIR=str(server.folder))
    assert re.fullmatch(r"[0-9a-f]+\.\d+\n", ended.stdout)
