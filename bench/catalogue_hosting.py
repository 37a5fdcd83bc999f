"""The servers that run the same unchanged applications of WSGI and ASGI, each with one worker."""

from pathlib import Path

import catalogue
from servers import Ports, Recipe
from settings import BENCH, VENV

APPS = BENCH / "apps" / "hosted"


def parkade(module: str) -> Recipe:
    return catalogue.parkade(f"hosted/{module}", label=module)


def granian(module: str, interface: str, tuned: bool = False) -> Recipe:
    """Tuned: without the blocking threads that it starts for WSGI, and with the loop that it recommends for ASGI."""
    flags = [] if not tuned else ["--blocking-threads", "1"] if interface == "wsgi" else ["--loop", "uvloop", "--no-ws"]
    words = ["--interface", interface, "--workers", "1", "--log-level", "warning", *flags]
    where = ["--host", "127.0.0.1", "--port", "{port}", "--working-dir", str(APPS), f"{module}:app"]
    program = VENV / "granian"
    return _recipe("Granian tuned" if tuned else "Granian", module, program, [str(program), *words, *where])


def uvicorn(module: str) -> Recipe:
    program = VENV / "uvicorn"
    words = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    where = ["--backlog", "4096", "--port", "{port}", "--app-dir", str(APPS), f"{module}:app"]
    return _recipe("uvicorn", module, program, [str(program), *words, *where])


def gunicorn(module: str) -> Recipe:
    program = VENV / "gunicorn"
    words = ["--workers", "1", "--worker-class", "sync", "--log-level", "warning", "--backlog", "4096"]
    where = ["--bind", "127.0.0.1:{port}", "--chdir", str(APPS), f"{module}:app"]
    return _recipe("Gunicorn sync", module, program, [str(program), *words, *where])


def uwsgi(module: str) -> Recipe:
    program = VENV / "uwsgi"
    words = ["--master", "--processes", "1", "--disable-logging", "--http-keepalive", "--need-app", "--die-on-term"]
    where = ["--http-socket", "127.0.0.1:{port}", "--chdir", str(APPS), "--module", f"{module}:app"]
    return _recipe("uWSGI", module, program, [str(program), *words, *where])


def _recipe(server: str, module: str, program: Path, words: list[str]) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [word.replace("{port}", str(ports.main)) for word in words]

    return Recipe(
        name=f"{server} {module}",
        command=command,
        needs=[program, APPS / f"{module}.py"],
        ready="http://127.0.0.1:{main}/",
    )
