"""A running parkade: started on a free port, its status queried, its log watched, ended by its process id."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import processes
from .client import Client, Closed
from .http2 import Http2
from .sse import Events
from .until import PAUSE, SECONDS, Stopwatch, until

ROOT = Path(__file__).resolve().parents[2]
APPS = ROOT / "tests" / "apps"
PARKADE = ROOT / os.environ.get("PARKADE_BIN", ".venv/bin/parkade")
"""The binary under test; `PARKADE_BIN` is absolute, or relative to the root of the repository."""

PYTHON = PARKADE.parent / "python"
"""The interpreter for workers."""

MARK = "BLACK_BOX_SERVER"
"""The environment variable by which everything that a server has started can be found."""

Status = Mapping[str, Any]

# Workers of the tests need no long grace. One job worker is the minimum of the default.
USUAL = {"bind": "127.0.0.1:0", "workers": 1, "job_workers": 1, "grace": "2s"}


def clean_environment(**more: str) -> dict[str, str]:
    """Without settings of the user who runs the tests."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if name == "PARKADE_ACCELERATOR" or not name.startswith(("PARKADE_", "LISTEN_"))
    }
    return ours | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def arguments(settings: Mapping[str, object]) -> list[str]:
    """`deadline="300ms"` as `--deadline 300ms`; a list repeats the flag, None leaves it out."""
    told: list[str] = []
    for name, value in settings.items():
        values = value if isinstance(value, list | tuple) else [] if value is None else [value]
        for one in values:
            told += [f"--{name.replace('_', '-')}", str(one)]
    return told


