"""Wagtail, a large project of Django, as its own command creates it: it starts, and its pages and its admin answer."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.server import PYTHON, Server, clean_environment
from .harness.visitor import Visitor

WAYS: dict[str, dict[str, Any]] = {"wsgi": {}, "asgi": {"interface": "asgi"}}

LOCAL = """
from .base import INSTALLED_APPS
INSTALLED_APPS = [*INSTALLED_APPS, "wagtail.api.v2", "rest_framework"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a test need not wait for a good one
"""

API = """
from wagtail.api.v2.router import WagtailAPIRouter
from wagtail.api.v2.views import PagesAPIViewSet
api = WagtailAPIRouter("api")
api.register_endpoint("pages", PagesAPIViewSet)
urlpatterns.insert(0, path("api/", api.urls))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an API, an empty database, and somebody who may change everything."""
    folder = tmp_path_factory.mktemp("wagtail")

    def run(*words: str) -> None:
        environment = clean_environment(
            DJANGO_SUPERUSER_USERNAME="ana",
            DJANGO_SUPERUSER_PASSWORD="secret",
            DJANGO_SUPERUSER_EMAIL="ana@example.com",
        )
        subprocess.run([PYTHON, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    run("-c", "from wagtail.bin.wagtail import main; main()", "start", "mysite", ".")
    (folder / "mysite/settings/local.py").write_text(LOCAL)
    with (folder / "mysite/urls.py").open("a") as urls:
        urls.write(API)
    run("manage.py", "migrate")
    run("manage.py", "createsuperuser", "--noinput")
    return folder


@pytest.fixture(scope="module", params=WAYS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve, project: Path) -> Server:
    return serve_for_all(f"{project}/", folder=project, workers=1, **WAYS[request.param])


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """The server; after each test it is at rest."""
    yield shared
    shared.leave()
    shared.until_zero()


@pytest.fixture
def visitor(server: Server) -> Visitor:
    """Somebody who has logged in."""
    visitor = Visitor(server)
    assert visitor.get("/admin/")["location"].startswith("/admin/login/")
    sent = visitor.send("/admin/login/", {"username": "ana", "password": "secret", "next": "/admin/"})
    assert "Dashboard" in visitor.follow(sent).text
    return visitor


def test_its_pages_answer(server: Server) -> None:
    home = server.get("/")
    assert (home.status, "Welcome to your new Wagtail site" in home.text) == (200, True)
    assert "No results found" in server.get("/search/?query=nothing").text
    assert server.get("/nowhere/").status == 404


def test_its_api_answers(server: Server) -> None:
    (home,) = server.get("/api/pages/?slug=home").json()["items"]
    assert (home["title"], home["meta"]["type"]) == ("Home", "home.HomePage")
    assert server.get(f"/api/pages/{home['id']}/").json()["id"] == home["id"]
    assert server.get("/api/pages/?limit=many").status == 400


@pytest.mark.parametrize("page", ["pages/", "images/", "documents/", "users/", "reports/site-history/"])
def test_its_admin_answers(visitor: Visitor, page: str) -> None:
    assert visitor.get(f"/admin/{page}").status in (200, 302)


def test_a_page_is_written_and_published(server: Server, visitor: Visitor) -> None:
    slug = f"news-{os.urandom(4).hex()}"
    (home,) = server.get("/api/pages/?slug=home").json()["items"]
    fields = {"title": f"The {slug}", "slug": slug, "action-publish": "action-publish"}
    sent = visitor.send(f"/admin/pages/add/home/homepage/{home['id']}/", fields)
    assert sent.status == 302, sent.text[:3000]
    answer = server.get(f"/{slug}/")
    assert (answer.status, f"The {slug}" in answer.text) == (200, True)
    (page,) = server.get(f"/api/pages/?slug={slug}").json()["items"]
    assert page["title"] == f"The {slug}"


def test_an_image_is_uploaded_and_resized(visitor: Visitor) -> None:
    answer = visitor.send("/admin/images/multiple/add/", {"title": "A dot"}, {"files[]": ("dot.png", picture(300))})
    told = answer.json()
    assert told["success"] is True
    edited = visitor.get(f"/admin/images/{told['image_id']}/")
    (shown,) = set(re.findall(r'src="(/media/images/dot[^"]*\.png)"', edited.text))
    answer = visitor.get(shown)  # served by the project itself, since it is in debug mode
    assert (answer.status, answer.body[:4]) == (200, b"\x89PNG")


def test_a_document_is_uploaded_and_downloaded(visitor: Visitor) -> None:
    content = os.urandom(3_000_000)
    answer = visitor.send("/admin/documents/multiple/add/", {"title": "Notes"}, {"files[]": ("notes.txt", content)})
    told = answer.json()
    assert told["success"] is True
    (link,) = set(re.findall(rf"/documents/{told['doc_id']}/notes\w*\.txt", visitor.get("/admin/documents/").text))
    downloaded = visitor.get(link)
    assert (downloaded.status, downloaded.body == content) == (200, True)


def picture(size: int) -> bytes:
    """A black square as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + bytes(size) for _ in range(size)))
    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
