"""What systemd is told (`sd_notify`): ready, reloading, stopping, alive; and the unit that makes use of it."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.server import ROOT, Server
from .harness.until import Stopwatch

APP = """
import os
from parkade import App
app = App()
app.get("/socket", os.environ.get("NOTIFY_SOCKET", "none"))
app.get("/hola/you", "Hola you")
"""


class ServiceManager:
    """The other end of `NOTIFY_SOCKET`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(20)

    def told(self) -> dict[str, str]:
        """The next message, without those that only say that the server is alive."""
        while True:
            message = dict(line.split("=", 1) for line in self.socket.recv(65_536).decode().splitlines())
            if message != {"WATCHDOG": "1"}:
                return message

    def silent(self, seconds: float) -> bool:
        """Whether nothing arrives within this time."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(65_536)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(20)
        return False


@pytest.fixture
def manager(short_folder: Path) -> Iterator[ServiceManager]:
    manager = ServiceManager(short_folder)
    yield manager
    manager.socket.close()


def start(serve: Serve, manager: ServiceManager, file: Path, **environment: str) -> Server:
    return serve(file, is_ready=False, environment={"NOTIFY_SOCKET": str(manager.path)} | environment)


def test_it_is_told_when_the_application_is_loaded_and_when_it_stops(
    serve: Serve, manager: ServiceManager, tmp_path: Path
) -> None:
    gate, file = tmp_path / "gate", tmp_path / "shop.py"
    file.write_text(f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n{APP}")
    server = start(serve, manager, file)
    assert manager.silent(0.5), "nothing is loaded yet"
    gate.touch()
    host, port = server.address
    assert manager.told() == {"READY": "1", "STATUS": f"Serving http://{host}:{port}"}
    assert server.get("/socket").text == "none", "workers do not speak for the server"
    server.signal(signal.SIGTERM)
    assert manager.told()["STOPPING"] == "1"
    assert server.ended() == 0


def test_it_is_told_of_a_reload_and_how_it_ended(serve: Serve, manager: ServiceManager, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(APP)
    server = start(serve, manager, file)
    assert manager.told()["READY"] == "1"
    server.signal(signal.SIGHUP)
    told = manager.told()
    assert told["RELOADING"] == "1"
    assert int(told["MONOTONIC_USEC"]) > 0
    assert manager.told()["READY"] == "1"
    file.write_text("raise ValueError('broken')")
    server.signal(signal.SIGHUP)
    assert manager.told()["RELOADING"] == "1"
    told = manager.told()
    assert told == {
        "READY": "1",
        "STATUS": "Serving the old code: the new code does not load (ValueError: broken)",
    }


def test_an_application_that_does_not_load_is_never_ready(
    serve: Serve, manager: ServiceManager, tmp_path: Path
) -> None:
    file = tmp_path / "shop.py"
    file.write_text("raise ValueError('broken')")
    server = start(serve, manager, file)
    assert server.fails() == 1
    manager.socket.setblocking(False)
    said = []
    while True:
        try:
            said.append(manager.socket.recv(65_536).decode())
        except BlockingIOError:
            break
    assert not any("READY" in message for message in said), said


def test_the_watchdog_hears_of_the_thread_that_decides_and_of_nothing_else(
    serve: Serve, manager: ServiceManager, tmp_path: Path
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(APP)
    server = start(serve, manager, file, WATCHDOG_USEC="600000")
    assert manager.told()["READY"] == "1"
    watch = Stopwatch()
    for _ in range(5):
        assert manager.socket.recv(100) == b"WATCHDOG=1\n"
    assert 0.9 < watch.seconds < 10, "an idle server tells twice as often as demanded"
    server.signal(signal.SIGSTOP)
    try:
        while not manager.silent(1):
            pass
    finally:
        server.signal(signal.SIGCONT)
    assert manager.socket.recv(100) == b"WATCHDOG=1\n"


def test_without_a_service_manager_nothing_is_told(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(APP)
    server = serve(file, environment={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    assert server.get("/hola/you").text == "Hola you", "one that cannot be told does not hold it up"
    server.until_logged("cannot report to the service manager")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_sound_and_hardened(tmp_path: Path) -> None:
    for name in ("web.service", "web.socket"):
        unit = (ROOT / "contrib" / "systemd" / name).read_text()
        # The programs and the user of the example are not on this machine.
        (tmp_path / name).write_text(
            unit.replace("/srv/web/.venv/bin/parkade", "/bin/true").replace("=web\n", "=daemon\n", 1)
        )
    units = [tmp_path / "web.service", tmp_path / "web.socket"]
    verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    assert (verified.returncode, verified.stderr) == (0, ""), verified.stderr
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=30", units[0]]
    judged = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]
