"""`File` and `app.files`: what they ask the core for, and what they refuse."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parkade import App, File, HTTPError, LoadError, Request, Response, Router, SignatureError, Wait, WaitError, after
from parkade._mappings import Headers
from parkade._waits.files import disposition, is_name_within
from parkade._wire import payloads as p
from parkade.testing import Client


def headers_of(wait: Wait) -> dict[str, str]:
    return dict(Headers._of_request((wait._added or p.Added(None, None)).headers or []).pairs())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("0123456789")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text("<p>docs")
    return tmp_path


def test_a_file_is_asked_for_by_its_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert File("a.txt")._wait == p.File(f"{tmp_path}/a.txt", p.FileOptions())
    assert File(Path("/srv/../a.txt"))._wait == p.File("/a.txt", p.FileOptions())
    assert File.within("b", "c d/ü")._wait == p.Files(f"{tmp_path}/b", "/c%20d/%C3%BC", p.FilesOptions())
    assert repr(File("/srv/a")) == "<File /srv/a>"


def test_a_file_has_headers() -> None:
    file = File("/a", filename="b.pdf", content_type="application/x", headers={"X-Y": "z"})
    assert headers_of(file) == {
        "x-y": "z",
        "content-type": "application/x",
        "content-disposition": 'attachment; filename="b.pdf"',
    }
    assert headers_of(File("/a", inline=True)) == {"content-disposition": "inline"}
    assert File("/a")._added is None
    assert isinstance(file.headers({"a": "b"}), File)
    for name in ("content-length", "etag", "content-range", "last-modified", "accept-ranges"):
        with pytest.raises(ValueError, match="is set by the server alone"):
            File("/a", headers={name: "1"})
    with pytest.raises(ValueError, match="line break"):
        File("/a", headers={"x": "a\nb"})


@pytest.mark.parametrize(
    ("filename", "told"),
    [
        ("a.txt", 'attachment; filename="a.txt"'),
        ("a b.txt", 'attachment; filename="a b.txt"'),
        ("ü.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%BC.txt"),
        ('a"b.txt', "attachment; filename=\"a_b.txt\"; filename*=UTF-8''a%22b.txt"),
        ("a%20b", "attachment; filename=\"a_20b\"; filename*=UTF-8''a%2520b"),
        ("a\r\nb", 'attachment; filename="ab"'),
        ("../../x", 'attachment; filename="x"'),
        ("a;b='c'", "attachment; filename=\"a;b='c'\""),
        ("", "attachment"),
        ("a/", "attachment"),
        ("\r\n", "attachment"),
    ],
)
def test_a_name_for_browsers(filename: str, told: str) -> None:
    assert disposition(filename, inline=False) == told


@given(st.text())
def test_a_name_for_browsers_can_always_be_sent(filename: str) -> None:
    told = disposition(filename, inline=False)
    assert told.isascii()
    assert told.isprintable()


@pytest.mark.parametrize(
    "name", ["..", "../a", "a/../b", "/a", "a//b", "", ".", ".env", "b/.git/c", "a\\b", "a\0b", "a\nb"]
)
def test_a_name_that_leads_elsewhere_is_404(name: str) -> None:
    with pytest.raises(HTTPError) as raised:
        File.within("/srv", name)
    assert raised.value.status == 404


def test_a_name_that_is_longer_than_any_path_is_404() -> None:
    for name in ("ü" * 2_049, "x" * 4_097, "x/" * 40_000 + "x", "\u20ac" * 200_000):
        with pytest.raises(HTTPError) as raised:
            File.within("/srv", name)
        assert raised.value.status == 404
    for name in ("x" * 4_096, "ü" * 2_048):
        assert File.within("/srv", name)


@given(st.lists(st.sampled_from(["a", "..", ".", "/", "\\", "\0", " ", "%2e", "..."]), max_size=6).map("".join))
def test_a_name_within_a_folder_stays_there(name: str) -> None:
    if is_name_within(name, hidden_files=True):
        assert os.path.normpath(f"/srv/{name}").startswith("/srv/")


def test_hidden_names_are_for_those_who_ask() -> None:
    assert is_name_within(".well-known/x", hidden_files=True)
    wait = File.within("/srv", ".env", hidden_files=True)._wait
    assert isinstance(wait, p.Files)
    assert wait.options.hidden


def test_a_file_is_only_an_answer() -> None:
    with pytest.raises(WaitError, match=r"no \.then"):
        File("/a").then(print)
    with pytest.raises(WaitError, match="returned, not awaited"):
        File("/a").__await__().send(None)


def test_a_path_that_is_none_is_refused() -> None:
    for path in ("a\0b", "x" * 70_000, "\udcff"):
        with pytest.raises(ValueError, match=r"path|surrogates"):
            File(path)


def test_the_files_of_a_folder_are_routes_of_the_core(folder: Path) -> None:
    app = App()
    app.files("/static", folder, max_age=timedelta(minutes=1), index=None, precompressed=False, name="static")
    routes = app._ready().routes
    assert [(route.path, route.kind, route.methods) for route in routes] == [
        (path, "wait", ["GET"]) for path in ("/static", "/static/", "/static/{path:path}")
    ]
    for route in routes:
        assert route.wait == ["files", str(folder), None, {"depth": 1}]
        assert route.then == p.Answer(None, p.Added(None, ["cache-control", "public, max-age=60"]))
    assert app.path("static", path="a/b.css") == "/static/a/b.css"


def test_the_depth_is_that_of_all_prefixes(folder: Path) -> None:
    app, router = App(), Router("/{tenant}")
    router.files("/files/x", folder)
    app.include(router, prefix="/v1")
    app.files("/", folder)
    depths = {route.path: route.wait[3].get("depth", 0) for route in app._ready().routes if route.wait}
    v1 = "/v1/{tenant}/files/x"
    assert depths == {v1: 4, f"{v1}/": 4, f"{v1}/{{path:path}}": 4, "/": 0, "/{path:path}": 0}


def test_what_cannot_be_served_is_said_at_once(folder: Path) -> None:
    app = App()
    with pytest.raises(LoadError, match="there is no folder"):
        app.files("/static", folder / "missing")
    with pytest.raises(LoadError, match="there is no folder"):
        app.files("/static", folder / "a.txt")
    with pytest.raises(ValueError, match="max_age"):
        app.files("/static", folder, max_age=-1)
    with pytest.raises(ValueError, match="one of them"):
        app.files("/static", folder, max_age=1, headers={"cache-control": "no-store"})
    with pytest.raises(ValueError, match="index"):
        app.files("/static", folder, index="a/b")
    with pytest.raises(SignatureError, match="rest of the path"):
        app.files("/{rest:path}", folder)
    with pytest.raises(SignatureError, match="need a path"):
        Router().files("/", folder)
    app.files("/static", folder)
    with pytest.raises(SignatureError, match="has a handler already"):
        app.files("/static", folder)


def test_a_relative_folder_is_next_to_the_file_that_names_it() -> None:
    app = App()
    app.files("/typed", "typed")
    assert app._ready().routes[0].wait == [
        *("files", str(Path(__file__).parent / "typed"), None),
        {"depth": 1, "precompressed": True, "index": "index.html"},
    ]


def test_a_hook_says_who_gets_a_file(folder: Path) -> None:
    app = App()
    app.files("/static", folder)

    @app.before
    def check(request: Request) -> Response | None:
        return None if "authorization" in request.headers else Response("no", 401)

    @app.after
    def mark(request: Request, response: Response) -> None:
        response.headers["x-marked"] = "yes"

    assert {route.kind for route in app._ready().routes} == {"sync"}
    client = Client(app)
    assert client.get("/static/a.txt").status == 401
    answer = client.get("/static/a.txt", headers={"authorization": "x", "range": "bytes=1-2"})
    assert (answer.status, answer.text, answer.headers["x-marked"]) == (206, "12", "yes")
    assert client.get("/static/docs/", headers={"authorization": "x"}).text == "<p>docs"


@pytest.mark.parametrize("hooked", [False, True])
def test_a_path_is_decoded_once(folder: Path, hooked: bool) -> None:
    (folder / "a%20b.txt").write_text("a percent sign")
    (folder / "private").mkdir()
    (folder / "private" / "x.txt").write_text("SECRET")
    app = App()
    app.files("/static", folder)
    if hooked:

        @app.before
        def check(request: Request) -> Response | None:
            return Response("no", 403) if request.path.startswith("/static/private/") else None

    client = Client(app)
    assert client.get("/static/a%2520b.txt").text == "a percent sign"
    assert client.get("/static/a%20b.txt").status == 404
    assert client.get("/static/%70rivate/x.txt").status == (403 if hooked else 200)
    for path in ("%2570rivate/x.txt", "private%2Fx.txt", "private%255Cx.txt", "/private/x.txt", "%c1%b0rivate/x.txt"):
        answer = client.get(f"/static/{path}")
        assert answer.status in ((403, 404) if hooked else (404,))
        assert "SECRET" not in answer.text


def test_a_path_that_is_too_long_for_a_wait_is_404(folder: Path) -> None:
    app = App()
    app.files("/static", folder)
    app.before(lambda request: None)
    assert Client(app).get("/static/" + "x" * 70_000).status == 404


def test_a_name_that_no_system_has_is_not_found(folder: Path) -> None:
    app = App()
    app.files("/static", folder)
    app.get("/one", File(folder / ("x" * 300)))
    client = Client(app)
    assert client.get("/static/" + "x" * 300).status == 404
    assert client.get("/static/a.txt/b").status == 404
    assert client.get("/one").status == 500


def test_a_link_does_not_lead_out_of_the_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("other") / "secret.gz"
    secret.write_text("SECRET")
    (folder / "secret").symlink_to(secret)
    (folder / "a.txt.gz").symlink_to(secret)
    (folder / "absolute").symlink_to(folder / "a.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "docs" / "back").symlink_to("../a.txt")
    (folder / "documents").symlink_to("docs")
    (folder / "out_and_in").symlink_to(f"../{folder.name}/a.txt")
    app = App()
    app.files("/static", folder)
    client = Client(app)
    for path in ("docs/back", "documents/back"):
        assert client.get(f"/static/{path}").text == "0123456789"
    for path in ("secret", "absolute", "loop", "out_and_in"):
        assert client.get(f"/static/{path}").status == 404, path
    assert client.get("/static/a.txt", headers={"accept-encoding": "gzip"}).text == "0123456789"


def test_a_file_comes_after_a_wait(folder: Path) -> None:
    app = App()
    app.get("/", lambda: after(1).then(_later, path=str(folder / "a.txt")))
    client = Client(app)
    answer = client.get("/", headers={"range": "bytes=1-2"})
    client.advance(1)
    assert (answer.status, answer.text) == (206, "12")


def _later(path: str) -> File:
    return File(path)


def test_the_wait_of_a_route_can_be_read_again(folder: Path) -> None:
    app = App()
    app.files("/static", folder)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(app._ready()), type=type(app._ready())) == app._ready()
