"""Whole products, as packages have them, served unchanged: their pages and their API answer."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from .conftest import Serve

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
