"""Servers that share their jobs, one after another or at the same time, and the lines of those jobs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from .jobs import Ran
from .postgres import Postgres
from .server import Server


class Site:
    """They share a folder, gates and jobs: in a new database, or in a file."""

    def __init__(self, serve: Callable[..., Server], folder: Path, database_server: Postgres | None = None) -> None:
        self._serve = serve
        self._postgres = database_server
        self.folder = folder
        self.ran = Ran(folder)
        self.database = f"jobs_{secrets.token_hex(4)}"
        if database_server is not None:
            database_server.psql(f"create database {self.database}")

    @property
    def postgres(self) -> Postgres:
        """Where the jobs are, unless they are in a file."""
        assert self._postgres is not None, "its jobs are in a file"
        return self._postgres

    @property
    def url(self) -> str:
        """The URL of its database."""
        return self.postgres.url_of(self.database)

    def serve(self, app: str | Path = "jobs", environment: dict[str, str] | None = None, **settings: object) -> Server:
        """Starts another server."""
        store = {} if self._postgres is None else {"jobs": self.url}
        environment = {"GATES": str(self.folder)} | (environment or {})
        server: Server = self._serve(app, **store | {"folder": self.folder, "environment": environment} | settings)
        return server

    def open_gate(self, name: str) -> None:
        """Lets the jobs continue that wait at this gate."""
        (self.folder / name).touch()

    def count(self, table: str) -> int:
        """Rows of a table of the store in PostgreSQL."""
        ((count,),) = self.postgres.psql(f"select count(*) from parkade.{table}", self.database)
        return int(count or 0)
