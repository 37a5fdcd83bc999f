"""The admin of Django, as people use it: they log in, fill in forms, and upload files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.server import APPS, PYTHON, Server, clean_environment
from .harness.visitor import Visitor

APP = "django_admin_site"

WAYS: dict[str, dict[str, Any]] = {
    "wsgi": {"target": APP},
    "threads": {"target": APP, "threads": 3},
    "asgi": {"target": f"{APPS}/{APP}.py:asgi"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the site has its database and its files."""
    folder = tmp_path_factory.mktemp("admin")
    command = [PYTHON, "-c", f"import {APP}; {APP}.create()"]
    subprocess.run(command, cwd=APPS, env=clean_environment(SITE=str(folder)), check=True, timeout=60)
    return folder


@pytest.fixture(scope="module", params=WAYS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve, folder: Path) -> Server:
    return serve_for_all(**WAYS[request.param], workers=2, stream_limit="32MiB", environment={"SITE": str(folder)})


def logged_in(server: Server) -> Visitor:
    """Somebody who may change everything."""
    visitor = Visitor(server)
    first = visitor.get("/admin/")
    assert first["location"] == "/admin/login/?next=/admin/"
    home = visitor.follow(visitor.send("/admin/login/?next=/admin/", {"username": "ana", "password": "secret"}))
    assert "Site administration" in home.text
    return visitor


def test_a_wrong_password_is_refused(server: Server) -> None:
    answer = Visitor(server).send("/admin/login/", {"username": "ana", "password": "wrong"})
    assert (answer.status, "Please enter the correct" in answer.text) == (200, True)


def test_a_form_without_its_token_is_refused(server: Server) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    assert server.post("/admin/login/", b"username=ana&password=secret", form).status == 403


@pytest.mark.parametrize("count", [1_000, 20_000_000])
def test_a_file_is_uploaded_shown_and_downloaded(server: Server, count: int) -> None:
    visitor, title = logged_in(server), f"A book of {count} bytes"
    content = (bytes(range(256)) * (count // 256 + 1))[:count]
    sent = visitor.send(f"/admin/{APP}/book/add/", {"title": title}, {"cover": ("front.bin", content)})
    listed = visitor.follow(sent)
    assert "was added successfully" in listed.text
    (number,) = re.findall(rf'/book/(\d+)/change/">{title}</a></th>', listed.text)
    answer = visitor.get(f"/covers/{number}")
    assert (answer.status, len(answer.body)) == (200, count)
    assert answer.body == content
    changed = visitor.follow(visitor.send(f"/admin/{APP}/book/{number}/change/", {"title": f"{title}, new"}))
    assert f"{title}, new" in changed.text
    gone = visitor.follow(visitor.send(f"/admin/{APP}/book/{number}/delete/", {"post": "yes"}))
    assert "was deleted successfully" in gone.text


def test_somebody_who_logs_out_is_out(server: Server) -> None:
    visitor = logged_in(server)
    assert visitor.get(f"/admin/{APP}/book/").status == 200
    assert "Logged out" in visitor.send("/admin/", {}, action="/admin/logout/").text
    assert visitor.get(f"/admin/{APP}/book/").status == 302
