"""The page "Behind nginx" of docs/operations.md works: its configuration is run in front of a server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import ROOT, Server
from .harness.until import SECONDS, until

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
PAGE = ROOT / "docs" / "operations.md"

pytestmark = pytest.mark.skipif(not Path(NGINX).exists(), reason="there is no nginx: apt-get install nginx")


def documented(port: int, upstream: tuple[str, int]) -> str:
    """The configuration of the page, with free ports."""
    block = re.search(r"^```nginx\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert block, "the page has no configuration of nginx any more"
    text = block.group(1)
    for told, here in (
        ("server 127.0.0.1:8000;", f"server {upstream[0]}:{upstream[1]};"),
        ("listen 80;", f"listen 127.0.0.1:{port};"),
    ):
        assert text.count(told) == 1, f"the page says {told!r} no longer: tell this test what it says instead"
        text = text.replace(told, here)
    return text


@pytest.fixture(scope="module")
def server(serve_for_all: Serve) -> Server:
    """Started as on the page."""
    advice = re.search(r"Start Parkade with `--trust ([^`]+)`", PAGE.read_text())
    assert advice, "the page does not say whom to trust any more"
    return serve_for_all("edges", workers=1, trust=advice.group(1), access_log="json")


@pytest.fixture(scope="module")
def nginx(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    places = "".join(
        f"{what}_temp_path {folder}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"""
        daemon off;
        master_process off;
        pid {folder}/nginx.pid;
        error_log {folder}/error.log;
        events {{}}
        http {{
            access_log off;
            {places}
            {documented(port, server.address)}
        }}
        """
    )
    command = [NGINX, "-p", os.fspath(folder), "-c", "nginx.conf", "-e", "error.log"]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until("nginx listens", lambda: running.poll() is not None or answers(port))
        assert running.poll() is None, (folder / "error.log").read_text()
        yield "127.0.0.1", port
    finally:
        running.terminate()
        running.wait(SECONDS)


def answers(port: int) -> bool:
    try:
        Client(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


SPOOFED = [
    [],
    ["Forwarded: for=203.0.113.7;proto=https"],
    ['Forwarded: for="', "Forwarded: for=203.0.113.7;proto=https"],
    ["X-Forwarded-For: 203.0.113.7"],
    ["X-Forwarded-For: 203.0.113.7, rubbish", "X-Forwarded-Proto: https"],
    ["X-Forwarded-For: \xe9"],
    ["X-Forwarded-Proto: https", "Forwarded: proto=https"],
]


@pytest.mark.parametrize("fields", SPOOFED)
def test_a_client_behind_nginx_is_who_it_is_whatever_it_claims(
    server: Server, nginx: tuple[str, int], fields: list[str]
) -> None:
    """The client's address is trusted here, so a chain of trusted hops ends with it or with what it claims before.

    So the requests to nginx come from an address that is not trusted: any of 127/8 but 127.0.0.1 is on the loopback
    interface.
    """
    lines = len(server.printed().splitlines())
    told = from_elsewhere(nginx, "/who", *fields)
    assert (told["client"], told["scheme"]) == ("127.0.0.9", "http")
    until("the line of the access log", lambda: len(server.printed().splitlines()) > lines)
    assert '"client":"127.0.0.9"' in server.printed().splitlines()[lines].replace(" ", "")


def from_elsewhere(address: tuple[str, int], target: str, *fields: str) -> dict[str, str]:
    with Client(address, source=("127.0.0.9", 0)) as client:
        return dict(client.get(target, *fields).json())


def test_a_stream_of_pieces_gets_through(nginx: tuple[str, int]) -> None:
    with Client(nginx) as client:
        assert client.get("/announced-stream").body == b"12345"


def test_an_application_is_not_told_what_a_client_forwards(nginx: tuple[str, int]) -> None:
    with Client(nginx) as client:
        headers = client.get("/seen-headers", "Forwarded: for=203.0.113.7").json()
    assert "forwarded" not in headers
