"""`plackup -s Parkade`: Parkade takes the place of plackup, with the options that people already have."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import perl
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import PARKADE, Server, clean_environment
from .harness.until import until

PLACKUP = shutil.which("plackup") or ""

pytestmark = pytest.mark.skipif(not PLACKUP, reason="plackup is not installed")

NOTHING_ELSE = {"bind": None, "workers": None, "job_workers": None, "grace": None}
"""None of the settings that the harness gives a server otherwise."""

APP = """
my $version = 'one';
sub {
    my ($env) = @_;
    return [200, ['Content-Type', 'text/plain'], ["$version $ENV{PLACK_ENV} $env->{PATH_INFO} $$"]];
};
"""

STARTER = """
import os, sys
descriptors = list(map(int, sys.argv[1].split(",")))
os.environ["SERVER_STARTER_PORT"] = ";".join(f"127.0.0.1:80={descriptor}" for descriptor in descriptors)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Does what start_server does: the variable names the descriptors of sockets."""

COMMAND = """
my $file = shift; local @ARGV = @ARGV; my $runner = Plack::Runner->new; $runner->parse_options(@ARGV);
my %options = @{ $runner->{options} };
print join "\\n", Plack::Handler::Parkade->new(%options)->command($file, @ARGV);
"""
"""Prints the command line of the server."""

USUAL = {"connections-limit": "100000", "max-requests": "0"}

Plackup = Callable[..., Server]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    file = tmp_path / "app.psgi"
    file.write_text(APP)
    return file


@pytest.fixture
def plackup(serve: Serve, tmp_path: Path) -> Plackup:
    """Starts it in the application's folder, at a port of its own, and waits until Parkade is ready."""

    def start(*words: str, at: tuple[str, ...] | None = None, **settings: object) -> Server:
        port = free_port()
        listening = ("--host", "127.0.0.1", "--port", str(port)) if at is None else at
        usual = ("-I", str(perl.MODULES), "-s", "Parkade", "--parkade", str(PARKADE), "--grace", "2s")
        return serve(program=(PLACKUP, *usual, *listening, *words), folder=tmp_path, **(NOTHING_ELSE | settings))

    return start


def test_it_serves_app_psgi_and_becomes_the_server(plackup: Plackup, app: Path) -> None:
    server = plackup("-E", "deployment", "--workers", "2", "--max-requests", "1000")
    assert server.get("/path").text.startswith("one deployment /path ")
    server.ready(2)
    assert len(server.worker_pids()) == 2
    assert os.readlink(f"/proc/{server.pid}/exe") == os.path.realpath(PARKADE), "the same process"


def test_it_listens_where_it_is_told(plackup: Plackup, app: Path, short_folder: Path) -> None:
    port, other = free_port(), free_port()
    server = plackup("--listen", f"127.0.0.1:{port}", "--listen", f":{other}", "-a", str(app), at=())
    assert [address[1] for address in server.addresses] == [port, other]
    server.stop()
    socket = short_folder / "web.sock"
    plackup("--socket", str(socket), "--listen", f"127.0.0.1:{port}", "--listen", str(socket), str(app), at=())
    assert socket.is_socket()


def test_middleware_of_development_and_code_on_the_command_line(plackup: Plackup, app: Path) -> None:
    server = plackup(
        "-M", "Plack::Builder", "-e", 'enable "ContentLength"; mount "/under" => sub { die "in the middle" }'
    )
    page = server.get("/under/x", "Accept: text/html")
    assert (page.status, "in the middle" in page.text) == (500, True), "the page of Plack::Middleware::StackTrace"
    server.until_logged(r'"GET /under/x HTTP/1\.1" 500')


def test_a_path_and_a_log_of_plack(plackup: Plackup, app: Path, tmp_path: Path) -> None:
    server = plackup("--path", "/shop", "--access-log", str(tmp_path / "access"), "-E", "deployment")
    assert server.get("/shop/lots").text.startswith("one deployment /lots ")
    assert server.get("/lots").status == 404
    until("the log is written", lambda: '"GET /shop/lots HTTP/1.1" 200' in (tmp_path / "access").read_text())


