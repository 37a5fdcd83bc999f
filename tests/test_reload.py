"""SIGHUP: new code serves without a failed request; code that does not start changes nothing; parked requests stay."""

from __future__ import annotations

import os
import re
import signal
import stat
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.load import Load
from .harness.server import APPS, Server

pytestmark = pytest.mark.also_in_perl

APP = """
import os
from parkade import App, after, channel
from gates import hold

app = App()
VERSION = {version!r}

app.get("/constant", VERSION)
app.get("/standing", channel("news").next(timeout=30))

@app.get("/hola/{{name}}")
def hola(name: str):
    return f"Hola {{name}}"

@app.get("/version")
def version():
    return VERSION

@app.get("/hold/{{gate}}")
def hold_at(gate: str):
    hold(gate)
    return VERSION

@app.get("/next/{{name}}")
def next_message(name: str):
    return channel(name).next()

@app.get("/then/{{name}}")
def then(name: str):
    return channel(name).next().then(render, began=VERSION)

def render(message, began):
    return f"{{began}} {{VERSION}} {{message.text}}"

@app.get("/events/{{name}}")
def events(name: str):
    return channel(name).stream()
{more}
"""


IN_PERL = """
use FindBin; use lib "$FindBin::Bin";
use Gates;
use Parkade;

my $version = '{version}';

get '/constant' => $version;
get '/standing' => channel('news')->next(timeout => 30);
get '/hola/{{name}}' => sub {{ my ($name) = @_; return "Hola $name" }};
get '/version' => sub {{ return $version }};
get '/hold/{{gate}}' => sub {{ my ($gate) = @_; hold($gate); return $version }};
get '/next/{{name}}' => sub {{ my ($name) = @_; return channel($name)->next }};
get '/then/{{name}}' => sub {{ my ($name) = @_; return channel($name)->next->then(\\&render, $version) }};
sub render {{ my ($message, $began) = @_; return "$began $version $message" }}
get '/events/{{name}}' => sub {{ my ($name) = @_; return channel($name)->stream }};
{more}
1;
"""

NEW_ROUTES = {
    "python": '\n@app.get("/new/{name}")\ndef new(name: str):\n    return f"new {name}"\n\n'
    'app.get("/news", "constant")\n',
    "perl": "get '/new/{name}' => sub { my ($name) = @_; return \"new $name\" }; get '/news' => 'constant';",
}

BROKEN = {"python": "raise RuntimeError('the new code is broken')", "perl": "die 'the new code is broken';"}

LOADS_ONE_AT_ONCE = """
from pathlib import Path
try:
    Path(__file__).with_name("loaded").touch(exist_ok=False)
except FileExistsError:
    hold("others")
"""


class Code:
    """The application's file, in a new folder next to `gates.py`."""

    def __init__(self, folder: Path, language: str) -> None:
        self.language = language
        self.file = folder / ("shop.py" if language == "python" else "shop.pl")
        for gates in (APPS / "gates.py", APPS / "perl" / "lib" / "Gates.pm"):
            (folder / gates.name).write_text(gates.read_text())
        self.write("one")

    def write(self, version: str, more: str = "") -> None:
        """Replaces it atomically, as a deployment does."""
        new = self.file.with_suffix(".new")
        text = APP if self.language == "python" else IN_PERL
        new.write_text(text.format(version=version, more=more))
        new.replace(self.file)

    def break_it(self, code: str | None = None) -> None:
        """Code that does not load."""
        self.file.write_text(BROKEN[self.language] if code is None else code)


@pytest.fixture
def code(tmp_path: Path, language: str) -> Code:
    return Code(tmp_path, language)


@pytest.mark.promise(7)
def test_twenty_reloads_under_load_fail_no_request(serve: Serve, code: Code) -> None:
    server = serve(code.file, workers=2)
    parked = server.waiting("/next/survives", 20)
    server.until_parked(20)
    with Load(server.address, "/hola/load", "/version", "/constant", connections=4) as load:
        for number in range(20):
            code.write(f"version {number}")
            status = server.reload()
            assert status["code"]["last_reload"] == "done"
            load.goes_on(20)
    assert load.failures == []
    assert set(load.statuses) == {200}
    assert server.get("/version").text == "version 19"
    assert server.get("/constant").text == "version 19"
    assert server.status()["lives"]["parked"] == 20
    server.publish("survives", b"twenty reloads")
    assert {client.answer().body for client in parked} == {b"twenty reloads"}
    assert server.status()["counts"]["workers_died"] == 0
    server.still_serves()


