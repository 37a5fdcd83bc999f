"""The server of the soak: started, asked for its status, killed, started again at the same address."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

START_SECONDS = 30
STOP_SECONDS = 20


LANGUAGES = ("python", "perl")


def target(name: str, language: str) -> str:
    """An application of the soak, as `parkade serve` is told of it."""
    return f"{HERE / name}.py:app" if language == "python" else f"{HERE / name}.pl"


class NotServing(Exception):
    """It does not start, or does not answer; the text says why."""


class Served:
    def __init__(
        self, url: str, port: int, admin: int, slots: int, workers: int, log: Path, language: str = "python"
    ) -> None:
        self.port = port
        self.log = log
        self._admin = admin
        self._command = [
            *(str(binary()), "serve", target("application", language)),
            *("--bind", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", "--workers", str(workers)),
            *("--python", str(python())),
            *("--database", url, "--database-slots", str(slots)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it has been started"
        return self._process.pid

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PARKADE_")}
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self._fetch("/health/ready")
                return
            except OSError as reason:
                if self._process.poll() is not None or time.monotonic() > end:
                    said = self.log.read_text(errors="replace")[-500:]
                    raise NotServing(f"the server does not start: {reason}; {said}") from reason
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None, "it has been started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> int | None:
        """Its exit status; None if it had to be killed."""
        if self._process is None or self._process.poll() is not None:
            return None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def status(self) -> Any:
        return json.loads(self._fetch("/status"))

    def memory(self) -> int:
        """Resident bytes of the core."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    def _fetch(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._admin}{path}", timeout=5) as answer:
            text: bytes = answer.read()
            return text


def binary() -> Path:
    """Like the other tests: `PARKADE_BIN`, absolute or relative to the root of the repository."""
    return ROOT / os.environ.get("PARKADE_BIN", ".venv/bin/parkade")


def python() -> Path:
    """A Python next to the binary has the binary's package; otherwise that of the repository."""
    beside = binary().parent / "python"
    return beside if beside.exists() else ROOT / ".venv" / "bin" / "python"
