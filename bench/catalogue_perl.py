"""The servers that run the same unchanged application of PSGI."""

from pathlib import Path

import catalogue
from servers import Ports, Recipe
from settings import BENCH, ROOT

APP = BENCH / "apps" / "perl" / "hola.psgi"


def parkade(label: str, workers: int = 1, is_compiled: bool = True) -> Recipe:
    """In C, or everything in Perl."""
    loop = next((ROOT / "workers" / "perl" / "arch").glob("*/*/auto/Parkade/Parkade.*"), Path("/nowhere/Parkade.so"))
    return catalogue.parkade(
        "perl/hola.psgi",
        workers=workers,
        label=label,
        before=[] if is_compiled else ["env", "PARKADE_ACCELERATOR=0"],
        needs=[loop] if is_compiled else [],
    )


def starman(workers: int) -> Recipe:
    """A worker stays with a client while that asks, as it does by default."""
    words = ["--workers", str(workers), "--backlog", "4096", "--max-requests", "100000000"]
    where = ["--listen", "127.0.0.1:{port}", str(APP)]
    return _recipe(f"Starman, {workers} workers", [catalogue.on_path("starman")], ["starman", *words, *where])


def feersum() -> Recipe:
    words = ["feersum", "--listen", "127.0.0.1:{port}", str(APP)]
    return _recipe("Feersum", [catalogue.on_path("feersum")], words)


def uwsgi(processes: int) -> Recipe:
    program = catalogue.on_path("uwsgi-core")
    words = ["--master", "--processes", str(processes), "--disable-logging", "--die-on-term"]
    where = ["--http-socket", "127.0.0.1:{port}", "--plugins", "psgi", "--psgi", str(APP)]
    return _recipe(f"uWSGI, {processes} processes", [program], [str(program), *words, *where])


def versions() -> dict[str, str]:
    commands = {
        "Perl": ["perl", "-e", "print qq(Perl $^V)"],
        "Feersum": ["perl", "-MFeersum", "-e", "print qq(Feersum $Feersum::VERSION)"],
        "uWSGI for Perl": ["dpkg-query", "-W", "-f", "uWSGI ${Version}", "uwsgi-plugin-psgi"],
    }
    found = {name: catalogue.first_line(command) for name, command in commands.items()}
    return {name: text for name, text in found.items() if text}


def _recipe(name: str, needs: list[Path], words: list[str]) -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [word.replace("{port}", str(ports.main)) for word in words]

    return Recipe(name=name, command=command, needs=needs, ready="http://127.0.0.1:{main}/hola/ready")
