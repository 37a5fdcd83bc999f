"""Headers that are added to answers: for all answers of an application, for pages of other origins, and those that a
wait was returned with. See also the cases of `test_testing_client`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Kind, Serve
from .harness.client import Answer
from .harness.server import Server
from .harness.until import until

A, B = "https://a.example", "https://b.example"
CREDENTIALS = "access-control-allow-credentials"
ORIGIN = "access-control-allow-origin"


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, kind: Kind) -> Server:
    return serve_for_all("added", workers=2, environment=kind)


def is_for(answer: Answer, origin: str) -> bool:
    """Whether it has everything that a browser needs to give it to a page of this origin."""
    is_usual = answer["x-frame-options"] == "DENY" and "Origin" in ", ".join(answer.all("vary"))
    return is_usual and answer.all(ORIGIN) == [origin] and answer.all(CREDENTIALS) == ["true"]


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 200),
        ("HEAD", "/", 200),
        ("GET", "/constant", 200),
        ("GET", "/timer", 200),
        ("GET", "/many", 201),
        ("GET", "/wrong", 500),
        ("POST", "/double/21", 201),
        ("GET", "/jobs/00000000-0000-0000-0000-000000000000", 404),
        ("GET", "/nowhere", 404),
        ("POST", "/", 405),
        ("OPTIONS", "/", 405),
    ],
)
def test_every_answer_is_for_a_permitted_origin(server: Server, method: str, target: str, status: int) -> None:
    with server.connect() as client:
        answer = client.ask(method, target, f"Origin: {A}", "Content-Length: 0").answer(head=method == "HEAD")
    assert answer.status == status
    assert is_for(answer, A), answer.fields
    two = server.connect2()
    answer = two.answer(two.ask(method, target, ("origin", B)))
    assert answer.status == status
    assert is_for(answer, B), answer.fields
    with server.connect() as client:
        answer = client.ask(method, target, "Origin: https://c.example", "Content-Length: 0").answer(
            head=method == "HEAD"
        )
    assert (answer.status, answer["x-frame-options"], answer.all(ORIGIN)) == (status, "DENY", [])
    assert "Origin" in ", ".join(answer.all("vary"))


def test_a_handler_has_the_last_word_about_the_headers_of_all_answers(server: Server) -> None:
    assert server.get("/pieces")["x-frame-options"] == "SAMEORIGIN"
    public = server.get("/public")
    assert (public[ORIGIN], public["x-frame-options"], "vary" in public) == ("*", "DENY", False)


def test_what_a_wait_was_returned_with_is_on_its_answer(server: Server) -> None:
    timer, rows, wrong = server.get("/timer"), server.get("/many"), server.get("/wrong")
    assert (timer.status, timer["x-given"], timer.text) == (200, "yes", "late")
    assert (rows.status, rows["cache-control"], len(rows.json())) == (201, "max-age=60", 20_000)
    assert (wrong.status, wrong["x-given"], "cache-control" in wrong) == (500, "yes", False)
    done = server.post("/double/21")
    assert (done.status, done["x-given"], done.text) == (201, "yes", "42")


def test_a_job_that_has_not_ended_is_answered_with_the_headers_too(server: Server) -> None:
    gate = server.new_gate()
    pending = server.post(f"/double/21?timeout=0&gate={gate}")
    assert (pending.status, pending["x-given"]) == (202, "yes")
    server.open_gate(gate)
    until("the job has ended", lambda: server.get(pending["location"]).text == "42")


def test_a_message_reaches_each_poll_with_the_headers_of_its_own(server: Server) -> None:
    fields = [f"Origin: {A}", f"Origin: {B}", "Origin: https://c.example"]
    polls = [server.connect().ask("GET", f"/next?mark={mark}", *fields[mark % 3 :][:1]) for mark in range(60)]
    two = server.connect2()
    streams = [two.ask("GET", f"/next?mark={mark}", ("origin", A)) for mark in range(60, 70)]
    server.until_parked(70)
    server.publish("news", b"told")
    answers = [poll.answer() for poll in polls] + [two.answer(stream) for stream in streams]
    for mark, answer in enumerate(answers):
        assert (answer.status, answer.body, answer["x-given"], answer["x-mark"]) == (203, b"told", "yes", str(mark))
        assert answer["cache-control"] == "no-store"
        assert answer.all(ORIGIN) == ([A] if mark >= 60 else [[A], [B], []][mark % 3])


@pytest.mark.parametrize("target", ["/stream", "/stream/route"])
def test_a_stream_begins_with_the_headers(server: Server, target: str) -> None:
    with server.events(target, f"Origin: {A}") as events:
        assert is_for(events.head, A)
        assert (events.head["x-given"], events.head["cache-control"]) == ("yes", "no-cache, no-transform")
        assert ("set-cookie" in events.head) is (target == "/stream")
    two = server.connect2()
    head = two.opening(two.ask("GET", target, ("origin", B)))
    assert is_for(head, B)
    assert head["x-given"] == "yes"
    server.leave()


def test_a_preflight_takes_no_worker(server: Server) -> None:
    gate = server.new_gate()
    server.waiting(f"/hold/{gate}", 2)
    server.until_running(2)
    fields = (f"Origin: {A}", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-a")
    with server.connect() as client:
        answer = client.ask("OPTIONS", "/double/1", *fields).answer()
    assert (answer.status, answer.body) == (204, b"")
    assert is_for(answer, A)
    assert answer["access-control-allow-methods"] == "POST"
    assert answer["access-control-allow-headers"] == "x-a"
    two = server.connect2()
    pairs = [tuple(field.lower().split(": ", 1)) for field in fields]
    nowhere = two.answer(two.ask("OPTIONS", "/nowhere", *pairs))
    assert nowhere.status == 204, "the page is to read the 404 that follows"
    assert nowhere["access-control-allow-methods"] == "post"
    server.open_gate(gate)


def test_errors_of_the_server_have_them_too(serve: Serve, kind: Kind) -> None:
    server = serve("added", workers=1, environment=kind, deadline="2s")
    died = server.get("/ends", f"Origin: {A}")
    assert died.status == 502
    assert is_for(died, A)
    server.get("/hola/you")  # a new worker is there
    gate = server.new_gate()
    held = server.connect().ask("GET", f"/hold/{gate}", f"Origin: {A}")
    server.until_running(1)
    queued = server.get("/hola/you", f"Origin: {B}")
    assert queued.status == 503
    assert is_for(queued, B)
    late = held.answer()
    assert late.status == 504
    assert is_for(late, A)
    server.open_gate(gate)


def test_a_reload_changes_them(serve: Serve, kind: Kind, tmp_path: Path) -> None:
    code = """
