"""The servers that run the same unchanged application of PSGI."""

import json
import subprocess
from pathlib import Path

import catalogue
from servers import Ports, Recipe, Unavailable
from settings import BENCH, PEERS, ROOT

HOLA = BENCH / "apps" / "perl" / "hola.psgi"
TWIGGY = ROOT / "examples" / "twiggy" / "app.psgi"

DEPLOYED = ["env", "PLACK_ENV=deployment"]
"""Some servers do not say so themselves, and frameworks log every request in development."""


def parkade(label: str = "", workers: int = 1, is_compiled: bool = True, app: Path = HOLA) -> Recipe:
    """In C, or everything in Perl."""
    loop = next((ROOT / "workers" / "perl" / "arch").glob("*/*/auto/Parkade/Parkade.*"), Path("/nowhere/Parkade.so"))
    return catalogue.parkade(
        str(app),
        workers=workers,
        label=label,
        before=DEPLOYED if is_compiled else [*DEPLOYED, "PARKADE_ACCELERATOR=0"],
        needs=[loop] if is_compiled else [],
    )


def starman(workers: int, app: Path = HOLA) -> Recipe:
    """A worker stays with a client while that asks, as it does by default."""
    words = ["--workers", str(workers), "--backlog", "4096", "--max-requests", "100000000"]
    where = ["--listen", "127.0.0.1:{port}", str(app)]
    return _recipe(f"Starman, {workers} workers", [catalogue.on_path("starman")], ["starman", *words, *where])


def feersum() -> Recipe:
    words = ["feersum", "--listen", "127.0.0.1:{port}", str(HOLA)]
    return _recipe("Feersum", [catalogue.on_path("feersum")], words)


def uwsgi(processes: int, app: Path = HOLA) -> Recipe:
    program = catalogue.on_path("uwsgi-core")
    words = ["--master", "--processes", str(processes), "--disable-logging", "--die-on-term"]
    where = ["--http-socket", "127.0.0.1:{port}", "--plugins", "psgi", "--psgi", str(app)]
    return _recipe(f"uWSGI, {processes} processes", [program], [str(program), *words, *where])


def twiggy(app: Path = TWIGGY) -> Recipe:
    words = ["twiggy", "--listen", "127.0.0.1:{port}", "--backlog", "4096", str(app)]
    return _recipe("Twiggy", [catalogue.on_path("twiggy")], words)


def called(app: Path, path: str, seconds: float) -> dict[str, float]:
    """Calls the application without any server, in one process: what a request costs at least."""
    words = ["perl", str(PEERS / "psgi_calls.pl"), str(app), path, str(seconds)]
    done = subprocess.run([*DEPLOYED, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"failed: {done.stderr.strip()[-200:]}")
    found = json.loads(done.stdout)
    return {
        "per_second": found["calls"] / found["seconds"],
        "cpu_us": found["cpu_seconds"] / found["calls"] * 1e6,
    }


def versions() -> dict[str, str]:
    modules = ("Feersum", "Mojolicious", "Dancer2", "Web::Simple")
    commands = {
        "Perl": ["perl", "-e", "print qq(Perl $^V)"],
        **{name: ["perl", f"-M{name}", "-e", f"print q({name} ), {name}->VERSION"] for name in modules},
        "uWSGI for Perl": ["dpkg-query", "-W", "-f", "uWSGI ${Version}", "uwsgi-plugin-psgi"],
    }
    found = {name: catalogue.first_line(command) for name, command in commands.items()}
    return {name: text for name, text in found.items() if text}


def _recipe(name: str, needs: list[Path], words: list[str]) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [*DEPLOYED, *(word.replace("{port}", str(ports.main)) for word in words)]

    return Recipe(name=name, command=command, needs=needs, ready="http://127.0.0.1:{main}/hola/ready")
