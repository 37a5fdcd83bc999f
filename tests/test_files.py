"""Files as answers: `app.files` and `File`. The server opens and sends them, over HTTP/1.1 and HTTP/2 alike."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path

import pytest

from .conftest import KINDS, Kind, Serve
from .harness.client import Answer, Client, Closed
from .harness.server import Server
from .harness.until import BUSY, Stopwatch, until

LARGE = 300_000
"""Bytes: the file is read in five pieces."""

HUGE = 48 * 1024 * 1024
"""Bytes: more than any socket buffers."""

OLD = 1_000_000_000
"""When the files were written, in seconds."""

Ask = Callable[..., Answer]


def content(size: int) -> bytes:
    """Each four bytes say where they are, so that nothing can be missing or in another place."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    static = folder / "static"
    (static / "docs" / "empty").mkdir(parents=True)
    (static / "a.txt").write_text("0123456789")
    (static / "empty.bin").touch()
    (static / "large.bin").write_bytes(content(LARGE))
    (static / "docs" / "index.html").write_text("<p>docs")
    (static / "index.html").write_text("<p>root")
    (static / "a b ü.css").write_text("p {}")
    (static / "c:d").mkdir()
    (static / "c:d" / "index.html").write_text("<p>colon")
    (static / "a%20b.txt").write_text("a percent sign")
    (static / "private").mkdir()
    (static / "private" / "x.txt").write_text("SECRET")
    (static / "private" / "index.html").write_text("SECRET")
    (static / "%70rivate").mkdir()
    (static / "%70rivate" / "x.txt").write_text("public")
    (static / ".env").write_text("SECRET")
    (static / ".git").mkdir()
    (static / ".git" / "config").write_text("SECRET")
    (static / "app.css").write_text("body {}" * 100)
    (static / "app.css.gz").write_bytes(gzip.compress(b"body {}" * 100))
    (static / "app.css.br").write_bytes(b"brotli")
    (static / "stale.css").write_text("new")
    (static / "stale.css.gz").write_bytes(b"old")
    (static / "inside").symlink_to("a.txt")
    (static / "outside").symlink_to("../secret.txt")
    (static / "absolute").symlink_to(folder / "secret.txt")
    (static / "absolute_inside").symlink_to(static / "a.txt")
    (static / "docs" / "back").symlink_to("../a.txt")
    (static / "upwards").symlink_to("..")
    (static / "loop").symlink_to("loop")
    (static / "nowhere").symlink_to("missing")
    os.mkfifo(static / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(static / "sock"))
    (folder / "secret.txt").write_text("SECRET")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (OLD, OLD))
    os.utime(static / "stale.css.gz", (OLD - 10, OLD - 10))
    return folder


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest, serve_for_all: Serve, folder: Path) -> Server:
    kind: Kind = KINDS[request.param]
    return serve_for_all("files", environment={"FILES": str(folder)} | kind)


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    """Sends a request over each version: `ask("/static/a.txt", range="bytes=0-1", method="HEAD")`."""

    def over_1(target: str, method: str = "GET", **fields: str) -> Answer:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        with server.connect() as client:
            return client.ask(method, target, *lines).answer(head=method == "HEAD")

    def over_2(target: str, method: str = "GET", **fields: str) -> Answer:
        pairs = [(name.replace("_", "-"), value) for name, value in fields.items()]
        with server.connect2() as client:
            return client.answer(client.ask(method, target, *pairs))

    return over_1 if request.param == "HTTP/1.1" else over_2


# What is sent


def test_a_file_is_sent_as_what_it_is(ask: Ask) -> None:
    answer = ask("/static/a.txt")
    assert (answer.status, answer.text, answer["content-length"]) == (200, "0123456789", "10")
    assert answer["content-type"] == "text/plain; charset=utf-8"
    assert answer["last-modified"] == formatdate(OLD, usegmt=True)
    assert re.fullmatch(r'"[^"]+"', answer["etag"])
    assert (answer["accept-ranges"], answer["x-content-type-options"]) == ("bytes", "nosniff")
    assert (answer["cache-control"], answer["vary"]) == ("no-cache", "Accept-Encoding")