from parkade import App, channel
app = App()
app.headers({{"x-version": "{version}"}})
{more}
app.get("/", "constant")
app.get("/stream", channel("news").stream())
"""
    file = tmp_path / "reloaded.py"
    file.write_text(code.format(version=1, more=""))
    server = serve(file, environment=kind)
    assert (server.get("/")["x-version"], server.get("/", f"Origin: {A}").all(ORIGIN)) == ("1", [])
    file.write_text(code.format(version=2, more="app.cors(origins='*')"))
    server.reload()
    answer = server.get("/", f"Origin: {A}")
    assert (answer["x-version"], answer[ORIGIN]) == ("2", "*")
    assert server.events("/stream").head["x-version"] == "2"


REFUSED = {
    "app.cors(origins='*', credentials=True)": "browsers refuse credentials with origins='*'",
    "app.cors(origins=['https://a.example/'])": "without a slash at its end",
    "app.headers({'content-type': 'a/b'})": "content-type is different for each answer",
    "app.get('/', 'x', cors=True)": "cors is a policy",
}


@pytest.mark.parametrize(("line", "why"), REFUSED.items())
def test_what_no_browser_would_accept_does_not_load(serve: Serve, tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "refused.py"
    file.write_text(f"from parkade import App\napp = App()\n{line}\n")
    server = serve(file, is_ready=False)
    server.until_logged(why)
