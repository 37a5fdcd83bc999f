"""The servers that are compared on queries: Parkade, with each of its peers, all with a pool of 16."""

import re
from collections.abc import Callable
from pathlib import Path

import catalogue
import postgres
from catalogue import PARKADE
from postgres import Cluster
from servers import Ports, Recipe
from settings import PEERS, ROOT, VENV

POOL_SIZE = 16


def parkade(cluster: Cluster, app: str = "queries", label: str = "", slots: int = POOL_SIZE, flags: str = "") -> Recipe:
    return catalogue.parkade(
        app, label=label, flags=["--database", cluster.url, "--database-slots", str(slots), *flags.split()]
    )


def uvicorn(cluster: Cluster) -> Recipe:
    return _asgi("uvicorn + asyncpg", cluster, "uvicorn_postgres:app")


def starlette(cluster: Cluster) -> Recipe:
    return _asgi("Starlette + asyncpg + orjson", cluster, "starlette_postgres:app")


def granian(cluster: Cluster) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "granian"), "--interface", "asgi", "--workers", "1", "--loop", "uvloop", "--no-ws"),
            *("--log-level", "warning", "--host", "127.0.0.1", "--port", str(ports.main)),
            *("--working-dir", str(PEERS), "uvicorn_postgres:app"),
        ]

    needs = [VENV / "granian", _package("asyncpg")]
    return Recipe("Granian + asyncpg", _told(command, DATABASE_URL=cluster.url), needs)


def starman(cluster: Cluster) -> Recipe:
    """One worker for each connection. With keep-alive, which triples its rate, 16 clients keep all workers busy."""

    def command(ports: Ports) -> list[str]:
        return [
            *("starman", "--listen", f"127.0.0.1:{ports.main}", "--workers", str(POOL_SIZE)),
            *("--max-requests", "1000000", str(PEERS / "starman_postgres.psgi")),
        ]

    needs = [catalogue.on_path("starman"), perl_driver()]
    return Recipe("Starman + DBD::Pg", _told(command, DATABASE_DSN=cluster.dsn), needs)


def axum(cluster: Cluster) -> Recipe:
    binary = PEERS / "axum_postgres" / "target" / "release" / "axum-postgres-peer"
    return Recipe(
        name="axum + deadpool + tokio-postgres",
        command=lambda ports: [str(binary), f"127.0.0.1:{ports.main}", cluster.url],
        needs=[binary],
    )


def perl_driver() -> Path:
    """DBD::Pg as Debian installs it; a path that does not exist if it is not installed."""
    return next(Path("/usr/lib").glob("*/perl5/*/DBD/Pg.pm"), Path("/nowhere/DBD/Pg.pm"))


def serial_driver() -> Path:
    """Our own driver without a server: `cargo build --release -p parkade-postgres --example serial`."""
    return ROOT / "target" / "release" / "examples" / "serial"


def versions() -> dict[str, str]:
    lock = PEERS / "axum_postgres" / "Cargo.lock"
    return {
        "PostgreSQL": postgres.version(),
        "DBD::Pg": catalogue.first_line(["perl", "-MDBD::Pg", "-e", "print qq(DBD::Pg $DBD::Pg::VERSION)"]),
        **{name: _pinned(name) for name in ("asyncpg", "starlette", "orjson")},
        **{name: catalogue.locked_version(lock, name) for name in ("tokio-postgres", "deadpool-postgres")},
    }


def is_parkade(recipe: Recipe) -> bool:
    return recipe.name.startswith(PARKADE)


def _asgi(name: str, cluster: Cluster, target: str) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "uvicorn"), "--loop", "uvloop", "--http", "httptools", "--no-access-log"),
            *("--backlog", "4096", "--log-level", "warning", "--port", str(ports.main)),
            *("--app-dir", str(PEERS), target),
        ]

    return Recipe(name, _told(command, DATABASE_URL=cluster.url), [VENV / "uvicorn", _package("asyncpg")])


def _told(command: Callable[[Ports], list[str]], **environment: str) -> Callable[[Ports], list[str]]:
    settings = [f"{name}={value}" for name, value in environment.items()]
    return lambda ports: ["env", *settings, *command(ports)]


def _package(name: str) -> Path:
    return next(VENV.parent.glob(f"lib/python*/site-packages/{name}"), Path("/nowhere") / name)


def _pinned(name: str) -> str:
    found = re.search(rf"^{name}==(.+)$", (PEERS / "requirements.txt").read_text(), re.MULTILINE)
    return f"{name} {found[1]}" if found else ""