def test_a_large_file_is_whole(ask: Ask, folder: Path) -> None:
    answer = ask("/static/large.bin")
    assert answer.body == content(LARGE)
    assert answer["content-length"] == str(LARGE)


def test_head_has_no_body(ask: Ask) -> None:
    for target, length in (("/static/a.txt", 10), ("/static/large.bin", LARGE), ("/static/empty.bin", 0)):
        answer = ask(target, method="HEAD")
        assert (answer.status, answer.body, answer["content-length"]) == (200, b"", str(length))


def test_other_methods_are_not_allowed(ask: Ask) -> None:
    answer = ask("/static/a.txt", method="DELETE")
    assert (answer.status, answer["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("/static/empty.bin", ""),
        ("/static/a%20b%20%C3%BC.css", "p {}"),
        ("/static/a%2etxt", "0123456789"),
        ("/st%61tic/a.txt", "0123456789"),
        ("/static/a%2520b.txt", "a percent sign"),
        ("/static/%2570rivate/x.txt", "public"),
        ("/static/inside", "0123456789"),
        ("/static/docs/back", "0123456789"),
        ("/static/", "<p>root"),
        ("/static/docs/", "<p>docs"),
        ("/static/a.txt?v=1", "0123456789"),
        ("/aged/.env", "SECRET"),
        ("/constant", "0123456789"),
    ],
)
def test_a_path_names_a_file(ask: Ask, target: str, text: str) -> None:
    answer = ask(target)
    assert (answer.status, answer.text) == (200, text)


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/static", "./static/"),
        ("/static/docs", "./docs/"),
        ("/static/docs?", "./docs/"),
        ("/static/docs?v=1&to=/%20?x", "./docs/?v=1&to=/%20?x"),
        ("/static/c:d", "./c:d/"),
    ],
)
def test_a_folder_gets_its_slash(ask: Ask, target: str, location: str) -> None:
    answer = ask(target)
    assert (answer.status, answer["location"], answer.body) == (307, location, b"")


def test_a_folder_is_not_listed(ask: Ask) -> None:
    for target in ("/static/docs/empty", "/static/docs/empty/", "/aged", "/aged/", "/aged/docs/", "/static/a.txt/"):
        assert ask(target).status == 404


def test_a_file_may_be_kept_for_a_while(ask: Ask) -> None:
    answer = ask("/aged/a.txt")
    assert answer["cache-control"] == "public, max-age=60"
    assert "vary" not in answer
    assert "cache-control" not in ask("/aged/missing")


# What is not sent

ESCAPES = [
    "/static/../secret.txt",
    "/static/../../../../etc/passwd",
    "/static/..",
    "/static/docs/../../secret.txt",
    "/static/%2e%2e/secret.txt",
    "/static/%2E%2e%2fsecret.txt",
    "/static/.%2e/secret.txt",
    "/static/..%2fsecret.txt",
    "/static/docs%2f..%2f..%2fsecret.txt",
    "/static/..%5csecret.txt",
    "/static/..\\secret.txt",
    "/static/%252e%252e/secret.txt",
    "/static/%252e%252e%252fsecret.txt",
    "/static/%c0%ae%c0%ae/secret.txt",
    "/static/%uff0e%uff0e/secret.txt",
    "/static/..%00/secret.txt",
    "/static/a.txt%00.css",
    "/static//etc/passwd",
    "/static/%2fetc/passwd",
    "/static/%2f%2fetc/passwd",
    "/static///etc/passwd",
    "/static/file:///etc/passwd",
    "/static/./a.txt",
    "/static/docs//index.html",
    "/static/...//secret.txt",
    "/static/....//secret.txt",
    "/static/..;/secret.txt",
    "/static/outside",
    "/static/absolute",
    "/static/absolute_inside",
    "/static/upwards/secret.txt",
    "/static/upwards/static/../secret.txt",
    "/static/upwards/static/a.txt",
    "/static/loop",
    "/static/nowhere",
    "/static/.env",
    "/static/%2eenv",
    "/static/.git/config",
    "/static/.git/",
    "/static/fifo",
    "/static/sock",
    "/static/missing",
    "/static/a.txt/b",
    "/static/" + "x" * 300,
    "/static/" + "x/" * 2_000,
    "/static/a.txt%0d%0ax-bad:%20yes",
    "/static/CON",
    "/static/a.txt:stream",
    "/static/a.txt%20",
]


