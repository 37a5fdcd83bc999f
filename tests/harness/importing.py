"""`parkade import`: a folder with an application, what is printed for a file, and whether that is accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tomllib

from .server import run

APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hola"]

def create_app():
    return application

app = application
"""


def project_folder(tmp_path: Path) -> Path:
    """A folder with an application under the names that the files below use."""
    package = tmp_path / "mysite"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "wsgi.py").write_text(APPLICATION)
    (tmp_path / "app.py").write_text(APPLICATION)
    return tmp_path


def translated(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "parkade", "import", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def imported(project: Path, name: str, text: str) -> str:
    file = project / name
    file.write_text(text.replace("{project}", str(project)).replace("{home}", sys.prefix))
    ended = translated(file)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def settings(project: Path, printed: str, **served: object) -> dict[str, object]:
    """What was printed, after `parkade serve --check` has accepted it. Addresses are replaced: others may have them."""
    file = project / "parkade.toml"
    file.write_text(printed)
    found = tomllib.loads(printed)
    flags = ["--bind", "127.0.0.1:0", "--state", str(project / "state"), "--directory", str(project)]
    if "admin" in found:
        flags += ["--admin", "127.0.0.1:0"]
    if "socket-group" in found:  # a group that this machine may lack
        flags += ["--socket-group", "0", "--socket-mode", "660"]
    target = [] if "target" in found else ["app.py"]
    ended = run("serve", *target, "--check", "--config", str(file), *flags)
    assert ended.returncode == 0, ended.stderr + printed
    return found