@pytest.mark.parametrize("how", [["-r"], ["-R", "more"]], ids=["-r", "-R"])
def test_it_reloads_when_a_file_changes(plackup: Plackup, app: Path, tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "more").mkdir()
    server = plackup(*how)
    assert server.get("/").text.startswith("one development / ")
    app.write_text(APP.replace("one", "two"))
    server.until(lambda _: server.get("/").text.startswith("two"))
    before = server.status()["code"]["generation"]
    (tmp_path / "more" / "text.pm").write_text("1;\n")
    server.until(lambda status: status["code"]["generation"] > before)


def test_sighup_loads_the_code_anew(plackup: Plackup, app: Path) -> None:
    server = plackup("-E", "deployment", "--workers", "1")
    app.write_text(APP.replace("one", "two"))
    assert server.reload()["code"]["last_reload"] == "done"
    assert server.get("/").text.startswith("two ")
    app.write_text("use strict; $nothing;")
    assert server.reload()["code"]["last_reload"] == "aborted"
    server.until_logged(r'Global symbol "\$nothing" requires explicit package name')


def test_what_others_tune_is_left_out_and_its_process_id_is_written(
    plackup: Plackup, app: Path, tmp_path: Path
) -> None:
    server = plackup(
        "--pid", str(tmp_path / "pid"), "--backlog", "1024", "--keepalive-timeout", "5", "--max-workers", "1"
    )
    assert int((tmp_path / "pid").read_text()) == server.pid
    server.until_logged("Parkade has no use for --backlog")


def refused(app: Path, *options: str) -> str:
    """What is said to options that end it."""
    words = [PLACKUP, "-I", str(perl.MODULES), "-s", "Parkade", "--parkade", str(PARKADE), str(app), *options]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False, env=clean_environment())
    assert ended.returncode != 0
    return ended.stderr


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ("-D", "no --daemonize: .* service manager"),
        ("--user nobody", "no --user: .* started as that user"),
        ("--group nogroup", "no --group: .* started with that group"),
        ("--ssl 1 --ssl-key-file k --ssl-cert-file c", "no --ssl: it does no TLS: have a proxy .* --trust"),
        ("--ssl", "no --ssl: it does no TLS"),
        ("--enable-ssl", "no --ssl: it does no TLS"),
        ("--ssl-cert c --ssl-key k", "no --ssl-cert: it does no TLS"),
        ("--tls-cert-file c", "no --tls-cert-file: it does no TLS"),
        ("--listen :8443:ssl", "cannot listen with :ssl: it does no TLS"),
        ("--child-exit sub{}", "no --child-exit: .* END blocks"),
        ("--proxy-protocol 1", "no --proxy-protocol: .* --trust"),
        ("--net-server-log-level 4", "no --net-server-log-level: it is not built on Net::Server"),
    ],
)
def test_what_would_be_missed_is_refused(app: Path, options: str, advice: str) -> None:
    assert re.search(f"Parkade has {advice}|Parkade {advice}", refused(app, *options.split()))


def test_a_setting_that_nobody_has_is_refused(app: Path) -> None:
    assert "unexpected argument '--no-such-thing'" in refused(app, "--no-such-thing", "1")


IGNORED = {
    "plackup": "timeout ipv6",
    "Starman": "backlog preload-app keepalive-timeout max-keepalive-requests read-timeout min-servers "
    "min-spare-servers max-spare-servers",
    "Twiggy": "backlog timeout no-delay read-chunk-size",
    "Feersum": "preload-app hot-restart reuseport epoll-exclusive keepalive read-timeout header-timeout write-timeout "
    "startup-timeout max-connection-reqs max-accept-per-loop max-read-buf read-priority write-priority accept-priority "
    "sendfile quiet verbose",
    "Starlet, Gazelle, Monoceros": "timeout keepalive-timeout max-keepalive-reqs max-keepalive-connection "
    "max-readahead-reqs min-reqs-per-child spawn-interval err-respawn-interval main-process-delay",
    "Parkade, for Python": "threads on-disconnect",
}