@pytest.mark.parametrize("target", ESCAPES, ids=lambda target: target[:40])
def test_nothing_but_the_files_of_the_folder_is_sent(ask: Ask, target: str) -> None:
    answer = ask(target)
    assert answer.status in (400, 404)
    assert b"SECRET" not in answer.body
    assert b"root:" not in answer.body
    assert "x-bad" not in answer


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "outside", "upwards/secret.txt", ".env", "", "a//b"])
def test_a_name_from_a_client_stays_within(ask: Ask, name: str) -> None:
    assert ask(f"/within?name={name}").status == 404
    assert ask("/within?name=docs/index.html").text == "<p>docs"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_not_there_and_in_the_log(server: Server, folder: Path) -> None:
    path = folder / "static" / "locked.txt"
    path.write_text("SECRET")
    path.chmod(0)
    assert server.get("/static/locked.txt").status == 404
    server.until_logged(r"locked\.txt.*Permission denied")


def test_a_link_that_leads_out_is_in_the_log(server: Server) -> None:
    for name in ("outside", "absolute_inside"):
        assert server.get(f"/static/{name}").status == 404
        server.until_logged(rf"a file cannot be sent: {name} of the folder \S+/static: a link leads out of it")
    assert server.get("/static/nothing_there").status == 404
    assert "nothing_there" not in server.log()


# Ranges


