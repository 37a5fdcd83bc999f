"""A server of the soak: started at the same address again and again, with the same state."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from postgres import quiet_port
from served import ROOT, binary, target

START_SECONDS = 30.0
STOP_SECONDS = 30.0


class NotServing(Exception):
    """It does not start; the text says why."""


class Served:
    def __init__(self, folder: Path, name: str, workers: int, store: str | None, language: str) -> None:
        """`store`: the PostgreSQL that it shares with others."""
        self.port, self._admin = quiet_port(), quiet_port()
        self.log = folder / f"{name}.log"
        self._ran = folder / "ran"
        self._command = [
            *(str(binary()), "serve", target("jobs_application", language), "--grace", "2s"),
            *("--bind", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self._admin}"),
            *("--workers", str(workers), "--state", str(folder / name)),
            *(("--jobs", store) if store else ()),
            *("--python", str(ROOT / ".venv" / "bin" / "python")),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.faults: str | None = None

    def start(self) -> None:
        """Returns when it is ready."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PARKADE_")}
        environment |= {"RAN": str(self._ran)} | ({"PARKADE_INJECT_COMMIT": self.faults} if self.faults else {})
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output, env=environment)
        end = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                said = self.log.read_text(errors="replace")[-1_000:]
                raise NotServing(f"the server does not start; its log: {said}")
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        assert self._process is not None, "it has been started"
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None, "it has been started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> int | None:
        """Its exit status; None if it had to be killed."""
        assert self._process is not None, "it has been started"
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def end(self) -> None:
        """Ends everything that is left of it."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def status(self) -> Any:
        return json.loads(self._fetch("/status"))

    def worker_pids(self) -> list[int]:
        with contextlib.suppress(OSError, http.client.HTTPException):
            # A worker that is being started has no process yet.
            return [worker["pid"] for worker in self.status()["workers"] if worker["pid"] is not None]
        return []

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._fetch("/health/ready")
            return True
        return False

    def _fetch(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._admin, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise ConnectionError(f"{path}: {answer.status}")
            return body
        finally:
            connection.close()
