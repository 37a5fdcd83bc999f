"""A file system of a few MiB that only the test's own programs see: it needs no root, but user namespaces."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

APART = ["unshare", "--map-root-user", "--mount", "--"]

AS_NOBODY = ["unshare", "--user", "--map-user=65534", "--"]
"""For programs that refuse to run as root, which every user inside appears to be."""


def missing() -> str | None:
    """What this machine lacks for it; None if nothing."""
    try:
        with SmallDisk(1):
            return None
    except (OSError, subprocess.CalledProcessError, AssertionError) as error:
        return f"this machine lets nobody mount a small file system in a namespace: {error}"


class SmallDisk:
    """`folder` is its path for programs that are started with the prefix of `inside`; others find it at `seen`."""

    def __init__(self, mebibytes: int) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="pk-disk-")
        self.folder = Path(self._made.name)
        mount = f"mount -t tmpfs -o size={mebibytes}m,mode=777 tmpfs {self.folder} && echo mounted && exec cat"
        # It exists as long as this process, which ends when the test closes its input.
        self._holder = subprocess.Popen(
            [*APART, "sh", "-c", mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            _, why = self._holder.communicate()
            self._made.cleanup()
            raise AssertionError(why.decode(errors="replace").strip())

    def __enter__(self) -> SmallDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def seen(self) -> Path:
        """For the test itself."""
        return Path(f"/proc/{self._holder.pid}/root{self.folder}")

    def inside(self, start: Path, as_nobody: bool = False) -> list[str]:
        """The beginning of a command that has to see it; it is started in this folder."""
        enter = ["nsenter", "-t", str(self._holder.pid), "--user", "--mount", "--preserve-credentials", "--"]
        return [*enter, *(AS_NOBODY if as_nobody else []), "sh", "-c", 'cd "$0" && exec "$@"', str(start)]

    def fill(self, spare: int) -> None:
        """Fills it except for this many bytes."""
        told = os.statvfs(self.seen)
        free = told.f_bavail * told.f_frsize
        assert free > spare, f"only {free} bytes are free"
        (self.seen / "ballast").write_bytes(bytes(free - spare))

    def fill_the_rest(self) -> None:
        """Fills it to the last byte."""
        with contextlib.suppress(OSError), (self.seen / "rest").open("ab", buffering=0) as rest:
            while rest.write(bytes(4096)):
                pass

    def remount(self, how: str) -> None:
        """Makes it read-only (`ro`), or not (`rw`)."""
        command = [*self.inside(Path("/")), "mount", "-o", f"remount,{how}", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)

    def make_room(self) -> None:
        """Frees what `fill` took."""
        (self.seen / "ballast").unlink()

    def close(self) -> None:
        """It is gone as soon as no process uses it."""
        self._holder.communicate()
        self._made.cleanup()