@pytest.mark.promise(7)
def test_parked_requests_and_streams_stay_and_are_resumed_by_new_code(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    stream = server.events("/events/news")
    server.until(lambda status: status["waits"]["stream"]["count"] == 1)
    thens = server.waiting("/then/news", 3)
    standing = server.waiting("/standing", 3)
    server.until_parked(7)
    code.write("two")
    server.reload()
    assert server.status()["lives"]["parked"] == 7
    server.publish("news", b"after the deploy")
    assert {client.answer().text for client in thens} == {"one two after the deploy"}
    assert {client.answer().text for client in standing} == {"after the deploy"}
    assert stream.data(1) == ["after the deploy"]


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(7)
def test_a_function_that_new_code_makes_a_coroutine_is_never_run_twice(
    serve: Serve, code: Code, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    more = f"""
@app.get("/dies")
def dies():
    return channel("news").next().then(die)

{{kind}} die(message):
    with open({str(ran)!r}, "a") as file:
        file.write("ran ")
    os._exit(1)

@app.get("/loop")
async def loop():
    return VERSION
"""
    code.write("one", more.format(kind="def"))
    server = serve(code.file, workers=1)
    parked = server.waiting("/dies", 1)
    server.until_parked(1)
    code.write("two", more.format(kind="async def"))
    server.reload()
    server.publish("news", b"now")
    assert parked[0].answer().status == 502
    server.until_zero()
    assert ran.read_text() == "ran "


def test_running_requests_are_finished_by_the_old_code(serve: Serve, code: Code) -> None:
    server = serve(code.file, workers=1)
    old = server.connect().ask("GET", "/hold/slow")
    server.until_running(1)
    code.write("two")
    server.signal(signal.SIGHUP)
    server.until(lambda status: status["code"]["generation"] == 2)
    assert server.get("/version").text == "two"
    assert server.status()["lives"]["running"] == 1
    server.open_gate("slow")
    assert old.answer().text == "one"
    server.until(lambda status: len(status["workers"]) == 1)
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.promise(7)
def test_new_routes_appear_and_old_ones_go(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    assert server.get("/new/x").status == 404
    code.write("two", NEW_ROUTES[code.language])
    server.reload()
    assert server.get("/new/x").text == "new x"
    assert server.get("/news").text == "constant"
    code.write("three")
    server.reload()
    assert server.get("/new/x").status == 404
    assert server.get("/news").status == 404


@pytest.mark.promise(7)
@pytest.mark.parametrize(
    ("language", "broken", "says"),
    [
        ("perl", "die 'the new code is broken';", "the new code is broken at"),
        ("perl", "sub broken {", "Missing right curly"),
        ("perl", "my $x = 1;", "which is not a PSGI application"),
        ("perl", "use POSIX; POSIX::_exit(4);", "exit status 4"),
        ("python", "raise RuntimeError('the new code is broken')", "the new code is broken"),
        ("python", "def broken(:", "SyntaxError"),
        ("python", "x = 1", "has no 'app'"),
        ("python", "import os; os._exit(4)", "exit status 4"),
        (
            "python",
            "from parkade import App\napp = App()\n@app.on_start\ndef start(): raise OSError('no database')",
            "no database",
        ),
    ],
    indirect=["language"],
)
def test_code_that_does_not_start_is_refused_and_the_old_serves_on(
    serve: Serve, code: Code, broken: str, says: str
) -> None:
    server = serve(code.file, workers=2)
    parked = server.waiting("/next/stays", 3)
    server.until_parked(3)
    pids = set(server.worker_pids())
    code.break_it(broken)
    with Load(server.address, "/version", connections=2) as load:
        status = server.reload()
        load.goes_on()
    assert status["code"]["last_reload"] == "aborted"
    assert (load.failures, set(load.statuses), set(load.bodies)) == ([], {200}, {b"one"})
    assert set(server.worker_pids()) == pids
    server.until_logged(re.escape(says))
    assert status["state"] == "ready"
    code.write("mended")
    assert server.reload()["code"]["last_reload"] == "done"
    assert server.get("/version").text == "mended"
    server.publish("stays", b"yes")
    assert {client.answer().body for client in parked} == {b"yes"}


def test_code_that_loads_for_ever_is_given_up(serve: Serve, code: Code) -> None:
    server = serve(code.file, start_timeout="6s")  # on a busy machine the good code takes more than one
    code.break_it({"python": "while True: pass", "perl": "1 while 1;"}[code.language])
    assert server.reload()["code"]["last_reload"] == "aborted"
    assert server.get("/version").text == "one"


def test_a_second_sighup_during_a_reload_is_not_lost(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    server.signal(signal.SIGHUP)
    server.until(lambda status: status["code"]["reloading"])
    code.write("latest")
    server.signal(signal.SIGHUP)
    server.until(lambda status: not status["code"]["reloading"] and server.get("/version").text == "latest")


def test_what_holds_on_past_the_grace_is_ended(serve: Serve, code: Code) -> None:
    server = serve(code.file, grace="500ms", workers=1)
    (pid,) = server.worker_pids()
    stuck = server.connect().ask("GET", "/hold/never")
    server.until_running(1)
    server.signal(signal.SIGHUP)
    assert stuck.answer().status in (502, 503, 504)
    server.until(lambda status: pid not in [worker["pid"] for worker in status["workers"]])
    server.still_serves()


def test_a_worker_that_stands_still_holds_up_no_reload(serve: Serve, code: Code) -> None:
    """Twice, as the worker that the first one starts stands still, too."""
    server = serve(code.file, grace="500ms", workers=1)
    for version in ("second", "third"):
        (pid,) = server.worker_pids()
        os.kill(pid, signal.SIGSTOP)
        code.write(version)
        server.reload()
        assert server.get("/version").text == version
        server.until(lambda status, pid=pid: pid not in [worker["pid"] for worker in status["workers"]])


@pytest.mark.python_only("coroutines")
def test_coroutines_that_await_are_resumed_in_the_old_worker(serve: Serve) -> None:
    server = serve("coroutines", workers=1)
    (old,) = server.worker_pids()
    awaiting = server.waiting("/next/await", 10)
    server.until_parked(10)
    server.signal(signal.SIGHUP)
    server.until(lambda status: [w["state"] for w in status["workers"] if w["pid"] == old] == ["draining"])
    assert server.get("/hola/new").status == 200
    server.publish("await", b"still")
    assert {client.answer().json()["value"] for client in awaiting} == {"still"}
    server.until(lambda status: old not in [worker["pid"] for worker in status["workers"]])
    assert server.status()["counts"]["workers_died"] == 0


@pytest.mark.python_only("about the core")
def test_the_memory_of_twenty_reloads_is_given_back(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    for _ in range(4):
        server.reload()
    before = server.resident_bytes
    for _ in range(16):
        server.reload()
    assert server.resident_bytes - before < 2 << 20


@pytest.mark.python_only("about the core")
def test_reloads_leave_no_descriptor_thread_or_process(serve: Serve, code: Code) -> None:
    server = serve(code.file, workers=2)

    def held() -> tuple[int, int, int]:
        server.until(lambda status: len(status["workers"]) == 2)
        here = Path(f"/proc/{server.pid}")
        children = (here / f"task/{server.pid}/children").read_text().split()
        return len(list((here / "fd").iterdir())), len(list((here / "task").iterdir())), len(children)

    for _ in range(2):
        server.reload()
    before = held()
    for _ in range(8):
        server.reload()
    assert all(after <= most + 2 for after, most in zip(held(), before, strict=True))


@pytest.mark.python_only("code of its own")
def test_old_code_that_fails_to_load_at_the_first_start_ends_nothing_after_new_code_has_loaded(
    serve: Serve, code: Code
) -> None:
    code.break_it(
        "from gates import hold; print('it waits'); hold('old'); raise RuntimeError('the old code is broken')"
    )
    server = serve(code.file, workers=2, is_ready=False)
    server.until_logged("it waits", times=2)
    # The second worker of the new code waits, so that the reload is not over yet.
    code.write("two", LOADS_ONE_AT_ONCE)
    server.signal(signal.SIGHUP)
    server.until(lambda status: "ready" in [worker["state"] for worker in status["workers"]])
    server.open_gate("old")
    server.until(lambda status: status["counts"]["workers_died"] == 2)
    server.until_logged("the old code is broken")
    server.open_gate("others")
    server.until_logged("reload complete: new workers are serving")
    assert server.get("/version").text == "two"


def test_a_file_that_cannot_be_read_is_a_reload_given_up(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    code.file.rename(code.file.with_suffix(".away"))
    assert server.reload()["code"]["last_reload"] == "aborted"
    code.file.with_suffix(".away").rename(code.file)
    assert server.reload()["code"]["last_reload"] == "done"


@pytest.mark.python_only("code of its own")
def test_dev_reloads_when_a_file_changes_and_shows_errors(serve: Serve, code: Code) -> None:
    server: Server = serve(code.file, command="dev")
    assert server.get("/version").text == "one"
    code.write("two", '\n@app.get("/raises")\ndef raises():\n    return 1 / 0\n')
    server.until(lambda status: server.get("/version").text == "two")
    page = server.get("/raises", "Accept: text/html")
    assert (page.status, "ZeroDivisionError" in page.text, "1 / 0" in page.text) == (500, True, True)
    code.break_it()
    server.until_logged("the new code is broken")
    assert server.get("/version").text == "two"


def test_dev_starts_with_broken_code_and_serves_when_it_is_mended(serve: Serve, code: Code) -> None:
    code.break_it()
    server = serve(code.file, command="dev", is_ready=False)
    server.until_logged("the new code is broken")
    code.write("mended")
    server.ready()
    assert server.get("/version").text == "mended"


@pytest.mark.python_only("about the core")
def test_a_signal_that_means_nothing_ends_nothing(serve: Serve, code: Code) -> None:
    server = serve(code.file)
    for name in ("SIGPIPE", "SIGWINCH", "SIGCONT"):
        os.kill(server.pid, getattr(signal, name))
    assert stat.S_ISSOCK(server.private.stat().st_mode)
    server.still_serves()
