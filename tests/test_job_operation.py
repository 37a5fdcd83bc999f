"""What operators and scripts do with jobs: the command line, the admin endpoints, the status, the metrics."""

from __future__ import annotations

import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.jobs import Ran, enqueue, enqueue_many, result, state, until_state
from .harness.ports import free_port
from .harness.server import Server, run, whom
from .harness.until import Stopwatch, until
from .test_operation import metric

pytestmark = pytest.mark.also_in_perl

MISSING = "no such job"

NO_ARGUMENTS = b64encode(b"\x93\x01\x90\x80").decode()
"""The MessagePack of `[1, [], {}]`."""


@pytest.fixture(scope="module")
def place(serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> tuple[Server, Ran]:
    folder = tmp_path_factory.mktemp("operated")
    two = {"workers": 3, "job_workers": 2}  # a job is held at a gate while others continue
    return serve_for_all("jobs", **two, folder=folder, admin=f"127.0.0.1:{free_port()}"), Ran(folder)


@pytest.fixture
def server(place: tuple[Server, Ran]) -> Iterator[Server]:
    """Without jobs, as every test leaves it."""
    server, _ = place
    yield server
    for job in listed(server, count=1_000):
        server.admin("POST", f"/jobs/{job['id']}/cancel")
    until("no job runs", lambda: not listed(server, state="running"))
    for job in listed(server, count=1_000):
        code, told = server.admin("DELETE", f"/jobs/{job['id']}")
        assert code == 200, told
    server.until(lambda status: not sum(jobs_by_state(status).values()))


@pytest.fixture
def ran(place: tuple[Server, Ran]) -> Ran:
    return place[1]


def parkade(server: Server, *words: str, code: int = 0) -> str:
    """Runs a command that finds the server by itself; returns its output and errors."""
    ended = run(*words, *whom(server), XDG_RUNTIME_DIR=str(server.folder))
    assert ended.returncode == code, ended
    return ended.stdout + ended.stderr if code else ended.stdout


def ask(server: Server, line: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """Uses the admin endpoints; returns status and JSON."""
    method, path = line.split(" ")
    code, told = server.admin(method, path, b"" if body is None else json.dumps(body).encode(), **headers)
    return code, json.loads(told)


def listed(server: Server, **filters: object) -> list[dict[str, Any]]:
    code, told = ask(server, "GET /jobs?" + "&".join(f"{name}={value}" for name, value in filters.items()))
    assert code == 200, told
    jobs: list[dict[str, Any]] = told["jobs"]
    return jobs


def jobs_by_state(status: Any) -> dict[str, int]:
    states = ("ready", "scheduled", "running", "dead", "unknown", "completed", "cancelled")
    return {state: status["jobs"][state] for state in states}


def dead(server: Server, count: int = 1) -> list[str]:
    """This many dead jobs."""
    jobs = enqueue_many(server, count, "discarded", "dead letter")
    for job in jobs:
        until_state(server, job, "dead")
    return jobs


# Enqueued from the command line


def test_the_command_line_enqueues_what_a_handler_might(server: Server, ran: Ran) -> None:
    job = parkade(server, "enqueue", "write", "from the command line").strip()
    assert uuid.UUID(job).version == 7
    assert result(server, job).text == "from the command line"
    assert ran.about("from the command line") == ["from the command line"]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["7"], 7),
        (["-1.5"], -1.5),
        (["true"], True),
        (["text"], "text"),
        (['"7"'], "7"),
        (["{a}"], "{a}"),
        (['{"a": [1, null]}'], {"a": [1, None]}),
        pytest.param(["--keyword", "value=[1]"], [1], marks=pytest.mark.python_only("keywords of functions")),
        (["--", "--flag"], "--flag"),
        (["18446744073709551615"], 2**64 - 1),
        (["-9223372036854775808"], -(2**63)),
        (['"18446744073709551616"'], str(2**64)),
    ],
)
def test_an_argument_is_json_where_it_can_be_and_else_text(server: Server, words: list[str], value: object) -> None:
    ended = run("enqueue", *whom(server), "give", *words, XDG_RUNTIME_DIR=str(server.folder))
    job = ended.stdout.strip()
    code, told = ask(server, f"GET /jobs/{job}?wait=20")
    assert (code, told["state"], told["shown"]) == (200, "completed", value)


