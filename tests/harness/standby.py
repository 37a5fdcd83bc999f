"""A PostgreSQL that replicates another one, and can replace it."""

from __future__ import annotations

from .postgres import SETTINGS, Postgres
from .until import until


class Standby(Postgres):
    """A copy of a primary, which from then on commits nothing that is not stored here, too."""

    def __init__(self, primary: Postgres) -> None:
        self._primary = primary
        super().__init__()
        try:
            primary.psql("alter system set synchronous_standby_names = '*'")
            primary.psql("select pg_reload_conf()")
            until("the primary waits for its standby", lambda: self._is_waited_for(primary))
        except BaseException:
            self.stop()
            raise

    def _build(self, settings: dict[str, str]) -> None:
        host, port = self._primary.address
        words = ["-h", host, "-p", str(port), "-U", "postgres", "-c", "fast", "-X", "stream", "-R", "--no-sync"]
        self._run("pg_basebackup", "-D", self._data, *words)
        self._configure({name: value for name, value in settings.items() if name not in SETTINGS})
        self.start()

    def _is_waited_for(self, primary: Postgres) -> bool:
        return primary.psql("select sync_state from pg_stat_replication") == [["sync"]]

    def promote(self) -> None:
        """Promotes it to a primary, which waits for no standby."""
        self._control("promote")
