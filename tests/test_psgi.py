"""PSGI applications: what PSGI 1.1 says, and the frameworks that Debian packages, unchanged."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import perl
from .harness.client import Closed
from .harness.server import ROOT, Server
from .harness.until import Stopwatch, until
from .harness.versions import VERSIONS, Ask, asking_over

pytestmark = [
    pytest.mark.skipif(not perl.has("JSON::PP"), reason="there is no Perl"),
    pytest.mark.usefixtures("perl_loop"),
]

Start = Callable[..., Server]


def starting(serve: Serve) -> Start:
    def start(name: str = "raw.psgi", **settings: object) -> Server:
        return serve(perl.app(name), **{"workers": 1} | settings)

    return start


@pytest.fixture
def start(serve: Serve) -> Start:
    """Starts a server with an application of `tests/apps/perl`."""
    return starting(serve)


@pytest.fixture(scope="module")
def shared(perl_loop: None, serve_for_all: Serve) -> Server:
    return starting(serve_for_all)()


@pytest.fixture
def server(shared: Server) -> Server:
    return shared


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


# The loop


def test_the_log_tells_which_loop_is_used(start: Start) -> None:
    is_compiled = os.environ["PARKADE_ACCELERATOR"] == "1"
    told = "the compiled loop is " + ("used" if is_compiled else "not used: PARKADE_ACCELERATOR is 0")
    start(log_level="debug").until_logged(told)


# The request


def test_the_environment_tells_of_the_request(ask: Ask) -> None:
    fields = (("accept", "a"), ("accept", "b"), ("cookie", "c=1"), ("cookie", "d=2"))
    told = ask("/environ?a=%20&b", fields=fields).json()
    assert (told["REQUEST_METHOD"], told["SCRIPT_NAME"], told["PATH_INFO"]) == ("GET", "", "/environ")
    assert (told["QUERY_STRING"], told["REQUEST_URI"]) == ("a=%20&b", "/environ?a=%20&b")
    assert (told["HTTP_ACCEPT"], told["HTTP_COOKIE"]) == ("a, b", "c=1; d=2")
    assert told["REMOTE_ADDR"] == "127.0.0.1"
    assert told["SERVER_PROTOCOL"] in ("HTTP/1.1", "HTTP/2.0")
    assert told["SERVER_NAME"]
    assert told["SERVER_PORT"].isdigit()
    assert (told["psgi.url_scheme"], told["psgi.version"]) == ("http", "1.1")
    yes = ("psgi.multiprocess", "psgi.streaming", "psgix.input.buffered", "psgix.cleanup", "psgix.harakiri")
    no = ("psgi.multithread", "psgi.run_once", "psgi.nonblocking")
    assert {name: told[name] for name in (*yes, *no)} == dict.fromkeys(yes, "yes") | dict.fromkeys(no, "no")
    assert "CONTENT_LENGTH" not in told
    assert "psgix.io" not in told
    assert told["parkade.request_id"]


def test_a_path_is_decoded_to_bytes(server: Server) -> None:
    told = server.get("/%65nviron/caf%C3%A9").json()
    assert (told["PATH_INFO"], told["REQUEST_URI"]) == ("/environ/caf\xc3\xa9", "/%65nviron/caf%C3%A9")


def test_a_field_that_would_pass_for_another_is_left_out(ask: Ask) -> None:
    told = ask("/environ", fields=(("x_forwarded_for", "1.1.1.1"), ("proxy", "http://evil"))).json()
    assert [name for name in told if "FORWARDED" in name or "PROXY" in name] == []


@pytest.mark.parametrize("size", [10, 65_536, 65_537, 300_000, 3_000_000])
def test_a_body_can_be_read_again(ask: Ask, size: int) -> None:
    body = bytes(48 + at % 10 for at in range(size))
    assert ask("/echo", "POST", body).body == body
    assert ask("/twice", "POST", body).text == f"{size} {size} 34567"


def test_what_an_application_prints_after_each_line_is_not_in_a_body(start: Start, tmp_path: Path) -> None:
    app = tmp_path / "app.psgi"
    app.write_text(
        r'$\ = "\n"; $, = "-"; sub { local $/; my $body = readline $_[0]{"psgi.input"};'
        ' [200, [], [length($body) . " $_[0]{CONTENT_LENGTH} " . ($body =~ tr/x//c)]] }'
    )
    server = start(app)
    assert server.post("/", b"x" * 3_000_000).text == "3000000 3000000 0"


def test_a_chunked_body_has_a_length(server: Server) -> None:
    with server.connect() as client:
        client.send(b"POST /twice HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"5\r\nabcde\r\n5\r\nfghij\r\n0\r\n\r\n")
        assert client.answer().text == "10 10 defgh"


def test_fields_about_the_connection_are_as_sent_and_those_about_the_body_as_it_is(server: Server) -> None:
    """`protocol/PROTOCOL.md`: what of a request survives, and what an interface in the manner of CGI makes of it."""
    fields = b"Connection: keep-alive, x\r\nTE: trailers\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n"
    with server.connect() as client:
        client.send(b"POST /environ HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
        client.until_bytes(b"100 Continue\r\n\r\n")
        told = client.send(b"5\r\nabcde\r\n0\r\n\r\n").answer().json()
    assert (told["HTTP_CONNECTION"], told["HTTP_TE"], told["HTTP_EXPECT"]) == (
        "keep-alive, x",
        "trailers",
        "100-continue",
    )
    assert told["CONTENT_LENGTH"] == "5"
    assert "HTTP_TRANSFER_ENCODING" not in told
    assert "HTTP_CONTENT_LENGTH" not in told


@pytest.mark.parametrize(
    ("target", "uri", "query"),
    [
        ("/environ?", "/environ", ""),
        ("/environ??", "/environ??", "?"),
        ("http://test/environ?a=b", "/environ?a=b", "a=b"),
    ],
)
def test_a_target_is_path_and_query(server: Server, target: str, uri: str, query: str) -> None:
    told = server.get(target).json()
    assert (told["PATH_INFO"], told["REQUEST_URI"], told["QUERY_STRING"]) == ("/environ", uri, query)
    assert told["HTTP_HOST"] == "test"


def test_the_scheme_and_the_client_are_those_that_a_trusted_proxy_tells(start: Start) -> None:
    server = start(trust="127.0.0.1")
    told = server.get("/environ", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https").json()
    assert (told["REMOTE_ADDR"], told["psgi.url_scheme"]) == ("192.0.2.7", "https")


# The response


def test_a_response_has_its_status_and_its_fields(ask: Ask) -> None:
    answer = ask("/fields")
    assert (answer.status, answer.text, answer["x-empty"]) == (201, "fields", "")
    assert [value for name, value in answer.fields if name == "set-cookie"] == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        ("/nothing", 204, b""),
        ("/empty", 200, b""),
        ("/pieces", 200, b"one two"),
        ("/lines", 200, b"one two"),
        ("/file", 200, b"x" * 200_000),
        ("/delayed", 200, b"delayed"),
        ("/writer", 200, b"one two"),
        ("/forgotten", 200, b"written"),
    ],
)
def test_a_body_of_any_kind_is_sent(ask: Ask, target: str, status: int, body: bytes) -> None:
    answer = ask(target)
    assert (answer.status, answer.body) == (status, body)


def test_text_that_fits_into_bytes_is_sent_as_bytes(server: Server) -> None:
    answer = server.get("/latin")
    assert (answer.body, answer["x-name"]) == (b"J\xfcrgen", "J\xfcrgen")


@pytest.mark.parametrize("target", ["/hola/you", "/pieces", "/empty", "/file", "/writer"])
def test_head_has_no_body(ask: Ask, target: str) -> None:
    answer = ask(target, "HEAD")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("path", ["held", "writer"])
def test_a_piece_is_sent_before_the_next_is_made(server: Server, path: str) -> None:
    with server.connect().ask("GET", f"/{path}/{path}") as client:
        pieces = client.pieces(client.opening())
        assert next(pieces) == b"one "
        server.open_gate(path)
        assert b"".join(pieces) == b"two"


def test_a_body_is_closed_also_if_its_client_leaves(start: Start) -> None:
    server = start()
    with server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless") as client:
        client.opening()
    server.until_logged("the body is closed")
    assert server.get("/hola/you").text == "Hola you"


def test_slow_readers_hold_no_worker(start: Start) -> None:
    server = start()
    slow = [server.connect(receive_buffer=4096, segment=1460).ask("GET", "/endless") for _ in range(3)]
    for client in slow:
        client.opening()
    assert server.get("/hola/you").text == "Hola you"
    for client in slow:
        client.close()
    until("all bodies are closed", lambda: server.log().count("the body is closed") == 3)


def test_what_is_broken_off_is_seen_by_its_client(server: Server) -> None:
    with server.connect().ask("GET", "/broken") as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.until_logged("in the middle")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/raises", "at once"),
        ("/object", "{'an' => 'object'}"),
        ("/wide", "wide characters in a response"),
        ("/text", "the application must return an array or a code reference, not the text"),
        ("/undef", "the application must return an array or a code reference, not undef"),
        ("/status", "the first element of a response must be its status, 200 to 599"),
        ("/large", "a response is too large: its head has at most a million bytes"),
        (
            "/body",
            "the body of a response must be an array, a file handle, or an object with getline and close, not text",
        ),
        ("/nobody", "the application dropped the responder of a request without answering it"),
    ],
)
def test_a_mistake_is_500_and_logged(ask: Ask, server: Server, target: str, why: str) -> None:
    answer = ask(target)
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(re.escape(why))


def test_a_second_answer_is_refused_and_logged(server: Server) -> None:
    assert server.get("/second").text == "first"
    server.until_logged("the responder of a request was called a second time")


# Answers that are put aside


def held(server: Server) -> int:
    """How many requests its workers hold."""
    return sum(worker["held"] for worker in server.status()["workers"])


def test_requests_are_put_aside_and_answered_by_another(start: Start) -> None:
    server = start()
    waiting = [server.connect().ask("GET", "/aside") for _ in range(200)]
    until("all of them wait", lambda: held(server) == 200)
    assert server.get("/release").text == "200"
    assert {client.answer().text for client in waiting} == {"released"}


def test_a_client_that_leaves_is_told_to_the_application(start: Start) -> None:
    server = start()
    client = server.connect().ask("GET", "/aside")
    server.until_logged("put aside")
    client.close()
    server.until_logged("told: client_left")
    assert server.get("/release").text == "1"


def test_an_answer_that_is_forgotten_is_500(start: Start) -> None:
    server = start()
    client = server.connect().ask("GET", "/aside")
    server.until_logged("put aside")
    assert server.get("/drop").text == "dropped"
    forgotten = client.answer()
    assert forgotten.status == 500
    server.until_logged(f'without answering it request_id="{forgotten["x-request-id"]}"')


def test_a_deadline_ends_what_is_put_aside(start: Start) -> None:
    server = start(deadline="300ms")
    assert server.get("/aside").status == 504
    server.until_logged("told: deadline")


# After the response, and around it


def test_cleanup_handlers_run_after_the_response(server: Server) -> None:
    assert server.get("/cleanup/clean").text == "before"
    server.open_gate("clean")
    server.until_logged("cleaned up after /cleanup/clean")


@pytest.mark.parametrize(
    ("what", "told"),
    [("nothing", "it is gone"), ("handlers", "it is gone"), ("environment", "it is kept"), ("before", "it is kept")],
)
def test_a_delayed_response_keeps_the_environment_only_if_it_may_be_needed(start: Start, what: str, told: str) -> None:
    server = start()
    client = server.connect().ask("GET", f"/aside_with/{what}")
    until("it waits", lambda: held(server) == 1)
    assert server.get("/release").text == "1"
    assert client.answer().text == told
    if what != "nothing":
        server.until_logged(f"cleaned up after /aside_with/{what}")
    if what == "environment":
        server.until(lambda status: status["counts"]["workers_recycled"] == 1)


def test_a_worker_leaves_at_its_own_wish(start: Start) -> None:
    server = start()
    left = set()
    for count in range(1, 4):
        left.add(server.get("/harakiri").text)
        server.until(lambda status, count=count: status["counts"]["workers_recycled"] == count)
        assert server.get("/pid").text not in left
    # It has not died, so no fresh one is put off.
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.parametrize(("target", "status"), [("/harakiri", 200), ("/exits", 500)])
def test_what_was_sent_ahead_to_a_worker_that_leaves_goes_to_another(start: Start, target: str, status: int) -> None:
    server = start()
    for _ in range(20):
        server.get("/pid")  # it is quick, so that the core sends ahead
    clients = server.waiting(target, 20)
    assert {client.answer().status for client in clients} == {status}
    assert server.status()["counts"]["workers_died"] == 0


def test_what_is_printed_is_in_the_log(server: Server) -> None:
    server.get("/prints")
    for line in ("to the standard output", "to psgi.errors", "WARN a warning at .*raw.psgi line", "of a child"):
        server.until_logged(line)


def test_a_child_that_returns_answers_nothing(server: Server) -> None:
    assert server.get("/forks").text == "from the parent"
    assert server.get("/hola/you").text == "Hola you"


@pytest.mark.parametrize(("target", "status"), [("/exits", 500), ("/exits_later", 500), ("/exits_cleanup", 200)])
def test_a_worker_that_exits_fails_its_request_only(start: Start, target: str, status: int) -> None:
    server = start()
    assert server.get(target).status == status
    server.until_logged("the application called exit: its worker ends")
    server.until(lambda status: status["counts"]["workers_recycled"] == 1)
    assert server.get("/hola/you").text == "Hola you"
    assert server.status()["counts"]["workers_died"] == 0


def test_a_stuck_worker_shows_its_stack(start: Start) -> None:
    server = start(deadline="300ms")
    assert server.get("/stuck").status == 504
    server.until_logged(r"raw\.psgi line \d+, in ")
    until("another worker serves", lambda: server.get("/hola/you").status == 200)


def test_a_reload_and_a_stop_let_an_answer_end(start: Start) -> None:
    server = start(grace="10s")
    client = server.connect().ask("GET", "/held/stop")
    pieces = client.pieces(client.opening())
    assert next(pieces) == b"one "
    server.signal(signal.SIGTERM)
    server.open_gate("stop")
    assert b"".join(pieces) == b"two"


def test_code_that_does_not_compile_shows_the_error_of_its_author(start: Start, tmp_path: Path) -> None:
    (tmp_path / "app.psgi").write_text("use strict;\nmy $app = sub { $nothing };\n")
    server = start(str(tmp_path / "app.psgi"), is_ready=False)
    server.until_logged(r'Global symbol "\$nothing" requires explicit package name .* at .*/app\.psgi line 2')
    assert "Parkade/Loader.pm" not in server.log()


def test_what_an_application_does_to_its_process_harms_nobody(start: Start) -> None:
    server = start("hostile.psgi")
    (worker,) = server.worker_pids()
    told = ["alarms", "warns", "caught", "folder", "closes", "select", "ends", "exits"]
    shown = [server.get(f"/{page}").text for page in told]
    assert shown == [
        "alarmed",
        "warned",
        "caught inside\n",
        "elsewhere",
        "closed",
        "selected",
        "a child has ended",
        "a child has called exit",
    ]
    server.until_logged("its own warning: careful")
    assert server.get("/raises").status == 500
    server.until_logged("on purpose")
    body = b"one\ntwo\n" * 100_000
    assert server.post("/body", body).body == body
    assert server.get("/calm").text == "calm"
    assert server.worker_pids() == [worker]
    assert server.stop() == 0


# Programs that people have


needs_anyevent = pytest.mark.skipif(not perl.has("AnyEvent"), reason="AnyEvent is not installed")


@needs_anyevent
@pytest.mark.skipif(not perl.has("Plack::Request"), reason="Plack is not installed")
@pytest.mark.parametrize("program", ["app.psgi", "native.pl"])
def test_a_program_for_twiggy_unchanged_and_the_same_in_plain_code(start: Start, program: str) -> None:
    server = start(str(ROOT / "examples" / "twiggy" / program), deadline="60s")
    watch = Stopwatch()
    clients = [server.connect().ask("GET", f"/?field=<{number}>") for number in range(200)]
    for number, client in enumerate(clients):
        assert f"You said: &lt;{number}&gt;" in client.answer().text
    assert 2 <= watch.seconds < 60, "all of them waited at the same time, not for 400 s one after another"
    assert "<form>" in server.get("/").text


@pytest.mark.skipif(not perl.has("Plack::Test::Suite", "LWP::UserAgent"), reason="Plack is not installed")
def test_the_suite_of_plack(start: Start) -> None:
    server = start("plack_suite.psgi")
    command = ["perl", perl.app("plack_suite.pl"), str(server.address[1])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(re.findall(r"^ok \d+", ran.stdout, re.MULTILINE)) == 36


def test_the_log_tells_what_the_application_is_written_for(server: Server) -> None:
    server.until_logged("interface=PSGI")


FRAMEWORKS = {
    "mojolicious_lite": "Mojolicious::Lite",
    "dancer": "Dancer",
    "dancer2": "Dancer2",
    "web_simple": "Web::Simple",
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_answers(start: Start, name: str) -> None:
    if not perl.has(FRAMEWORKS[name]):
        pytest.skip(f"{FRAMEWORKS[name]} is not installed")
    server = start(f"{name}.psgi")
    assert [server.get(f"/hola/{who}").text for who in ("Ana", "Bo")] == ["hola Ana", "hola Bo"]
    assert server.get("/nowhere").status == 404


LOGIN = Path("/usr/share/doc/libmojolicious-perl/examples/login/script/login_app")


@pytest.mark.skipif(not LOGIN.exists(), reason="the examples of Mojolicious are not installed")
def test_an_example_of_mojolicious_works_whole(start: Start) -> None:
    """Templates, a controller, a model, sessions, in an application with commands of its own."""
    server = start(str(LOGIN), workers=2)
    assert "<form" in server.get("/").text
    assert server.get("/protected").status == 302
    form = "Content-Type: application/x-www-form-urlencoded"
    assert "Wrong name or password" in server.post("/", b"user=sebastian&pass=wrong", form).text
    welcome = server.post("/", b"user=sebastian&pass=secr3t", form)
    assert (welcome.status, welcome["location"]) == (302, "/protected")
    session = f"Cookie: {welcome['set-cookie'].split(';')[0]}"
    assert "Welcome sebastian" in server.get("/protected", session).text


# What code does to its process


@pytest.mark.parametrize("how", ["writer", "body"])
def test_exit_in_the_middle_of_a_response_breaks_it_off(start: Start, how: str) -> None:
    """Its client must not take the beginning for the whole."""
    server = start()
    with server.connect().ask("GET", f"/exits_midway/{how}") as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.until_logged("the application called exit: its worker ends")
    assert server.get("/hola/you").text == "Hola you"


def test_last_outside_a_loop_is_a_mistake_of_the_application(server: Server) -> None:
    before = server.worker_pids()
    assert server.get("/lasts").status == 500
    server.until_logged("Can't .last. outside a loop block")
    assert server.worker_pids() == before


@pytest.mark.parametrize("how", ["last", "next", "redo"])
def test_a_body_that_leaves_the_loop_of_its_server_is_broken_off(start: Start, how: str) -> None:
    """Its client must not take the beginning for the whole, and its worker must not go on for ever."""
    server = start()
    with server.connect().ask("GET", f"/leaves_body/{how}") as client, pytest.raises((Closed, ConnectionError)):
        list(client.pieces(client.opening()))
    server.until_logged("Can't .last. outside a loop block")
    server.until_logged("the body is closed")
    assert server.get("/hola/you").text == "Hola you"
    assert server.status()["counts"]["workers_died"] == 0


def test_a_cleanup_handler_that_leaves_a_loop_does_not_leave_out_the_next(start: Start) -> None:
    server = start()
    assert server.get("/leaves_cleanup").text == "before"
    server.until_logged("in a cleanup handler: Can't .last. outside a loop block")
    server.until_logged("the second one runs")


def test_a_child_that_returns_after_the_response_takes_no_request(server: Server) -> None:
    for _ in range(10):
        assert server.get("/forks_after").text == "forked"
        assert server.get("/hola/you").text == "Hola you"


def test_a_child_that_can_load_nothing_more_has_its_status(server: Server) -> None:
    assert server.get("/child_loads_nothing").text == "0"


def test_a_child_that_dies_has_its_status_and_is_logged(server: Server) -> None:
    assert server.get("/child_dies").text == "255"
    server.until_logged("in the child")


def test_a_thread_that_ends_answers_nothing(start: Start) -> None:
    if not perl.has("threads"):
        pytest.skip("this Perl has no threads")
    server = start()
    waiting = server.connect().ask("GET", "/aside")
    server.until_logged("put aside")
    assert server.get("/thread").text == "42"
    server.until_logged("INFO in a thread request_id")
    assert server.get("/release").text == "1"
    assert waiting.answer().text == "released"


# An event loop


@pytest.fixture
def loop(start: Start) -> Server:
    if not perl.has("AnyEvent"):
        pytest.skip("AnyEvent is not installed")
    return start("loop.psgi")


def test_its_timers_and_sockets_go_on_between_requests(loop: Server) -> None:
    assert loop.get("/nonblocking").text == "yes"
    before = int(loop.get("/ticks").text)
    until("the timer has gone on", lambda: int(loop.get("/ticks").text) > before + 5)
    with socket.create_connection(("127.0.0.1", int(loop.get("/port").text)), timeout=10) as own:
        own.sendall(b"hello")
        assert own.recv(100) == b"hello"


def test_a_thousand_answers_are_delayed_at_the_same_time(loop: Server) -> None:
    clients = [loop.connect().ask("GET", "/hold") for _ in range(1_000)]
    until("the worker holds them all", lambda: held(loop) == 1_000)
    assert loop.get("/after/0").text == "after 0"
    assert loop.get("/release").text == "1000"
    assert {client.answer().text for client in clients} == {"released"}
    until("it holds none", lambda: held(loop) == 0)


def test_a_body_is_written_by_a_timer(loop: Server) -> None:
    assert loop.get("/counted").text == "0\n1\n2\n"


def test_code_may_run_the_loop_itself(loop: Server) -> None:
    waiting = loop.connect().ask("GET", "/recv")
    assert loop.get("/after/0.05").text == "after 0.05"
    assert waiting.answer().text == "received"


def test_an_error_in_a_callback_is_500(loop: Server) -> None:
    assert loop.get("/raises").status == 500
    loop.until_logged("in a callback")
    assert loop.get("/after/0").text == "after 0"


def test_exit_in_a_callback_ends_what_its_worker_holds(loop: Server) -> None:
    clients = [loop.connect().ask("GET", target) for target in ("/hold", "/hold", "/exits")]
    assert [client.answer().status for client in clients] == [500, 500, 500]
    loop.until(lambda status: status["counts"]["workers_recycled"] == 1)
    assert loop.get("/after/0").text == "after 0"
    assert loop.status()["counts"]["workers_died"] == 0


def test_a_slow_reader_of_what_was_written_holds_nobody_up(loop: Server) -> None:
    slow = loop.connect(receive_buffer=4096, segment=1460).ask("GET", "/flood")
    slow.opening()
    assert loop.get("/after/0").text == "after 0"
    slow.close()
    until("it holds none", lambda: held(loop) == 0)