@pytest.mark.parametrize(
    "words", [["18446744073709551616"], ["[-9223372036854775809]"], ["--keyword", f"value={10**400}"]]
)
def test_a_number_that_has_no_64_bits_is_refused(server: Server, words: list[str]) -> None:
    said = parkade(server, "enqueue", "give", *words, code=1)
    assert "does not fit into 64 bits" in said
    assert not listed(server)


def test_options_of_the_command_line_are_those_of_enqueue(server: Server) -> None:
    options = ["--delay", "5m", "--priority", "-7", "--queue", "single", "--key", "only one"]
    job = parkade(server, "enqueue", "write", "later", *options).strip()
    _, told = ask(server, f"GET /jobs/{job}")
    assert (told["state"], told["priority"], told["queue"], told["key"]) == ("scheduled", -7, "single", "only one")
    assert 299 < told["due"] - told["enqueued"] < 301
    again = parkade(server, "enqueue", "write", "again", "--key", "only one").strip()
    assert again == job, "there was one with its key"
    assert "in 5 min" in parkade(server, "jobs") or "in 4 min" in parkade(server, "jobs")


def test_what_the_command_line_enqueues_counts_unless_it_was_there(server: Server) -> None:
    before = metric(server, "jobs_enqueued_total")
    for line, expected in (("one", 1), ("the same", 1)):
        parkade(server, "enqueue", "write", line, "--key", "counted once", "--delay", "5m")
        assert metric(server, "jobs_enqueued_total") - before == expected


