"""The servers that run the same unchanged applications of WSGI and ASGI, by default with one worker."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import catalogue
from servers import Ports, Recipe, told_waiting, waits
from settings import BENCH, PEERS, VENV

APPS = BENCH / "apps" / "hosted"


def parkade(module: str, workers: int = 1) -> Recipe:
    return replace(catalogue.parkade(f"hosted/{module}", workers), waiting=waits)


def granian(module: str, interface: str, tuned: bool = False) -> Recipe:
    """Tuned: without the blocking threads that it starts for WSGI, and with the loop that it recommends for ASGI."""
    flags = [] if not tuned else ["--blocking-threads", "1"] if interface == "wsgi" else ["--loop", "uvloop", "--no-ws"]
    words = ["--interface", interface, "--workers", "1", "--log-level", "warning", *flags]
    where = ["--host", "127.0.0.1", "--port", "{port}", "--working-dir", str(APPS), f"{module}:app"]
    program = VENV / "granian"
    return _recipe("Granian, tuned" if tuned else "Granian", module, program, [str(program), *words, *where])


def uvicorn(module: str, folder: Path = APPS) -> Recipe:
    program = VENV / "uvicorn"
    words = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    where = ["--backlog", "4096", "--port", "{port}", "--app-dir", str(folder), f"{module}:app"]
    return _recipe("uvicorn", module, program, [str(program), *words, *where], folder)


def gunicorn(module: str, kind: str = "sync", workers: int = 1, folder: Path = APPS) -> Recipe:
    program = VENV / "gunicorn"
    words = ["--workers", str(workers), "--worker-class", kind, "--log-level", "warning", "--backlog", "4096"]
    words += ["--worker-connections", "20000", "--timeout", "120", "--keep-alive", "75"] if kind == "gevent" else []
    where = ["--bind", "127.0.0.1:{port}", "--chdir", str(folder), f"{module}:app"]
    return _recipe(f"Gunicorn {kind}", module, program, [str(program), *words, *where], folder)


def uwsgi(module: str, workers: int = 1, flags: Sequence[str] = (), folder: Path = APPS) -> Recipe:
    program = VENV / "uwsgi"
    words = ["--master", "--processes", str(workers), "--disable-logging", "--http-keepalive", "--need-app"]
    where = ["--http-socket", "127.0.0.1:{port}", "--chdir", str(folder), "--module", f"{module}:app"]
    return _recipe("uWSGI", module, program, [str(program), *words, "--die-on-term", *flags, *where], folder)


def on_bus(recipe: Recipe, tells: bool = True) -> Recipe:
    """With `peers/bus.py`: the processes of the server are told what is posted. How many requests wait is not known if
    most of them have not reached the application.
    """
    bus = PEERS / "bus.py"

    def command(ports: Ports) -> list[str]:
        return [sys.executable, str(bus), str(ports.admin), *recipe.command(ports)]

    where = "http://127.0.0.1:{admin}/"
    return replace(recipe, command=command, publish=where, status=where if tells else None, waiting=told_waiting)


def _recipe(server: str, module: str, program: Path, words: list[str], folder: Path = APPS) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [word.replace("{port}", str(ports.main)) for word in words]

    return Recipe(
        name=server,
        command=command,
        needs=[program, folder / f"{module}.py"],
        ready="http://127.0.0.1:{main}/",
    )
