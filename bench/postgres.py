"""A private PostgreSQL: created in a temporary folder, on a free loopback port, and removed after the block."""

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from settings import ON_DISK

START_SECONDS = 30
STOP_SECONDS = 20

Settings = Mapping[str, object]

# The access to the database is measured, not its disk.
USUAL: Settings = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "256MB", "max_connections": 200}

# If jobs are kept in PostgreSQL, its disk matters, as with the other stores.
DURABLE: Settings = dict(USUAL) | {"fsync": "on", "full_page_writes": "on"}


class NoPostgres(Exception):
    """PostgreSQL is not installed, or does not start; the text says why."""


class Cluster:
    """One server process with its data. It is our child, so its end is noticed, and pg_ctl is not needed."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.port = quiet_port()
        self.log = folder / "server.log"
        self._settings = settings
        self._user = _ordinary_user()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def dsn(self) -> str:
        """The same for Perl's DBI."""
        return f"dbi:Pg:dbname=postgres;host=127.0.0.1;port={self.port};user=postgres"

    def make(self) -> None:
        options = [
            "--username",
            "postgres",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--locale",
            "C.UTF-8",
            "--no-sync",
        ]
        self._run("initdb", "--pgdata", str(self._data), *options)

    def start(self) -> None:
        told = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = [str(_program("postgres")), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen([*command, *told], stdout=output, stderr=output, user=self._user, cwd="/")
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise NoPostgres(f"PostgreSQL does not start: {self.log.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)

    def answers(self) -> bool:
        command = [str(_program("pg_isready")), "-q", "-U", "postgres", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command).returncode == 0

    def stop(self, how: signal.Signals) -> None:
        """SIGINT is a fast shutdown, SIGQUIT an immediate one; see postgres(1)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(STOP_SECONDS)
            self._process = None

    def ask(self, sql: str) -> list[list[str]]:
        """The rows, each value as text."""
        done = self._run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t", "-d", self.url, "-c", sql)
        return [line.split("\t") for line in done.splitlines()]

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *words: str) -> str:
        command = [str(_program(program)), *words]
        done = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd="/")
        if done.returncode != 0:
            raise NoPostgres(f"{program} failed: {done.stderr.strip()}")
        return done.stdout


@contextmanager
def durable() -> Iterator[Cluster]:
    """A PostgreSQL whose commits are on disk before they are acknowledged."""
    with running(DURABLE, ON_DISK) as cluster:
        yield cluster


@contextmanager
def running(settings: Settings = USUAL, parent: Path | None = None) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="parkade-postgres-", dir=parent) as folder:
        if (user := _ordinary_user()) is not None:
            shutil.chown(folder, user)
        cluster = Cluster(Path(folder), settings)
        cluster.make()
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop(signal.SIGQUIT)


@contextmanager
def running_with_tls(folder: str) -> Iterator[Cluster]:
    """A PostgreSQL with TLS and a new certificate in that folder."""
    key, certificate = Path(folder) / "server.key", Path(folder) / "server.crt"
    words = ["-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    told = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    done = subprocess.run(["openssl", "req", *words, *told], capture_output=True, text=True)
    if done.returncode != 0:
        raise NoPostgres(f"openssl makes no certificate: {done.stderr.strip()}")
    key.chmod(0o600)
    if (user := _ordinary_user()) is not None:
        for path in (Path(folder), key, certificate):
            shutil.chown(path, user)
    settings = dict(USUAL) | {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}
    with running(settings) as cluster:
        yield cluster


def version() -> str:
    """`postgres (PostgreSQL) 15.18`; empty if it is not installed."""
    try:
        done = subprocess.run([str(_program("postgres")), "--version"], capture_output=True, text=True)
    except NoPostgres:
        return ""
    return done.stdout.strip()


def _program(name: str) -> Path:
    """Debian installs the server's programs in separate folders; the newest version counts."""
    if folder := os.environ.get("POSTGRES_BIN"):
        return Path(folder) / name
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    if kept:
        return kept[-1]
    if found := shutil.which(name):
        return Path(found)
    raise NoPostgres(f"{name} is not installed")


def _ordinary_user() -> str | None:
    """The user to run it as, because it refuses root; None: the current user."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def quiet_port() -> int:
    """Below the range of clients' ports (ip_local_port_range), so that it is still free after a restart."""
    while True:
        port = random.randint(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