def test_what_the_application_says_of_a_job_holds_for_the_command_line_too(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "said.py"
    file.write_text(
        "from parkade import App\napp = App()\n@app.job(queue='mail', priority=9)\ndef send() -> None: ...\n"
    )
    server = serve(file, folder=tmp_path)
    job = parkade(server, "enqueue", "send").strip()
    _, told = ask(server, f"GET /jobs/{job}")
    assert (told["queue"], told["priority"]) == ("mail", 9)


def test_a_name_that_the_application_does_not_declare_is_refused(server: Server) -> None:
    said = parkade(server, "enqueue", "wriet", "x", code=1)
    assert 'the application declares no job "wriet"; did you mean `write`?' in said
    assert not listed(server, state="unknown")
    body = {"name": "nothing_of_this_name", "known": True}
    code, told = ask(server, "POST /jobs", body)
    assert (code, "declares no job" in told["error"]) == (404, True)


def test_a_job_that_the_application_does_not_have_waits_for_one_that_has(server: Server) -> None:
    job = parkade(server, "enqueue", "nothing_of_this_name", "--force").strip()
    until("it is unknown", lambda: ask(server, f"GET /jobs/{job}")[1]["state"] == "unknown")
    assert "unknown" in parkade(server, "jobs", "--state", "unknown")
    assert parkade(server, "jobs", "cancel", job) == f"{job} is cancelled\n"


# Shown


def test_jobs_are_listed_the_newest_first_and_by_what_is_asked(server: Server) -> None:
    jobs = enqueue_many(server, 3, "write", "listed")
    letter = dead(server)[0]
    for job in jobs:
        until_state(server, job, "completed")
    assert [job["id"] for job in listed(server)] == [letter, *reversed(jobs)]
    assert [job["id"] for job in listed(server, state="dead")] == [letter]
    assert [job["id"] for job in listed(server, name="write", count=2)] == [jobs[2], jobs[1]]
    assert listed(server, queue="none") == []
    table = parkade(server, "jobs").splitlines()
    assert table[0].split() == ["id", "name", "queue", "state", "attempt", "enqueued", "due", "error"]
    assert [line.split()[0] for line in table[1:]] == [letter, *reversed(jobs)]
    assert "nobody wants it" in table[1]
    assert parkade(server, "jobs", "list", "--state", "cancelled") == "no jobs\n"
    told = json.loads(parkade(server, "jobs", "--json", "--name", "discarded"))
    assert [job["id"] for job in told["jobs"]] == [letter]


def test_a_job_is_shown_with_all_that_is_known_of_it(server: Server) -> None:
    job = enqueue(server, "give", {"pages": 3})
    until_state(server, job, "completed")
    shown = dict(line.split(maxsplit=1) for line in parkade(server, "jobs", "show", job).splitlines())
    assert (shown["id"], shown["name"], shown["state"], shown["attempt"]) == (job, "give", "completed", "1")
    assert (shown["arguments"], shown["result"]) == ('{"pages":3}', '{"pages":3}')
    assert shown["ended"].endswith("ago")
    told = json.loads(parkade(server, "jobs", "show", job, "--json"))
    assert b64decode(told["result"]) == b"\x81\xa5pages\x03"
    assert told["enqueued"] <= told["started"] <= told["ended"]
    letter = dead(server)[0]
    assert "nobody wants it" in parkade(server, "jobs", "show", letter)


# Changed


STEERS = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\n"


def test_nothing_that_an_application_says_steers_the_terminal(server: Server, ran: Ran) -> None:
    job = enqueue(server, "give", STEERS, queue=f"queue{STEERS}", key=f"key{STEERS}")
    until_state(server, job, "completed")
    failed = enqueue(server, "say_and_fail", STEERS, queue=f"queue{STEERS}")
    until_state(server, failed, "dead")
    gate = server.new_gate()
    enqueue_many(server, 3, "wait_at", gate)
    ran.until_count(f"begin {gate}", 2)
    # Both job workers are blocked: it waits in the store, or returns there if it was claimed early.
    until_state(server, enqueue(server, "give", STEERS, queue=f"queue{STEERS}"), "ready")
    server.until(lambda status: any("queue" in name for name in status["jobs"]["queues"]))
    shown = {
        words: parkade(server, *words)
        for words in (
            ("jobs",),
            ("jobs", "--json"),
            ("jobs", "show", job),
            ("jobs", "show", failed),
            ("jobs", "show", job, "--json"),
            ("status", "--once"),
            ("status", "--json"),
        )
    }
    server.open_gate(gate)
    for words, text in shown.items():
        assert [character for character in text if not (character.isprintable() or character == "\n")] == [], words
        assert "queue" in text, words
    assert json.loads(shown["jobs", "show", job, "--json"])["queue"] == f"queue{STEERS}", "JSON says what it is"
    assert r"key\u{1b}]0;title\u{7}" in shown["jobs", "show", job]
    assert "\x1b" not in server.log(), "nor what is logged"
    assert "\x9b" not in server.log()


def test_dead_letters_are_retried_one_by_one_or_all(server: Server, ran: Ran) -> None:
    letters = dead(server, 3)
    before = len(ran.about("dead letter"))
    assert parkade(server, "jobs", "retry", letters[0]) == f"{letters[0]} is ready again\n"
    ran.until_count("dead letter", before + 1)
    until_state(server, letters[0], "dead")
    assert parkade(server, "jobs", "retry", "--all-dead") == "3 dead jobs are ready again\n"
    ran.until_count("dead letter", before + 4)
    for letter in letters:
        until_state(server, letter, "dead")
    assert parkade(server, "jobs", "drop", letters[0]) == f"{letters[0]} is dropped\n"
    assert parkade(server, "jobs", "drop", "--all-dead") == "2 dead jobs are dropped\n"
    assert parkade(server, "jobs", "drop", "--all-dead") == "0 dead jobs are dropped\n"
    assert [state(server, letter) for letter in letters] == ["missing"] * 3


def test_jobs_are_cancelled_wherever_they_are(server: Server, ran: Ran) -> None:
    waiting = enqueue(server, "write", "cancelled", delay=600)
    running = enqueue(server, "poll_at", "cancelled by an operator")
    ran.until("begin cancelled by an operator 1")
    assert parkade(server, "jobs", "cancel", waiting, running).splitlines() == [
        f"{waiting} is cancelled",
        f"{running} is cancelled",
    ]
    ran.until("cancelled cancelled by an operator")
    until_state(server, running, "cancelled")
    assert ran.about("cancelled\n") == []
    late = parkade(server, "jobs", "cancel", running, code=1)
    assert f"parkade: {running}: the job is cancelled: it has ended already" in late


def test_what_cannot_be_done_says_why_and_the_others_are_done(server: Server, ran: Ran) -> None:
    running = enqueue(server, "wait_at", "not dropped")
    letter = dead(server)[0]
    ran.until("begin not dropped 1")
    nobody = str(uuid.uuid4())
    told = parkade(server, "jobs", "drop", running, nobody, letter, code=1)
    assert f"{running}: the job is running: it is running; cancel it first" in told
    assert f"{nobody}: {MISSING}" in told
    assert f"{letter} is dropped" in told
    assert "it has not ended" in parkade(server, "jobs", "retry", running, code=1)
    server.open_gate("not dropped")
    until_state(server, running, "completed")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["jobs", "show", "7"], "a job id is a UUID"),
        (["jobs", "retry"], "<ID>"),
        (["jobs", "--state", "gone"], "the state must be one of"),
        (["enqueue"], "<NAME>"),
        (["enqueue", "x", "--keyword", "7"], "name=argument"),
    ],
)
def test_words_that_mean_nothing_are_refused_with_advice(words: list[str], says: str) -> None:
    ended = run(*words)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr


