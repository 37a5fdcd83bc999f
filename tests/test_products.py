"""Whole products, as packages have them, served unchanged: their pages and their API answer."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.server import ROOT, clean_environment

FORM = "Content-Type: application/x-www-form-urlencoded"


def test_httpbin_answers(serve: Serve) -> None:
    server = serve("httpbin:app", workers=1)
    found = server.get("/get?a=1&a=2", "X-Own: yes").json()
    assert (found["args"], found["headers"]["X-Own"]) == ({"a": ["1", "2"]}, "yes")
    assert server.post("/post", b"a=1&b=%C3%A1", FORM).json()["form"] == {"a": "1", "b": "á"}
    assert server.post("/anything", bytes(100_000)).json()["method"] == "POST"
    assert [server.get(f"/status/{status}").status for status in (204, 404, 418, 500)] == [204, 404, 418, 500]
    moved = server.get("/redirect-to?url=/get")
    assert (moved.status, moved["location"]) == (302, "/get")
    assert server.get("/cookies/set?seen=1")["set-cookie"].startswith("seen=1;")
    assert server.get("/basic-auth/ana/secret").status == 401
    assert server.get("/basic-auth/ana/secret", "Authorization: Basic YW5hOnNlY3JldA==").status == 200
    assert [json.loads(line)["id"] for line in server.get("/stream/5").text.splitlines()] == [0, 1, 2, 3, 4]
    assert len(server.get("/stream-bytes/50000?seed=1").body) == 50_000
    assert server.get("/range/100", "Range: bytes=10-19").status == 206
    assert server.get("/etag/one", 'If-None-Match: "one"').status == 304
    assert server.get("/image/png").body.startswith(b"\x89PNG")


def test_datasette_answers(serve: Serve, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript("create table books (id integer primary key, title text)")
        shop.executemany("insert into books (title) values (?)", [(f"Book {number}",) for number in range(250)])
        shop.commit()
    (tmp_path / "shop_site.py").write_text(
        "from pathlib import Path\nfrom datasette.app import Datasette\n"
        "app = Datasette([str(Path(__file__).parent / 'shop.db')]).app()\n"
    )
    server = serve(tmp_path / "shop_site.py", workers=1)
    assert "shop" in server.get("/").text
    assert "Book 7" in server.get("/shop/books").text
    rows = server.get("/shop/books.json?_shape=array&_size=3").json()
    assert [row["title"] for row in rows] == ["Book 0", "Book 1", "Book 2"]
    assert server.get("/shop/books/7.json?_shape=objects").json()["rows"][0]["title"] == "Book 6"
    assert len(server.get("/shop/books.csv?_stream=on&_size=max").text.splitlines()) == 251
    assert server.get("/shop/nothing").status == 404
    assert server.get("/-/versions.json").json()["asgi"] == "3.0"
    assert server.get("/-/static/app.css")["content-type"].startswith("text/css")


PINTO = ROOT / "target" / "products" / "pinto" / "usr"
"""A repository of Perl modules, as Debian has it. `tests/perl_products.sh` fetches it."""


@pytest.mark.skipif(not PINTO.exists(), reason="there is no target/products/pinto: tests/perl_products.sh")
def test_pinto_serves_its_own_client(serve: Serve, tmp_path: Path) -> None:
    """An upload, a response that a forked process writes through a pipe, and files."""
    repository, archive = tmp_path / "repository", tmp_path / "Own-Thing-1.0.tar.gz"
    folders = [str(path) for path in (PINTO / "share/perl5", *PINTO.glob("lib/*/perl5/*"))]
    environment = {"PERL5LIB": ":".join(folders), "PINTO_USERNAME": "ana"}

    def pinto(root: object, *words: object) -> str:
        command = ["perl", PINTO / "bin/pinto", "--root", str(root), *map(str, words)]
        told = clean_environment(**environment)
        return subprocess.run(command, env=told, check=True, capture_output=True, text=True, timeout=120).stdout

    pinto(repository, "init")
    write_distribution(archive)
    app = tmp_path / "app.psgi"
    app.write_text(f"use Pinto::Server;\nPinto::Server->new(root => '{repository}')->to_app;\n")
    server = serve(app, workers=1, environment=environment)
    address = "http://{}:{}".format(*server.address)
    pinto(address, "add", "--author", "ANA", "--no-recurse", "--message", "the first", archive)
    assert "ANA/Own-Thing-1.0.tar.gz" in pinto(address, "list")
    assert server.get("/authors/id/A/AN/ANA/Own-Thing-1.0.tar.gz").body == archive.read_bytes()
    index = gzip.decompress(server.get("/modules/02packages.details.txt.gz").body).decode()
    assert "Own::Thing" in index
    assert server.get("/authors/id/A/AN/ANA/Nothing.tar.gz").status == 404
    assert server.status()["counts"]["workers_died"] == 0


def write_distribution(archive: Path) -> None:
    """As `make dist` does."""
    folder = archive.with_name("Own-Thing-1.0")
    (folder / "lib" / "Own").mkdir(parents=True)
    (folder / "lib" / "Own" / "Thing.pm").write_text("package Own::Thing;\nour $VERSION = '1.0';\n1;\n")
    (folder / "Makefile.PL").write_text("use ExtUtils::MakeMaker;\nWriteMakefile(NAME => 'Own::Thing');\n")
    meta = {"name": "Own-Thing", "version": "1.0", "abstract": "A thing", "author": ["Ana"], "license": ["perl_5"]}
    meta |= {"dynamic_config": 0, "generated_by": "hand", "release_status": "stable", "meta-spec": {"version": 2}}
    (folder / "META.json").write_text(json.dumps(meta))
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, folder.name)
