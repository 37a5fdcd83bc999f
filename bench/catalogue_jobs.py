"""What is compared on jobs: Parkade, with servers that work behind their answers, and with queues on PostgreSQL."""

import re
from dataclasses import replace
from pathlib import Path

import catalogue
from catalogue import PARKADE
from servers import Ports, Recipe
from settings import PEERS, VENV

WORKERS = 2


def parkade_log(folder: Path, workers: int = WORKERS) -> Recipe:
    """Durable: on the disk before the answer. All that it keeps is in this folder."""
    recipe = catalogue.parkade("log", workers, flags=["--state", str(folder / "state"), "--grace", "5s"])
    return _told(recipe, folder)


def threads(folder: Path) -> Recipe:
    return _told(
        Recipe(
            name="threads",
            command=lambda ports: [str(VENV / "python"), str(PEERS / "log_threads.py"), str(ports.main)],
            needs=[VENV / "python"],
        ),
        folder,
    )


def uvicorn(folder: Path) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "uvicorn"), "--loop", "uvloop", "--http", "httptools", "--no-access-log"),
            *("--workers", str(WORKERS), "--log-level", "warning", "--port", str(ports.main)),
            *("--app-dir", str(PEERS), "log_starlette:app"),
        ]

    return _told(Recipe("uvicorn + Starlette", command, [VENV / "uvicorn", _package("starlette")]), folder)


def granian(folder: Path) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "granian"), "--interface", "asgi", "--workers", str(WORKERS), "--loop", "uvloop", "--no-ws"),
            *("--log-level", "warning", "--host", "127.0.0.1", "--port", str(ports.main)),
            *("--working-dir", str(PEERS), "log_starlette:app"),
        ]

    return _told(Recipe("Granian + Starlette", command, [VENV / "granian", _package("starlette")]), folder)


def parkade_jobs(folder: Path) -> Recipe:
    """One worker for requests, so that jobs can be enqueued while both that run jobs are kept."""
    flags = ["--state", str(folder / "state"), "--job-workers", str(WORKERS), "--grace", "1s"]
    return _told(catalogue.parkade("jobs", flags=flags), folder)


def queue(library: str) -> list[Path]:
    """The file of a queue on PostgreSQL, behind what it needs."""
    return [VENV / "python", _package(library), PEERS / f"jobs_{library}.py"]


def log_file(folder: Path) -> Path:
    return folder / "log"


def jobs_file(folder: Path) -> Path:
    return folder / "jobs"


def gate(folder: Path) -> Path:
    return folder / "gate"


def is_parkade(recipe: Recipe) -> bool:
    return recipe.name.startswith(PARKADE)


def versions() -> dict[str, str]:
    return {name: _pinned(name) for name in ("procrastinate", "pgqueuer")}


def _told(recipe: Recipe, folder: Path) -> Recipe:
    settings = [
        f"LOG_FILE={log_file(folder)}",
        f"JOBS_FILE={jobs_file(folder)}",
        f"JOBS_GATE={gate(folder)}",
    ]
    return replace(recipe, command=lambda ports: ["env", *settings, *recipe.command(ports)])


def _package(name: str) -> Path:
    return next(VENV.parent.glob(f"lib/python*/site-packages/{name}"), Path("/nowhere") / name)


def _pinned(name: str) -> str:
    found = re.search(rf"^{name}==(.+)$", (PEERS / "requirements.txt").read_text(), re.MULTILINE)
    return f"{name} {found[1]}" if found else ""