def test_the_command_line_says_when_a_job_is_too_large(server: Server) -> None:
    told = parkade(server, "enqueue", "write", *["x" * 105_000] * 5, code=1)
    assert "the arguments have 525029 bytes, and a job takes at most 524288" in told


def test_what_parkade_routes_prints_has_the_jobs(server: Server, language: str) -> None:
    jobs = {
        line.split()[1]: line.split(maxsplit=3)[3]
        for line in run("routes", server.target).stdout.splitlines()
        if line.startswith("job ")
    }
    function = "sub" if language == "perl" else "def"
    assert jobs["broken"] == f"{function}, queue default, retries 1"


# The admin endpoints


def test_a_script_enqueues_and_waits_for_the_result(server: Server) -> None:
    asked = {"id": str(uuid.uuid4()), "name": "write", "arguments": b64encode(b"\x93\x01\x91\xa1x\x80").decode()}
    assert ask(server, "POST /jobs", asked) == (201, {"id": asked["id"], "state": "ready"})
    code, told = ask(server, f"GET /jobs/{asked['id']}?wait=20")
    assert (code, told["state"], b64decode(told["result"]), told["shown"]) == (200, "completed", b"\xa1x", "x")
    code, again = ask(server, "POST /jobs", asked)
    assert (code, again["id"]) == (201, asked["id"]), "a script that heard no answer may ask again"
    assert [job["id"] for job in listed(server)] == [asked["id"]], "it was there already"


def test_whoever_waits_is_told_at_the_end_or_when_the_time_is_up(server: Server, ran: Ran) -> None:
    job = enqueue(server, "wait_at", "waited for")
    ran.until("begin waited for 1")
    watch = Stopwatch()
    assert ask(server, f"GET /jobs/{job}?wait=0.2")[1]["state"] == "running"
    assert watch.seconds >= 0.2
    server.open_gate("waited for")
    code, told = ask(server, f"GET /jobs/{job}?wait=20")
    assert (code, told["state"], told["shown"]) == (200, "completed", "waited for")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "missing field `name`"),
        ({"name": ""}, "1 to 200 bytes"),
        ({"name": "x", "arguments": "?"}, "Base64"),
        ({"name": "x", "delay": 1, "at": 1}, "not both"),
        ({"name": "x", "priority": 1001}, "priority must be"),
        ({"name": "x", "id": "7"}, "a job id is a UUID"),
        ({"name": "x", "other": 7}, "unknown field `other`"),
    ],
)
def test_what_is_no_job_is_refused_with_what_is_wrong(server: Server, asked: object, says: str) -> None:
    code, told = ask(server, "POST /jobs", asked)
    assert (code, says in told["error"]) == (400, True), told


