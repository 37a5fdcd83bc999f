"""The servers that are compared on jobs: Parkade, servers that work after their responses, and other queues."""

import re
from dataclasses import replace
from pathlib import Path

import catalogue
import redis_server
from catalogue import PARKADE
from postgres import Cluster
from servers import Ports, Recipe
from settings import PEERS, VENV

WORKERS = 2
ON_POSTGRES = f"{PARKADE} on PostgreSQL"


def parkade_log(folder: Path, cluster: Cluster | None = None) -> Recipe:
    """As many processes as the peers have, half of them for requests.

    Durable: on disk before the response. All data is in this folder, except jobs if there is a cluster.
    """
    flags = [*_kept(folder, cluster), "--job-workers", str(WORKERS // 2), "--grace", "5s"]
    return _told(catalogue.parkade("log", WORKERS // 2, flags=flags), folder)


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


def parkade_jobs(folder: Path, cluster: Cluster | None = None) -> Recipe:
    """One worker for requests, so that jobs can be enqueued while both job workers are blocked."""
    flags = [*_kept(folder, cluster), "--job-workers", str(WORKERS), "--grace", "1s"]
    return _told(catalogue.parkade("jobs", flags=flags), folder)


def cleared(cluster: Cluster) -> None:
    """Drops the tables, so that every server creates its own again, Parkade too."""
    cluster.ask("drop schema if exists parkade cascade; drop schema public cascade; create schema public")


def queue(library: str) -> list[Path]:
    """The file of a queue, if everything it needs is installed."""
    return [VENV / "python", _package(library), PEERS / f"jobs_{library}.py"]


def log_file(folder: Path) -> Path:
    return folder / "log"


def jobs_file(folder: Path) -> Path:
    return folder / "jobs"


def gate(folder: Path) -> Path:
    return folder / "gate"


def kept_file(folder: Path) -> Path:
    return folder / "kept"


def is_parkade(recipe: Recipe) -> bool:
    return recipe.name.startswith(PARKADE)


def versions() -> dict[str, str]:
    pinned = {name: _pinned(name) for name in ("procrastinate", "pgqueuer", "arq")}
    return pinned | ({"Redis": found} if (found := redis_server.version()) else {})


def _kept(folder: Path, cluster: Cluster | None) -> list[str]:
    """The flags with the address."""
    return ["--state", str(folder / "state"), *(["--jobs", cluster.url] if cluster else [])]


def _told(recipe: Recipe, folder: Path) -> Recipe:
    settings = [
        f"LOG_FILE={log_file(folder)}",
        f"JOBS_FILE={jobs_file(folder)}",
        f"JOBS_GATE={gate(folder)}",
        f"JOBS_KEPT={kept_file(folder)}",
    ]
    return replace(recipe, command=lambda ports: ["env", *settings, *recipe.command(ports)])


def _package(name: str) -> Path:
    return next(VENV.parent.glob(f"lib/python*/site-packages/{name}"), Path("/nowhere") / name)


def _pinned(name: str) -> str:
    found = re.search(rf"^{name}==(.+)$", (PEERS / "requirements.txt").read_text(), re.MULTILINE)
    return f"{name} {found[1]}" if found else ""
