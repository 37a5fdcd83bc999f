"""Plain Perl that waits: Parkade's own interface in a Perl worker, and its waits in applications of PSGI."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import perl
from .harness.client import Closed
from .harness.postgres import Postgres
from .harness.server import PARKADE, Server, clean_environment, run
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.skipif(not perl.has("JSON::PP"), reason="there is no Perl")

FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def native(serve_for_all: Serve) -> Server:
    server = serve_for_all(perl.app("native.pl"), workers=1)
    return server.ready(job_workers=1)


@pytest.fixture(scope="module")
def hosted(perl_loop: None, serve_for_all: Serve) -> Server:
    server = serve_for_all(perl.app("waits.psgi"), workers=1)
    return server.ready(job_workers=1)


# How it is started


def test_a_script_is_known_by_its_first_line(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "my_app"
    script.write_text("#!/usr/bin/env perl\nuse Parkade;\nget '/' => sub { 'from a script' };\n1;\n")
    assert serve(str(script)).get("/").text == "from a script"


def test_the_last_value_of_a_script_with_routes_does_not_matter(serve: Serve, tmp_path: Path) -> None:
    app = tmp_path / "app.pl"
    app.write_text("use Parkade; get '/' => sub { 'here' }; -e '/nothing/there';\n")
    assert serve(app).get("/").text == "here"


def test_a_module_is_found_in_lib(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "lib" / "My").mkdir(parents=True)
    code = "package My::App; use Parkade; get '/' => sub { 'from a module' }; 1;\n"
    (tmp_path / "lib" / "My" / "App.pm").write_text(code)
    assert serve("My::App", directory=tmp_path).get("/").text == "from a module"


def test_any_program_may_be_the_worker(serve: Serve) -> None:
    server = serve(perl.app("native.pl"), worker=f"perl {perl.WORKER}")
    assert server.get("/hola/you").text == "hola you"


def test_a_perl_that_is_not_there_is_told() -> None:
    ended = run("serve", perl.app("native.pl"), "--perl", "/nowhere/perl")
    assert ended.returncode == 2
    assert "cannot run the interpreter /nowhere/perl: No such file or directory" in ended.stderr
    assert "use --perl to name an interpreter" in ended.stderr


def test_a_perl_without_the_distribution_is_told_how_to_get_it(tmp_path: Path) -> None:
    """A server from a wheel has none next to it."""
    (tmp_path / "app.psgi").write_text("sub { [200, [], []] }")
    server = Path(shutil.copy(PARKADE, tmp_path / "parkade"))
    ended = subprocess.run(
        [server, "serve", "app.psgi", "--bind", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean_environment(PERL5LIB=""),
        timeout=20,
    )
    assert "Install the distribution Parkade for this Perl: docs/perl.md says how" in ended.stderr


def test_routes_are_listed() -> None:
    listed = run("routes", perl.app("native.pl")).stdout
    assert "/double/{number:int}" in listed
    assert "native.pl:" in listed
    assert re.search(r"^GET +/double/\{number:int\} .* sub$", listed, re.MULTILINE)
    assert not re.search(r"\bdef\b", listed)


def test_code_that_does_not_load_is_told(tmp_path: Path) -> None:
    (tmp_path / "app.pl").write_text("use strict;\n$nothing;\n")
    ended = run("serve", tmp_path / "app.pl", "--check", "-b", "127.0.0.1:0")
    assert ended.returncode != 0
    assert 'Global symbol "$nothing" requires explicit package name' in ended.stderr


def test_a_module_that_cannot_be_loaded_is_told_without_a_line_of_ours(tmp_path: Path) -> None:
    (tmp_path / "lib" / "My").mkdir(parents=True)
    (tmp_path / "lib" / "My" / "False.pm").write_text("0;\n")
    for module, told in [("My::False", "False.pm did not return a true value\n"), ("My::Nope", "My/Nope.pm in @INC")]:
        printed = run("serve", module, "--check", "-b", "127.0.0.1:0", "--directory", tmp_path).stderr
        assert told in printed
        assert "Loader.pm" not in printed


@pytest.mark.parametrize("code", ["exit 3;", "END { print STDERR qq(the end\\n) } exit 3;", "fork // die; exit 3;"])
def test_exit_while_it_is_loaded_is_told(tmp_path: Path, code: str) -> None:
    (tmp_path / "app.psgi").write_text(code)
    ended = run("serve", tmp_path / "app.psgi", "--check", "-b", "127.0.0.1:0")
    assert ended.returncode == 1
    assert "the application called exit(3) while it was loaded" in ended.stderr
    assert "the application does not load; see the error above" in ended.stderr


def test_an_application_that_declares_too_much_is_told(tmp_path: Path) -> None:
    app = tmp_path / "app.pl"
    app.write_text("use Parkade; get qq(/$_) => 'x' x 60_000 for 1 .. 20;\n")
    ended = run("serve", app, "--check", "-b", "127.0.0.1:0")
    assert ended.returncode == 1
    assert "the application declares too much: its routes, jobs and channels have 12" in ended.stderr
    assert "violat" not in ended.stderr


def test_what_a_script_dies_of_is_told_without_a_frame_of_ours(tmp_path: Path) -> None:
    app = tmp_path / "app.psgi"
    for dies, told in [
        ("die qq(at the top\\n)", "at the top\n"),
        ("sub inner { die 'inside' } inner()", f"  {app} line 1, in main::inner\ninside at {app} line 1.\n"),
    ]:
        app.write_text(f"{dies};\n")
        printed = run("serve", app, "--check", "-b", "127.0.0.1:0").stderr
        assert told in printed
        assert "Loader" not in printed


def test_dev_shows_errors_and_loads_what_has_changed(serve: Serve, tmp_path: Path) -> None:
    app, module = tmp_path / "app.pl", tmp_path / "lib" / "Shop.pm"
    module.parent.mkdir()
    module.write_text("package Shop; sub word { 'one' } 1;\n")
    app.write_text(
        'use FindBin; use lib "$FindBin::Bin/lib"; use Shop; use Parkade;\n'
        "get '/' => sub { Shop::word() };\nget '/raises' => sub { die 'for the developer' };\n1;\n"
    )
    server = serve(app, command="dev")
    assert server.get("/").text == "one"
    assert "for the developer" in server.get("/raises").text
    module.write_text("package Shop; sub word { 'two' } 1;\n")
    server.until(lambda _: server.get("/").text == "two")
    module.write_text("package Shop; use strict; sub word { $nothing } 1;\n")
    server.until(lambda _: "Global symbol" in server.get("/", "Accept: text/html").text)
    module.write_text("package Shop; sub word { 'three' } 1;\n")
    server.until(lambda _: server.get("/").text == "three")


def test_dev_takes_data_next_to_the_code_for_the_application_s_own(serve: Serve, tmp_path: Path) -> None:
    """Workers in Perl do not tell what they write. An application that writes when it is loaded would load for ever."""
    app, page, loads = tmp_path / "app.psgi", tmp_path / "page.html", tmp_path / "loads.txt"
    app.write_text(
        "sub append { open my $f, '>>', 'loads.txt' or die $!; print $f 'x' } append();\n"
        "my $page = do { local (@ARGV, $/) = 'page.html'; <> };\n"
        "sub { append(); [200, [], [$page]] };"
    )
    page.write_text("page 0")
    server = serve(app, command="dev", folder=tmp_path, workers=1)
    watch = Stopwatch()
    assert server.get("/").text == "page 0"
    (tmp_path / "data.json").write_text("{}")
    until("there was time for a reload", lambda: watch.seconds > 1)
    assert (server.status()["code"]["generation"], loads.read_text()) == (1, "xx")
    page.write_text("page 1")
    server.until(lambda _: server.get("/").text == "page 1")


# Requests and answers


@pytest.mark.parametrize(
    ("target", "status", "kind", "body"),
    [
        ("/hola/J%C3%BCrgen", 200, "text/plain; charset=utf-8", "hola J\xfcrgen"),
        ("/double/21", 200, "application/json", '{"double":42}'),
        ("/echo?field=h%C3%A9+llo", 200, "text/plain; charset=utf-8", "You said: h\xe9 llo"),
        ("/html", 201, "text/html; charset=utf-8", "<p>\xf1</p>"),
        ("/psgi", 202, None, "psgi"),
        ("/nothing", 204, None, ""),
        ("/away", 303, None, ""),
    ],
)
def test_a_handler_answers(native: Server, target: str, status: int, kind: str | None, body: str) -> None:
    answer = native.get(target)
    assert (answer.status, answer.text) == (status, body)
    assert kind is None or answer["content-type"] == kind


def test_the_core_knows_the_routes(native: Server) -> None:
    assert native.get("/double/text").status == 404
    assert native.post("/echo", b"").status == 405


def test_fields_and_json_are_read(native: Server) -> None:
    assert native.post("/form?b=1", b"a=x&b=2&b=%C3%A9", FORM).text == "x,1,2,\xe9"
    assert native.post("/json", b'{"a": [1, "\xc3\xa9", null, true]}').json() == {"a": [1, "\xe9", None, True]}
    answer = native.post("/json", b"{")
    assert (answer.status, answer.json()["detail"]) == (400, "the body is not JSON")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/raises", "at once"),
        ("/anonymous", "an anonymous one cannot be found at .*native.pl line"),
        ("/unnamed", "the name of a channel must have 1 to 200 bytes at .*native.pl line"),
        ("/misnamed", "the name of a sub-protocol consists of .*, not chat v2 at .*native.pl line"),
        ("/large", "the answer after a timer has at most 65536 bytes"),
    ],
)
def test_a_mistake_is_500_and_logged(native: Server, target: str, why: str) -> None:
    assert native.get(target).status == 500
    native.until_logged(why)


# Channels


def test_messages_go_to_those_who_wait(native: Server) -> None:
    waiting = [native.connect().ask("GET", f"/lots/7{more}") for more in ("", "/shown")]
    until("both wait", lambda: native.status()["lives"]["parked"] == 2)
    assert native.post("/lots/7?bid=12", b"").json() == {"ok": True}
    first, shown = (client.answer() for client in waiting)
    assert (first.json(), shown.text) == ({"bid": 12}, "7: 12")
    assert first["etag"]
    assert native.get("/lots/7/all").json() == [12]
    assert native.get("/lots/8").status == 204


# Queries


def test_rows_go_to_the_client_or_to_a_function(native: Server) -> None:
    assert native.get("/sales?price=8").json() == [
        {"price": 7, "street": "Stra\xdfe"},
        {"price": "8", "street": "a"},
    ]
    assert native.get("/page").text == "S\xe4l\xe9s: 7"
    one = native.get("/one")
    assert (one.json(), one["x-a"]) == ({"price": 7}, "b")
    assert native.get("/twice").json() == {"state": ["again", [1, {"a": None}]]}


def test_a_query_that_fails_is_answered(native: Server) -> None:
    answer = native.get("/wrong")
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    native.until_logged("a query failed: near .nothing")


def test_a_whole_number_is_one_for_every_type_of_the_database(serve: Serve, postgres: Postgres) -> None:
    """Perl keeps 10 / 2 as a float, which PostgreSQL does not take for an integer."""
    server = serve(perl.app("native.pl"), workers=1, database=postgres.url)
    for kind in ("int2", "int4", "int8", "float4", "float8", "numeric", "oid"):
        answer = server.get(f"/half/{kind}?of=10")
        assert (answer.status, float(answer.json())) == (200, 5), (kind, answer.text)
    for kind in ("float4", "float8", "numeric"):
        assert float(server.get(f"/half/{kind}?of=7").json()) == 3.5
        assert [float(half) for half in server.get(f"/halves/{kind}").json()] == [5, 3.5]
    assert server.get("/half/int4?of=7").status == 400


# Jobs


def test_a_job_runs_and_its_result_is_awaited(native: Server) -> None:
    assert native.post("/enqueue/write_log", b"a=hello", FORM).json() == {"length": 5}
    native.until_logged("wrote hello")
    assert native.post("/enqueue/waits", b"").text == "so long"
    assert len(native.post("/later", b"").text) == 36
    native.until_logged("wrote later")


def test_attempts_that_fail(native: Server, tmp_path: Path) -> None:
    assert native.post("/enqueue/flaky", f"a={tmp_path}/made".encode(), FORM).text == "well"
    assert native.post("/enqueue/fails", b"").status == 500
    native.until_logged("a job failed for good.*of no use")
    assert native.post("/enqueue/exits", b"").status == 500
    native.until_logged("a job failed for good.*the application called exit")


@pytest.mark.parametrize("target", ["/exits", "/exits/after", "/exits/piece"])
def test_exit_ends_its_request_and_its_worker_leaves_in_order(serve: Serve, target: str) -> None:
    server = serve(perl.app("native.pl"), workers=1)
    if target.endswith("piece"):
        with server.connect().ask("GET", target) as client, pytest.raises((Closed, ConnectionError)):
            list(client.pieces(client.opening()))
    else:
        assert server.get(target).status == 500
    server.until_logged("the application called exit: its worker ends")
    server.until(lambda status: status["counts"]["workers_recycled"] == 1)
    assert server.get("/hola/you").text == "hola you"
    assert server.status()["counts"]["workers_died"] == 0


# Waits in applications of PSGI


def test_a_response_stands_for_a_wait(hosted: Server) -> None:
    waiting = [hosted.connect().ask("GET", target) for target in ("/news", "/shown")]
    until("both wait", lambda: hosted.status()["lives"]["parked"] == 2)
    assert hosted.get("/publish").text == "published"
    news, shown = (client.answer() for client in waiting)
    assert (news.text, shown.text) == ("news", "shown: news")
    assert news["x-middleware"] == "kept"
    later = hosted.get("/env")
    assert (later.text, later["x-middleware"]) == ("later", "kept")
    assert hosted.get("/delayed").text == "delayed"
    assert hosted.get("/job").text == "wrote a"


def test_a_client_cannot_name_a_wait(hosted: Server) -> None:
    assert hosted.get("/echo", "X-Key: 1").status == 500
    hosted.until_logged("was returned before, or for another request")


def test_a_response_of_another_request_is_refused(hosted: Server) -> None:
    (client,) = hosted.waiting("/kept", 1)
    hosted.until_parked(1)
    hosted.publish("news", b"news")
    assert client.answer().text == "news"
    assert hosted.get("/kept").status == 500