@pytest.mark.promise(8)
def test_a_job_has_at_most_so_many_bytes(server: Server) -> None:
    def of(count: int) -> dict[str, str]:
        return {"name": "nothing_of_this_name", "arguments": b64encode(bytes(count)).decode()}

    assert ask(server, "POST /jobs", of(524_288))[0] == 201
    code, told = ask(server, "POST /jobs", of(524_289))
    assert (code, "524288" in told["error"]) == (413, True)
    assert ask(server, "POST /jobs", of(2 << 20))[0] == 413


def test_browsers_change_nothing(server: Server) -> None:
    job = dead(server)[0]
    for line in ("POST /jobs", f"POST /jobs/{job}/retry", f"POST /jobs/{job}/cancel", f"DELETE /jobs/{job}"):
        assert ask(server, line, {"name": "write"}, Origin="http://evil.example")[0] == 403
    assert [one["id"] for one in listed(server)] == [job]
    assert state(server, job) == "dead"


def test_methods_and_paths_that_there_are_not_say_which_there_are(server: Server) -> None:
    job = uuid.uuid4()
    assert ask(server, "PUT /jobs") == (405, {"error": "use GET, HEAD, POST here"})
    assert ask(server, f"POST /jobs/{job}") == (405, {"error": "use GET, HEAD, DELETE here"})
    assert ask(server, f"POST /jobs/{job}/run")[0] == 404
    assert ask(server, "GET /jobs/7")[0] == 400
    for line in (f"GET /jobs/{job}", f"POST /jobs/{job}/retry", f"POST /jobs/{job}/cancel", f"DELETE /jobs/{job}"):
        code, told = ask(server, line)
        assert (code, told["error"].startswith(MISSING)) == (404, True)


def test_a_disk_that_fails_is_said_to_be_so(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, environment={"PARKADE_INJECT_COMMIT": "delay=0ms,fail=1"})
    code, told = ask(server, "POST /jobs", {"name": "write", "arguments": NO_ARGUMENTS})
    assert (code, "an injected fault" in told["error"]) == (503, True), told


def test_a_server_without_jobs_makes_no_file_for_who_looks(serve: Serve, tmp_path: Path) -> None:
    server = serve("basic", folder=tmp_path)
    assert parkade(server, "jobs") == "no jobs\n"
    assert MISSING in parkade(server, "jobs", "retry", str(uuid.uuid4()), code=1)
    assert not (tmp_path / ".parkade").exists()
    status = server.status()
    assert sum(jobs_by_state(status).values()) == 0
    assert "\njobs" not in parkade(server, "status", "--once")
    assert metric(server, "jobs", state="ready") == 0
    assert "it declares none" in parkade(server, "enqueue", "for_another_application", code=1)
    job = parkade(server, "enqueue", "for_another_application", "--force").strip()
    assert [(one["id"], one["state"]) for one in listed(server)] == [(job, "ready")], "for a server that runs jobs"
    assert [worker["role"] for worker in server.workers()] == ["requests"]


# Status and metrics