def run(*words: str | Path, seconds: float = 20, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `parkade` with these arguments to its end."""
    return subprocess.run(
        [PARKADE, *words],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=clean_environment(**environment),
        stdin=subprocess.DEVNULL,
    )


ADDRESS = re.compile(r" at http://(?:([\d.]+)|\[([0-9a-f:]+)\]):(\d+)")


class Server:
    """`parkade serve` with an application of `tests/apps`, any target, or (None) what the file in `folder` says.
    Settings are flags of the command line.
    """

    def __init__(
        self,
        target: str | Path | None = "basic",
        *,
        command: str = "serve",
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str | Path] = (),
        pass_fds: Sequence[int] = (),
        stdout: int | None = None,
        stderr: int | None = None,
        folder: Path | None = None,
        language: str = "python",
        program: Sequence[str | Path] = (),
        **settings: object,
    ) -> None:
        """`program` is what runs instead of `parkade serve TARGET`, and becomes it."""
        self.folder = Path(tempfile.mkdtemp(prefix="pk-"))
        self.gates = self.folder / "gates"
        self.gates.mkdir()
        self.mark = secrets.token_hex(8)
        language = (environment or {}).get("LANGUAGE", language)
        if str(target).endswith(".psgi"):
            app = APPS / "perl" / str(target)
        else:
            app = APPS / f"{target}.py" if language == "python" else APPS / language / f"{target}.pl"
        self.target = str(target) if "/" in str(target) or ":" in str(target) else str(app)
        targets = [] if target is None else [self.target]
        self._log = self.folder / "log"
        self._printed = self.folder / "printed"
        self._working_in = folder or self.folder
        self._kept: list[Client | Http2 | Events] = []
        # Unix sockets need short paths, so the private one gets a folder of its own.
        environment = clean_environment(
            **{MARK: self.mark, "XDG_RUNTIME_DIR": str(self.folder), "GATES": str(self.gates)} | dict(environment or {})
        )
        settings = {name: value for name, value in (USUAL | settings).items() if value is not None}
        with self._log.open("wb") as log, self._printed.open("wb") as printed:
            self.process = subprocess.Popen(
                [*prefix, *(program or (PARKADE, command, *targets)), *arguments(settings)],
                stdin=subprocess.DEVNULL,
                stdout=printed if stdout is None else stdout,
                stderr=log if stderr is None else stderr,
                env=environment,
                cwd=self._working_in,
                pass_fds=tuple(pass_fds),
            )

    @property
    def pid(self) -> int:
        """The process id of the core."""
        return self.process.pid

    # Starting

    def ready(self, workers: int | None = None, job_workers: int = 0) -> Server:
        """Waits until it is ready, with this many workers for requests and for jobs."""
        wanted = {"requests": workers or 1, "jobs": job_workers}

        def is_ready() -> bool:
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log()}"
            try:
                status = self.status()
            except (OSError, Closed):
                return False
            roles = [worker["role"] for worker in status["workers"] if worker["state"] in ("ready", "busy")]
            return status["state"] == "ready" and all(roles.count(role) >= count for role, count in wanted.items())

        until("the server is ready", is_ready, told=self.log)
        return self

    def fails(self, seconds: float = SECONDS) -> int:
        """Waits until it has ended by itself; returns its exit status."""
        code = self.process.wait(seconds)
        self._check_remains()
        return code

    @property
    def address(self) -> tuple[str, int]:
        """The first TCP address that it listens on."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """All its addresses, from its log. A thread writes the log, so the server may be ready before."""
        told = until("the server tells its address", lambda: ADDRESS.findall(self.log()), told=self.log)
        return [(v4 or v6, int(port)) for v4, v6, port in told]

    @property
    def private(self) -> Path:
        """Its private admin socket."""
        return self.folder / "parkade" / f"{self.pid}.sock"

    # Clients

    def connect(self, **options: Any) -> Client:
        """A connection; it is closed together with the server."""
        return self._keep(Client(self.address, **options))

    def connect2(self, **options: Any) -> Http2:
        """A connection of HTTP/2."""
        return self._keep(Http2(self.address, **options))

    def events(self, target: str, *fields: str) -> Events:
        """A stream of server-sent events, opened."""
        return self._keep(Events(self.address, target, *fields))

    def get(self, target: str, *fields: str) -> Any:
        """A response over a new connection."""
        with Client(self.address) as client:
            return client.get(target, *fields)

    def post(self, target: str, body: bytes = b"", *fields: str) -> Any:
        """The same with POST."""
        with Client(self.address) as client:
            return client.post(target, body, *fields)

    def waiting(self, target: str, count: int, *fields: str, method: str = "GET", body: bytes = b"") -> list[Client]:
        """This many clients that have sent this request, each on its own connection, and read nothing yet."""
        return [self.connect().ask(method, target, *fields, body=body) for _ in range(count)]

    def _keep(self, client: Any) -> Any:
        self._kept.append(client)
        return client

    def leave(self, count: int | None = None) -> None:
        """The last clients, this many or all, close their connections."""
        leaving = self._kept if count is None else self._kept[-count:]
        for client in leaving:
            client.close()
        del self._kept[len(self._kept) - len(leaving) :]

    # Its reports

    def admin(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Sends a request to its private socket; returns status and body."""
        fields = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        with Client(str(self.private)) as client:
            # A refused client may be cut off while it is still sending; the response arrives nevertheless.
            with contextlib.suppress(BrokenPipeError):
                client.ask(method, path, *fields, "Connection: close", body=body)
            answer = client.answer(head=method == "HEAD")
            return answer.status, answer.body

    def status(self) -> Status:
        """The contents of `/status`."""
        code, body = self.admin("GET", "/status")
        assert code == 200, f"{code} {body!r}"
        status: Status = json.loads(body)
        return status

    def until(self, look: Callable[[Status], object], seconds: float = SECONDS) -> Status:
        """Waits until the status satisfies the condition."""

        def seen() -> Status | None:
            status = self.status()
            return status if look(status) else None

        found = until("the status", seen, seconds, told=self.told)
        assert found is not None
        return found

    def until_parked(self, count: int, seconds: float = SECONDS) -> Status:
        """Waits until this many requests are parked."""
        return self.until(lambda status: status["lives"]["parked"] == count, seconds)

    def until_running(self, count: int) -> Status:
        """Waits until this many requests have been running for a moment.

        The moment matters: a worker that has been quick gets requests ahead until its current one has taken half a
        millisecond, so later requests are queued.
        """
        self.until(lambda status: status["lives"]["running"] == count)
        watch = Stopwatch()
        return self.until(lambda status: status["lives"]["running"] == count and watch.seconds > PAUSE)

    def until_begun(self, gate: str, count: int = 1) -> None:
        """Waits until this many requests for `/hold/{gate}` have begun. One that is running may still lie in the pipe
        of its worker: if that dies, another worker gets it.
        """
        self.until_logged(f"holds at {gate}", times=count)

    def until_zero(self, seconds: float = SECONDS) -> Status:
        """Waits until no request exists, in the core or in a worker."""
        return self.until(is_zero, seconds)

    def until_logged(self, pattern: str, seconds: float = SECONDS, times: int = 1) -> re.Match[str]:
        """Waits until the log has this many matches of the regular expression; returns the last."""
        found = until(
            f"{times} times {pattern!r} in the log",
            lambda: list(re.finditer(pattern, self.log()))[times - 1 :],
            seconds,
            told=self.log_tail,
        )
        return found[-1]

    def still_serves(self) -> None:
        """It answers, and nothing is left of earlier requests."""
        assert self.get("/hola/you").body == b"Hola you"
        self.until_zero()

    def cleared(self) -> None:
        """After a test that shares its server: its clients leave, and the server comes to rest."""
        self.leave()
        self.until_zero()
        self.still_serves()

    def log(self) -> str:
        """Its standard error so far. The log has a thread of its own, so a line may come after the answer it is about:
        `until_logged` waits for it. A line that is being written is left out.
        """
        text = self._log.read_text(errors="replace")
        return text if self.process.poll() is not None else text[: text.rfind("\n") + 1]

    def log_tail(self) -> str:
        """The end of its log, for the message of a failed test."""
        return self.log()[-2_500:]

    def told(self) -> str:
        """Its status, as long as it answers, and the end of its log."""
        try:
            status = json.dumps(self.status())
        except (OSError, AssertionError, ValueError) as error:
            status = f"no status: {error!r}"
        return f"{status}\n{self.log_tail()}"

    def printed(self) -> str:
        """Its standard output so far."""
        return self._printed.read_text(errors="replace")

    def metrics(self) -> str:
        """The page of `/metrics`."""
        code, body = self.admin("GET", "/metrics")
        assert code == 200
        return body.decode()

    def workers(self, *states: str) -> list[Mapping[str, Any]]:
        """The workers in these states, or all."""
        return [worker for worker in self.status()["workers"] if not states or worker["state"] in states]

    def worker_pids(self) -> list[int]:
        """The process ids of the workers that serve."""
        return [worker["pid"] for worker in self.workers("ready", "busy")]

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the core."""
        return processes.resident_bytes(self.pid)

    # Acting on it

    def publish(self, channel: str, body: bytes = b"", content_type: str = "text/plain") -> str:
        """Publishes on its private socket; returns the cursor."""
        code, told = self.admin("POST", f"/publish/{channel}", body, Content_Type=content_type)
        assert code == 202, f"{code} {told!r}"
        cursor: str = json.loads(told)["cursor"]
        return cursor

    def new_gate(self) -> str:
        """A new name for a closed gate: for tests that share a server."""
        return secrets.token_hex(4)

    def open_gate(self, name: str) -> None:
        """Lets the handlers continue that wait at this gate (see `apps/gates.py`)."""
        (self.gates / name).touch()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the core."""
        os.kill(self.pid, number)

    def reload(self) -> Status:
        """SIGHUP, and waits until the reload is over, successful or not."""
        before = self.status()["counts"]
        self.signal(signal.SIGHUP)
        done = ("reloads_done", "reloads_given_up")
        return self.until(
            lambda status: (
                sum(status["counts"][name] for name in done) > sum(before[name] for name in done)
                and not status["code"]["reloading"]
            )
        )

    # Ending

    def stop(self, seconds: float = SECONDS) -> int:
        """SIGTERM, and waits; returns the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.ended(seconds)

    def ended(self, seconds: float = SECONDS) -> int:
        """Waits until it has ended; none of its processes may be left."""
        code = self.process.wait(seconds)
        self._check_remains()
        return code

    def kill(self) -> None:
        """SIGKILL to the core only."""
        self.process.kill()
        self.process.wait(SECONDS)

    def belongings(self) -> list[int]:
        """The living processes that it has started, including the core."""
        marked = processes.with_variable(MARK, self.mark)
        if not self.target.endswith((".pl", ".psgi")):
            return marked
        titled = processes.titled(self.target, self._working_in)
        return sorted({*marked, *(pid for pid in titled if self._may_have_started(pid))})

    def _may_have_started(self, pid: int) -> bool:
        """Not if another server of this test, which may work in the same folder, has started it and lives. Nobody can
        tell whose an orphan was.
        """
        above = processes.ancestors(pid)
        return self.pid in above or os.getpid() not in above

    def _check_remains(self) -> None:
        until(
            "no process of the server is left",
            lambda: not self.belongings(),
            3.0,
            told=lambda: f"{self.belongings()}\n{self.log_tail()}",
        )

    def dispose(self) -> None:
        """Ends everything that is left, by process id, and reports whether something had to be killed."""
        self.leave()
        try:
            if self.process.poll() is None:
                self.stop()
            else:
                self._check_remains()
            log = self.log()
            assert "a bug in parkade" not in log, log
            assert "panicked" not in log, log
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server did not stop:\n{self.log_tail()}") from None
        finally:
            for pid in self.belongings():
                os.kill(pid, signal.SIGKILL)
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait(SECONDS)
            shutil.rmtree(self.folder, ignore_errors=True)


def whom(server: Server) -> list[str]:
    """Arguments for a command that has to find its server: none if this is the user's only one, otherwise its process
    id.
    """
    others = list(Path(f"/tmp/parkade-{os.getuid()}").glob("*.sock"))
    return ["--pid", str(server.pid)] if others else []


def is_zero(status: Status) -> bool:
    """Whether no request exists: in no state, no wait, no channel, no worker."""
    lives, waits = status["lives"].values(), status["waits"].values()
    channels, workers = status["channels"]["busiest"], status["workers"]
    return not (
        any(lives)
        or status["jobs"]["queued"]
        or status["jobs"]["parked"]
        or any(wait["count"] for wait in waits)
        or any(channel["next"] or channel["stream"] for channel in channels)
        or any(worker["held"] or worker["awaiting"] for worker in workers)
    )


if not PARKADE.exists() and "pytest" in sys.modules:
    # One clear message, instead of four hundred failures.
    import pytest

    pytest.exit(f"there is no parkade at {PARKADE}: run `make setup`, or name one by PARKADE_BIN", 3)