@pytest.mark.parametrize("names", IGNORED.values(), ids=IGNORED)
def test_what_other_servers_tune_is_left_out(plackup: Plackup, app: Path, names: str) -> None:
    words = [word for name in names.split() for word in (f"--{name}", "1")]
    server = plackup(*words, "--disable-proctitle", "--disable-keepalive")
    for name in (*names.split(), "proctitle", "keepalive"):
        assert f"Parkade has no use for --{name}\n" in server.log()
    assert server.get("/").text.startswith("one ")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("--workers 2 --max-requests 9", {"workers": "2", "max-requests": "9"}),
        ("--max-workers 2 --max-reqs-per-child 9", {"workers": "2", "max-requests": "9"}),
        ("--pre-fork 2 --max-requests-per-worker 9", {"workers": "2", "max-requests": "9"}),
        ("--max-servers 4 --workers 2", {"workers": "2"}),
        ("--max-connections 50 --max-body-len 2000", {"connections-limit": "50", "body-limit": "2000"}),
        ("--max-connections 0 --max-body-len 0 --max-requests 0", {"connections-limit": "100000", "max-requests": "0"}),
    ],
)
def test_what_parkade_has_too_is_passed_on(plackup: Plackup, app: Path, options: str, settings: dict[str, str]) -> None:
    modules = [f"-I{perl.MODULES}", "-MPlack::Runner", "-MPlack::Handler::Parkade"]
    asked = ["perl", *modules, "-e", COMMAND, str(app), *options.split()]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, env=clean_environment())
    words = ran.stdout.split()
    told = dict(pairwise(words))
    assert {name: told.get(f"--{name}", USUAL.get(name)) for name in settings} == settings
    assert len([word for word in words if word == "--workers"]) <= 1
    plackup(*options.split())


def test_an_error_log_gets_the_log(plackup: Plackup, app: Path, tmp_path: Path) -> None:
    log = tmp_path / "errors"
    log.write_text("before\n")
    app.write_text(APP.replace("sub {", "sub { print STDERR qq(printed\\n);", 1))
    server = plackup("--error-log", str(log), "-E", "deployment")
    port = int(server.status()["addresses"][0].rsplit(":", 1)[1])
    with Client(("127.0.0.1", port)) as client:
        client.get("/")
    until("all is there", lambda: re.search(r"\Abefore\n.*a worker is ready.* printed", log.read_text(), re.DOTALL))
    assert "is ready" not in server.log()


def test_a_program_with_a_runner_of_its_own(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "shop"
    script.write_text(
        "use strict; use Plack::Runner; use FindBin;\n"
        f"use lib '{perl.MODULES}';\n"
        "my $runner = Plack::Runner->new(server => 'Parkade', env => 'deployment');\n"
        "$runner->parse_options(@ARGV);\n"
        '$runner->run(sub { [200, [], ["of its own, in $FindBin::Bin"]] });\n'
    )
    words = ("perl", str(script), "-s", "Parkade", "--parkade", str(PARKADE), "-p", str(free_port()), "-o", "127.0.0.1")
    server = serve(program=words, folder=tmp_path, **NOTHING_ELSE)
    assert server.get("/").text == f"of its own, in {tmp_path}"


def test_it_takes_the_sockets_of_start_server(plackup: Plackup, serve: Serve, app: Path, tmp_path: Path) -> None:
    """Wherever they are: start_server takes the numbers that are free."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        descriptors = [second.fileno(), first.fileno()]
        starter = (sys.executable, "-c", STARTER, ",".join(map(str, descriptors)))
        usual = ("-I", str(perl.MODULES), "-s", "Parkade", "--parkade", str(PARKADE), "--grace", "2s", "app.psgi")
        server = serve(program=(*starter, PLACKUP, *usual), folder=tmp_path, pass_fds=descriptors, **NOTHING_ELSE)
        assert [address[1] for address in server.addresses] == [second.getsockname()[1], first.getsockname()[1]]
        for listener in (first, second):
            with Client(listener.getsockname()) as client:
                assert client.get("/").text.startswith("one ")
        environment = Path(f"/proc/{server.worker_pids()[0]}/environ").read_bytes()
        assert b"LISTEN_FDS" not in environment
        assert b"SERVER_STARTER_PORT" not in environment


def test_the_arguments_of_the_program_are_there_when_a_request_is(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "shop"
    script.write_text(
        f"use lib '{perl.MODULES}'; use Plack::Loader;\n"
        "Plack::Loader->load('Parkade', port => $ARGV[0], host => '127.0.0.1', parkade => $ARGV[1])\n"
        "  ->run(sub { [200, [], [join ' ', @ARGV]] });\n"
    )
    words = (str(free_port()), str(PARKADE), "--more")
    server = serve(program=("perl", str(script), *words), folder=tmp_path, **NOTHING_ELSE)
    assert server.get("/").text == " ".join(words)
