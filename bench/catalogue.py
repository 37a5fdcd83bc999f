"""The servers that are compared: Parkade, with each of its peers."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from servers import Ports, Recipe, nchan_subscribers, parked_lives
from settings import BENCH, PEERS, TEMPORARY, VENV, parkade_binary

PARKADE = "Parkade"


def parkade(
    app: str,
    workers: int = 1,
    label: str = "",
    flags: Sequence[str] = (),
    before: Sequence[str] = (),
    needs: Sequence[Path] = (),
) -> Recipe:
    """`app` is a file in bench/apps, by default in Python; PARKADE_FLAGS may add flags to the command."""
    file = BENCH / "apps" / (app if Path(app).suffix else f"{app}.py")
    target = str(file.relative_to(BENCH.parent)) + (":app" if file.suffix == ".py" else "")

    def command(ports: Ports) -> list[str]:
        added = [*flags, *shlex.split(os.environ.get("PARKADE_FLAGS", ""))]
        return [
            *(*before, str(parkade_binary()), "serve", target),
            *("--bind", f"127.0.0.1:{ports.main}"),
            *("--admin", f"127.0.0.1:{ports.admin}"),
            *("--workers", str(workers)),
            *([] if "--state" in added else ["--state", str(_state_of(parkade_binary()))]),
            *added,
        ]

    return Recipe(
        name=f"{PARKADE} {label}".strip(),
        command=command,
        needs=[parkade_binary(), file, *needs],
        ready="http://127.0.0.1:{admin}/health/ready",
        publish="http://127.0.0.1:{admin}/publish/bench",
        status="http://127.0.0.1:{admin}/status",
        waiting=parked_lives,
    )


def _state_of(binary: Path) -> Path:
    """Each build has its own: an older one refuses the file of a newer one."""
    return TEMPORARY / "state" / hashlib.sha256(str(binary.absolute()).encode()).hexdigest()[:8]


def granian() -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "granian"), "--interface", "rsgi", "--workers", "1", "--loop", "uvloop", "--no-ws"),
            *("--log-level", "warning", "--host", "127.0.0.1", "--port", str(ports.main)),
            *("--working-dir", str(PEERS), "granian_app:app"),
        ]

    return Recipe(name="Granian RSGI", command=command, needs=[VENV / "granian"])


def uvicorn() -> Recipe:
    def command(ports: Ports) -> list[str]:
        return [
            *(str(VENV / "uvicorn"), "--loop", "uvloop", "--http", "httptools", "--no-access-log"),
            *("--backlog", "4096", "--log-level", "warning", "--port", str(ports.main)),
            *("--app-dir", str(PEERS), "uvicorn_app:app"),
        ]

    return Recipe(name="uvicorn", command=command, needs=[VENV / "uvicorn"])


def axum() -> Recipe:
    binary = PEERS / "axum" / "target" / "release" / "axum-peer"
    return Recipe(
        name="axum",
        command=lambda ports: [str(binary), f"127.0.0.1:{ports.main}"],
        needs=[binary],
    )


def twiggy() -> Recipe:
    return Recipe(
        name="Twiggy",
        command=lambda ports: [
            *("twiggy", "--listen", f"127.0.0.1:{ports.main}", "--backlog", "4096", str(PEERS / "twiggy.psgi"))
        ],
        needs=[on_path("twiggy")],
    )


def starman(workers: int) -> Recipe:
    """Without keep-alive: an idle client would hold a worker."""
    return Recipe(
        name="Starman",
        command=lambda ports: [
            *("starman", "--listen", f"127.0.0.1:{ports.main}", "--workers", str(workers), "--disable-keepalive"),
            *("--max-requests", "1000000"),
            str(PEERS / "starman.psgi"),
        ],
        needs=[on_path("starman")],
    )


def nchan(workers: int = 1) -> Recipe:
    """One worker for each core releases long polls faster than a single one; a single one holds them in less memory."""
    module = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")

    def command(ports: Ports) -> list[str]:
        names = {"MODULE": module, "DIR": TEMPORARY, "WORKERS": workers, "PORT": ports.main, "ADMIN": ports.admin}
        text = (PEERS / "nginx.conf.in").read_text()
        for name, value in names.items():
            text = text.replace(f"@{name}@", str(value))
        config = TEMPORARY / "nginx.conf"
        config.write_text(text)
        return [str(on_path("nginx")), "-c", str(config)]

    return Recipe(
        name="nginx + nchan" if workers == 1 else f"nginx + nchan, {workers} workers",
        command=command,
        needs=[on_path("nginx"), module],
        publish="http://127.0.0.1:{admin}/publish",
        status="http://127.0.0.1:{admin}/status",
        waiting=nchan_subscribers,
    )


def tomcat(style: str) -> Recipe:
    """`style` is `async` or `blocking`: whether a waiting request gives its thread back."""
    target = PEERS / "tomcat" / "target"
    classpath = f"{target}/classes:{target}/lib/*"
    return Recipe(
        name=f"Tomcat {style}",
        command=lambda ports: ["java", "-cp", classpath, "bench.Main", str(ports.main), str(ports.admin), style],
        needs=[on_path("java"), target / "classes" / "bench" / "Main.class", target / "lib"],
        publish="http://127.0.0.1:{admin}/publish",
    )


def versions() -> dict[str, str]:
    """Which peers were measured."""
    commands = {
        "Parkade": [str(parkade_binary()), "--version"],
        "Granian": [str(VENV / "granian"), "--version"],
        "uvicorn": [str(VENV / "uvicorn"), "--version"],
        "nginx": ["nginx", "-v"],
        "nchan": ["dpkg-query", "-W", "-f", "nchan ${Version}", "libnginx-mod-nchan"],
        "Twiggy": ["perl", "-MTwiggy", "-e", "print qq(Twiggy $Twiggy::VERSION)"],
        "Starman": ["perl", "-MStarman", "-e", "print qq(Starman $Starman::VERSION)"],
        "Java": ["java", "-version"],
        "Python": [sys.executable, "--version"],
    }
    found = {name: first_line(command) for name, command in commands.items()}
    found["axum"] = locked_version(PEERS / "axum" / "Cargo.lock", "axum")
    found["Tomcat"] = next((jar.stem for jar in (PEERS / "tomcat" / "target" / "lib").glob("*-core-*")), "")
    return {name: text for name, text in found.items() if text}


def locked_version(lock: Path, name: str) -> str:
    version = re.search(rf'name = "{name}"\nversion = "(.+)"', lock.read_text() if lock.exists() else "")
    return f"{name} {version[1]}" if version else ""


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip().partition("\n")[0] if done.returncode == 0 else ""


def on_path(program: str) -> Path:
    """Its path, or a path that does not exist if it is not installed."""
    sbin = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return Path(shutil.which(program, path=sbin) or f"/nowhere/{program}")
