"""A server certificate for the tests, made by `openssl`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def missing() -> str | None:
    """Why it cannot be made; None if it can."""
    return None if shutil.which("openssl") else "there is no openssl"


@contextmanager
def certified() -> Iterator[dict[str, str]]:
    """Settings that enable TLS in PostgreSQL; the files are deleted after the block."""
    with tempfile.TemporaryDirectory(prefix="pk-tls-") as name:
        folder = Path(name)
        key, certificate = folder / "server.key", folder / "server.crt"
        words = ["-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
        told = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(["openssl", "req", *words, *told], check=True, capture_output=True)
        key.chmod(0o600)
        if os.geteuid() == 0:
            # The user that it runs as (`harness/postgres.py`).
            for path in (folder, key, certificate):
                shutil.chown(path, "nobody")
        yield {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