@pytest.mark.parametrize(
    ("range_", "status", "body", "content_range"),
    [
        ("bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=7-", 206, "789", "bytes 7-9/10"),
        ("bytes=7-99", 206, "789", "bytes 7-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=-99", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=0-1,4-5", 200, "0123456789", None),
        ("bytes=5-2", 200, "0123456789", None),
        ("bytes=x", 200, "0123456789", None),
        ("lines=1-2", 200, "0123456789", None),
    ],
)
def test_a_range_is_sent_alone(ask: Ask, range_: str, status: int, body: str | None, content_range: str | None) -> None:
    answer = ask("/static/a.txt", range=range_)
    assert answer.status == status
    assert body is None or answer.text == body
    assert (answer["content-range"] if content_range else None) == content_range
    if status == 416:
        assert answer["content-type"] == "application/problem+json"


def test_a_range_of_a_large_file_is_streamed(ask: Ask) -> None:
    answer = ask("/static/large.bin", range="bytes=100000-299999")
    assert (answer.status, answer["content-length"]) == (206, "200000")
    assert answer.body == content(LARGE)[100_000:]


def test_a_download_goes_on_only_where_the_file_is_the_same(ask: Ask) -> None:
    etag = ask("/static/a.txt")["etag"]
    for condition, status in ((etag, 206), ('"other"', 200), (f"W/{etag}", 200), (formatdate(OLD, usegmt=True), 206)):
        assert ask("/static/a.txt", range="bytes=2-", if_range=condition).status == status


def test_head_has_no_ranges(ask: Ask) -> None:
    assert ask("/static/a.txt", method="HEAD", range="bytes=2-").status == 200


# Conditions


def test_a_client_that_has_the_file_is_told_so(ask: Ask) -> None:
    first = ask("/static/a.txt")
    for fields in (
        {"if_none_match": first["etag"]},
        {"if_none_match": f'"x", W/{first["etag"]}'},
        {"if_none_match": "*"},
        {"if_modified_since": first["last-modified"]},
        {"if_none_match": first["etag"], "range": "bytes=0-1"},
    ):
        for method in ("GET", "HEAD"):
            answer = ask("/static/a.txt", method=method, **fields)
            assert (answer.status, answer.body, answer["etag"]) == (304, b"", first["etag"])
            assert answer["cache-control"] == "no-cache"
            assert "content-type" not in answer


def test_a_client_with_another_file_gets_this_one(ask: Ask) -> None:
    before = formatdate(OLD - 1, usegmt=True)
    for fields in ({"if_none_match": '"x"'}, {"if_modified_since": before}):
        assert ask("/static/a.txt", **fields).status == 200
    for fields in ({"if_match": '"x"'}, {"if_unmodified_since": before}):
        assert ask("/static/a.txt", **fields).status == 412


def test_a_file_that_was_written_is_another_at_once(server: Server, folder: Path) -> None:
    path = folder / "static" / "changing.txt"
    path.write_text("one")
    first = server.get("/static/changing.txt")
    path.write_text("two")
    second = server.get("/static/changing.txt", f"If-None-Match: {first['etag']}")
    assert (second.status, second.text) == (200, "two")
    assert second["etag"] != first["etag"]
    assert parsedate_to_datetime(second["last-modified"]) <= parsedate_to_datetime(second["date"])


VECTORS = Path(__file__).parents[1] / "protocol" / "vectors" / "files.json"


def test_the_vectors_hold_over_http(server: Server, folder: Path) -> None:
    """Those that need no other clock, and no other method than a folder has."""
    cases = [case for case in json.loads(VECTORS.read_text())["answers"] if "now" not in case]
    cases = [case for case in cases if case.get("method", "GET") in ("GET", "HEAD")]
    (folder / "static" / "vectors").mkdir(exist_ok=True)
    suffixes = {"br": ".br", "zstd": ".zst", "gzip": ".gz"}
    for number, case in enumerate(cases):
        about = {"length": 10, "modified": OLD * 10**9} | case.get("file", {})
        path = folder / "static" / "vectors" / f"{number}.txt"
        times = (about["modified"], about["modified"])
        if "encoding" in about:
            path.write_bytes(b"not compressed")
            os.utime(path, ns=times)
            path = path.with_name(path.name + suffixes[about["encoding"]])
        path.write_bytes(bytes(range(about["length"])))
        os.utime(path, ns=times)
        target = f"/{'static' if about.get('varies') else 'aged'}/vectors/{number}.txt"
        is_head = case.get("method") == "HEAD"
        lines = [f"{name}: {value}".encode().decode("latin-1") for name, value in case["fields"]]
        with server.connect() as client:
            answer = client.ask(case.get("method", "GET"), target, *lines).answer(head=is_head)
        first, count = case.get("part", (0, 0))
        told = case["headers"] | ({"content-length": str(count)} if "part" in case else {})
        assert answer.status == case["status"], case["name"]
        assert {name: answer[name] for name in told} == told, case["name"]
        if answer.status < 400:
            assert answer.body == (b"" if is_head else bytes(range(first, first + count))), case["name"]
            names = ("content-type", "content-encoding", "content-range", "etag", "last-modified", "vary")
            assert {name for name in names if name in answer} <= set(told), case["name"]


# Compressed files


def test_a_compressed_file_is_sent_to_whoever_accepts_it(ask: Ask) -> None:
    plain = ask("/static/app.css")
    assert (plain.text, plain["vary"]) == ("body {}" * 100, "Accept-Encoding")
    assert "content-encoding" not in plain
    for accepted, encoding in (("gzip", "gzip"), ("gzip, deflate, br", "br"), ("br;q=0, *", "gzip")):
        answer = ask("/static/app.css", accept_encoding=accepted)
        assert (answer["content-encoding"], answer["vary"]) == (encoding, "Accept-Encoding")
        assert answer["content-type"] == "text/css; charset=utf-8"
        assert answer["etag"] != plain["etag"]
    assert gzip.decompress(ask("/static/app.css", accept_encoding="gzip").body) == b"body {}" * 100


def test_a_compressed_file_has_ranges_and_validators_of_its_own(ask: Ask) -> None:
    whole = ask("/static/app.css", accept_encoding="br")
    part = ask("/static/app.css", accept_encoding="br", range="bytes=1-2", if_range=whole["etag"])
    assert (part.status, part.body, part["content-encoding"]) == (206, b"ro", "br")
    assert ask("/static/app.css", accept_encoding="br", if_none_match=whole["etag"]).status == 304
    assert ask("/static/app.css", accept_encoding="gzip", if_none_match=whole["etag"]).status == 200


def test_an_old_compressed_file_is_not_sent(ask: Ask) -> None:
    assert ask("/static/stale.css", accept_encoding="gzip").text == "new"


def test_compressed_files_are_not_looked_for_if_not_wanted(ask: Ask) -> None:
    assert "content-encoding" not in ask("/aged/app.css", accept_encoding="gzip, br")


# File


def test_a_handler_answers_with_a_file(ask: Ask) -> None:
    answer = ask("/file?name=static/a.txt")
    assert (answer.status, answer.text) == (200, "0123456789")
    assert "cache-control" not in answer
    assert ask("/file?name=static/large.bin").body == content(LARGE)
    assert ask("/file?name=static/a.txt", range="bytes=1-2").text == "12"
    assert ask("/file?name=static/a.txt", if_none_match=answer["etag"]).status == 304


def test_a_file_after_a_wait_keeps_the_conditions_of_its_request(ask: Ask, server: Server) -> None:
    for target in ("/then", *(["/awaited"] if server.get("/awaited").status == 200 else [])):
        assert ask(target).text == "0123456789"
        answer = ask(target, range="bytes=1-2", accept_encoding="gzip")
        assert (answer.status, answer.text) == (206, "12")


def test_a_file_has_headers_and_a_name(ask: Ask) -> None:
    answer = ask("/named?name=plain.txt")
    assert answer["content-disposition"] == 'attachment; filename="plain.txt"'
    assert (answer["content-type"], answer["x-more"]) == ("text/x", "yes")
    told = ask("/named?name=%C3%BC%20%22x%22.txt&inline=true")["content-disposition"]
    assert told == "inline; filename=\"_ _x_.txt\"; filename*=UTF-8''%C3%BC%20%22x%22.txt"
    assert ask("/named?name=../a%0d%0ax.txt")["content-disposition"] == 'attachment; filename="ax.txt"'
    assert ask("/cookie")["set-cookie"].startswith("a=b")


def test_a_file_that_answers_a_post_has_no_conditions(ask: Ask) -> None:
    answer = ask("/posted", method="POST", range="bytes=1-2", if_none_match="*", content_length="0")
    assert (answer.status, answer.text) == (200, "0123456789")


@pytest.mark.parametrize("name", ["missing", "static", "static/fifo", "static/sock"])
def test_a_file_that_cannot_be_read_is_an_error_of_the_application(ask: Ask, server: Server, name: str) -> None:
    answer = ask(f"/file?name={name}")
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(rf'a file cannot be sent: \S*/{name}\b.* request="GET /file\S* \({answer["x-request-id"]}\)"')


def test_hooks_decide_who_gets_a_file(serve: Serve, folder: Path) -> None:
    server = serve("files", environment={"FILES": str(folder), "HOOKED": "yes"})
    assert server.get("/static/a.txt").status == 401
    yes = "Authorization: yes"
    assert server.get("/static/a.txt", yes).text == "0123456789"
    assert server.get("/static/docs/", yes).text == "<p>docs"
    assert server.get("/static/app.css", yes, "Accept-Encoding: gzip")["content-encoding"] == "gzip"
    assert server.get("/static/a.txt", yes, "Range: bytes=1-2").text == "12"
    assert server.get("/static/%2e%2e/secret.txt", yes).status == 400
    for target, text in (
        ("/static/a%2520b.txt", "a percent sign"),
        ("/static/a%20b%20%C3%BC.css", "p {}"),
        ("/static/%2570rivate/x.txt", "public"),
        ("/static/%2570riv%61te/x.txt", "public"),
    ):
        assert server.get(target, yes).text == text, target
    assert server.get("/static/a%20b.txt", yes).status == 404


PRIVATE = [
    "/static/private/x.txt",
    "/static/private/",
    "/static/private",
    "/static/%70rivate/x.txt",
    "/static/%70RIVATE/x.txt",
    "/static/priv%61te/x.txt",
    "/static/private%2Fx.txt",
    "/static/private%2fx.txt",
    "/static/private%252Fx.txt",
    "/static/private%5Cx.txt",
    "/static/private\\x.txt",
    "/static/private//x.txt",
    "/static//private/x.txt",
    "//static/private/x.txt",
    "/static/./private/x.txt",
    "/static/docs/../private/x.txt",
    "/static/docs/%2E%2e/private/x.txt",
    "/static/docs%2F..%2Fprivate/x.txt",
    "/static/docs/%252e%252e/private/x.txt",
    "/static/%252570rivate/x.txt",
    "/static/%2570rivate%2Fx.txt",
    "/static/%c1%b0rivate/x.txt",
    "/static/%e0%81%b0rivate/x.txt",
    "/static/%FFprivate/x.txt",
    "/static/%00private/x.txt",
    "/static/private/x.txt%00",
    "/static/private%00/x.txt",
    "/static/%u0070rivate/x.txt",
    "/static/private;a=b/x.txt",
    "/static/%2/%70rivate/x.txt",
    "/st%61tic/%70rivate/x.txt",
    "/st%2561tic/private/x.txt",
    "http://localhost/static/%70rivate/x.txt",
]


def test_a_hook_cannot_be_passed_by_another_spelling_of_a_name(serve: Serve, folder: Path) -> None:
    """The name that a hook sees is the one that is opened."""
    server = serve("files", environment={"FILES": str(folder), "HOOKED": "yes"})
    for target in PRIVATE:
        answer = server.get(target, "Authorization: yes")
        assert answer.status in (400, 403, 404), target
        assert b"SECRET" not in answer.body, target
    assert server.get("/static/private/x.txt", "Authorization: yes").status == 403
    assert server.get("/static/%70rivate/x.txt", "Authorization: yes").status == 403


def test_a_path_that_is_too_long_for_a_file_is_not_found(serve: Serve, folder: Path) -> None:
    server = serve("files", environment={"FILES": str(folder), "HOOKED": "yes"}, header_limit="128KiB")
    assert server.get("/static/" + "x" * 70_000, "Authorization: yes").status == 404
    assert server.get("/hola/" + "x" * 70_000, "Authorization: yes").status == 200


# Clients that are slow, or leave; files that change


def open_files(server: Server, path: Path) -> int:
    """How often the core has this file open."""
    links = Path(f"/proc/{server.pid}/fd").iterdir()

    def target(link: Path) -> str:
        try:
            return str(link.readlink())
        except FileNotFoundError:
            return ""

    return sum(target(link).startswith(str(path)) for link in links)


@pytest.fixture(scope="module")
def huge(folder: Path) -> Path:
    path = folder / "static" / "huge.bin"
    path.write_bytes(content(1024 * 1024) * (HUGE // (1024 * 1024)))
    return path


def test_a_slow_reader_costs_a_bounded_number_of_bytes(server: Server, huge: Path) -> None:
    server.get("/static/large.bin")
    before = server.resident_bytes
    slow = [server.connect(receive_buffer=4096, segment=1460) for _ in range(20)]
    for client in slow:
        client.ask("GET", "/static/huge.bin")
        assert client.opening()["content-length"] == str(HUGE)
    streams = [(client, client.ask("GET", "/static/huge.bin")) for client in (server.connect2(), server.connect2())]
    for client2, stream in streams:
        client2.opening(stream)
    watch = Stopwatch()
    assert server.get("/static/a.txt").status == 200
    assert watch.seconds < BUSY
    assert server.resident_bytes - before < 16 * 1024 * 1024
    until("the files are open", lambda: open_files(server, huge) == 22)
    for client in slow:
        client.close()
    for client2, _ in streams:
        client2.close()
    until("the files are closed", lambda: open_files(server, huge) == 0)


def test_a_huge_file_is_whole(server: Server, huge: Path) -> None:
    with server.connect() as client:
        opened = client.ask("GET", "/static/huge.bin").opening()
        part = content(1024 * 1024)
        whole = b"".join(client.pieces(opened))
    assert whole == part * (HUGE // len(part))
    until("the file is closed", lambda: open_files(server, huge) == 0)


def test_a_client_that_leaves_frees_its_file(server: Server, huge: Path) -> None:
    client2 = server.connect2()
    stream = client2.ask("GET", "/static/huge.bin")
    client2.opening(stream)
    client = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/static/huge.bin")
    client.opening()
    assert server.until_parked(2)
    client2.reset(stream)
    client.reset()
    until("the files are closed", lambda: open_files(server, huge) == 0)
    server.until_zero()
    assert client2.get("/static/a.txt").status == 200


@pytest.mark.parametrize("change", ["shorter", "rewritten"])
def test_a_file_that_changes_breaks_its_answer_off(server: Server, huge: Path, folder: Path, change: str) -> None:
    path = folder / "static" / f"{change}.bin"
    path.write_bytes(huge.read_bytes())
    client = server.connect(receive_buffer=4096, segment=1460).ask("GET", f"/static/{path.name}")
    opened = client.opening()
    if change == "shorter":
        os.truncate(path, 1_000_000)
    else:
        path.write_bytes(b"x" * HUGE)
    received = b""
    with pytest.raises((Closed, ConnectionError)):  # noqa: PT012
        for piece in client.pieces(opened):
            received += piece
    assert len(received) < HUGE
    assert b"xxxx" not in received
    server.until_logged(rf"a file was not sent to its end.*{path.name}\S* of the folder .*it was changed")
    server.still_serves()


def test_a_file_that_is_replaced_is_sent_to_its_end(server: Server, huge: Path, folder: Path) -> None:
    path = folder / "static" / "replaced.bin"
    path.write_bytes(huge.read_bytes())
    client = server.connect(receive_buffer=4096, segment=1460).ask("GET", f"/static/{path.name}")
    opened = client.opening()
    other = folder / "other"
    other.write_bytes(b"x" * HUGE)
    other.replace(path)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000_000)
    assert b"".join(client.pieces(opened)) == huge.read_bytes()
    path.unlink()


def test_a_thousand_downloads_at_a_time(server: Server, folder: Path) -> None:
    clients = [server.connect() for _ in range(1_000)]
    for client in clients:
        client.ask("GET", "/static/large.bin")
    whole = content(LARGE)
    for client in clients:
        answer = client.answer()
        assert (answer.status, answer.body) == (200, whole)
        client.close()
    until("the files are closed", lambda: open_files(server, folder / "static" / "large.bin") == 0)


def test_too_many_open_files_are_refused(serve: Serve, folder: Path, huge: Path) -> None:
    """With 320 descriptors, 40 files may stay open."""
    server = serve("files", environment={"FILES": str(folder)}, prefix=["prlimit", "--nofile=320:320"])
    slow: list[Client] = []
    for _ in range(40):
        slow.append(server.connect(receive_buffer=4096, segment=1460).ask("GET", "/static/huge.bin"))
        slow[-1].opening()
    refused = server.get("/static/huge.bin")
    assert (refused.status, refused["retry-after"]) == (503, "5")
    assert server.get("/static/a.txt").status == 200, "a small file does not stay open"
    slow[0].close()
    until("there is room", lambda: open_files(server, huge) == 39)
    another = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/static/huge.bin")
    assert another.opening().status == 200


def test_the_folder_may_be_replaced(serve: Serve, tmp_path: Path) -> None:
    """A build writes another folder and swaps the two."""
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "a.txt").write_text("one")
    server = serve("files", environment={"FILES": str(tmp_path)})
    assert server.get("/static/a.txt").text == "one"
    (tmp_path / "static").rename(tmp_path / "before")
    gone = server.get("/static/a.txt")
    assert (gone.status, gone.json()["fault"]) == (500, "application")
    server.until_logged(r"a file cannot be sent: the folder \S+/static")
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "a.txt").write_text("two")
    assert server.get("/static/a.txt").text == "two"


def test_a_stop_lets_downloads_finish(serve: Serve, folder: Path) -> None:
    server = serve("files", environment={"FILES": str(folder)}, grace="10s")
    client = server.connect().ask("GET", "/static/large.bin")
    opened = client.opening()
    server.signal(signal.SIGTERM)
    assert b"".join(client.pieces(opened)) == content(LARGE)


def test_the_status_counts_files(server: Server, huge: Path) -> None:
    client = server.connect(receive_buffer=4096, segment=1460).ask("GET", "/static/huge.bin")
    client.opening()
    status = server.until_parked(1)
    assert "file" in str(status["waits"])
    client.close()