def test_the_status_counts_jobs_by_state(server: Server, ran: Ran) -> None:
    dead(server, 2)
    counts = server.status()["counts"]
    running = enqueue(server, "wait_at", "counted", queue="single")
    enqueue_many(server, 3, "write", "counted in vain", queue="single")
    later = enqueue(server, "write", "counted", delay=600)
    ran.until("begin counted 1")
    status = server.until(
        lambda status: (
            jobs_by_state(status)
            == {"ready": 3, "scheduled": 1, "running": 1, "dead": 2, "unknown": 0, "completed": 0, "cancelled": 0}
        )
    )
    assert (status["jobs"]["queues"]["single"], status["jobs"]["queues"]["default"]) == (3, 1)
    assert status["jobs"]["oldest"] >= 0
    for name, value in (("ready", 3), ("scheduled", 1), ("running", 1), ("dead", 2)):
        assert metric(server, "jobs", state=name) == value
    assert on_the_page(server) == ["scheduled 1", "ready 3", "running 1", "completed 0", "dead 2"]
    server.open_gate("counted")
    until_state(server, running, "completed")
    assert parkade(server, "jobs", "cancel", later) == f"{later} is cancelled\n"
    status = server.until(lambda status: jobs_by_state(status)["completed"] == 4)
    assert (status["jobs"]["cancelled"], status["jobs"]["oldest"]) == (1, None)
    ended = {name: status["counts"][name] - counts[name] for name in ("jobs_enqueued", "jobs_completed", "jobs_dead")}
    assert ended == {"jobs_enqueued": 5, "jobs_completed": 4, "jobs_dead": 0}
    for verdict in ("completed", "dead"):
        assert metric(server, "job_runs_total", verdict=verdict) == status["counts"][f"jobs_{verdict}"]
    assert metric(server, "jobs_enqueued_total") == status["counts"]["jobs_enqueued"]


def test_the_metrics_tell_which_job_fails(server: Server) -> None:
    def ended(job: str, outcome: str) -> float:
        name = f'parkade_job_attempts_total{{job="{job}",outcome="{outcome}"}} '
        lines = [line for line in server.metrics().splitlines() if line.startswith(name)]
        return float(lines[0].removeprefix(name)) if lines else 0

    before = ended("write", "completed"), ended("discarded", "dead")
    until_state(server, enqueue(server, "write", "measured"), "completed")
    dead(server)
    assert (ended("write", "completed"), ended("discarded", "dead")) == (before[0] + 1, before[1] + 1)
    assert metric(server, "job_attempt_seconds_count", job="write") >= 1


def on_the_page(server: Server) -> list[str]:
    """The line of jobs in a terminal, without ages."""
    (line,) = (line for line in parkade(server, "status", "--once").splitlines() if line.startswith("jobs "))
    return [part.split(" (")[0] for part in line.removeprefix("jobs").strip().split("   ")][:5]


def test_runs_of_jobs_are_not_counted_among_requests(serve: Serve, tmp_path: Path) -> None:
    server, ran = serve("jobs", folder=tmp_path, workers=1, job_workers=1, is_ready=False), Ran(tmp_path)
    server.ready(1, job_workers=1)
    parked = enqueue(server, "wait_long", "parked")
    server.until(lambda status: status["jobs"]["parked"] == 1)
    enqueue(server, "wait_at", "counted")
    ran.until("begin counted 1")
    status = server.until(lambda status: status["jobs"]["running"] == 2)
    assert not any(status["lives"].values())
    assert not any(wait["count"] for wait in status["waits"].values())
    assert (status["counts"]["accepted"], status["counts"]["answered"]) == (2, 2)
    assert {worker["role"]: (worker["requests"], worker["jobs"]) for worker in status["workers"]} == {
        "requests": (2, 0),
        "jobs": (0, 1),
    }
    assert "running 2 (parked 1)" in parkade(server, "status", "--once")
    server.open_gate("counted")
    parkade(server, "jobs", "cancel", parked)
    server.until_zero()


def test_workers_for_jobs_are_told_apart(serve: Serve, tmp_path: Path) -> None:
    server = serve("jobs", folder=tmp_path, workers=1, job_workers=1, is_ready=False)
    status = server.ready(1, job_workers=1).status()
    assert sorted(worker["role"] for worker in status["workers"]) == ["jobs", "requests"]
    assert "(jobs)" in parkade(server, "status", "--once")
