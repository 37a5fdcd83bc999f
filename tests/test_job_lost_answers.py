"""PostgreSQL has committed, and the answer is lost with the connection: nothing is lost, stuck or done twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.gate import Gate
from .harness.jobs import asking, enqueue, enqueue_many, result
from .harness.postgres import Postgres
from .harness.site import Site
from .harness.until import until

pytestmark = [pytest.mark.promise(9), pytest.mark.also_in_perl]

SOON = 8.0
"""Seconds. It takes a new connection and two statements, not the ten seconds after which a server is declared dead."""


class Distant(Site):
    """Servers that reach their database through a gate."""

    def __init__(self, serve: Serve, folder: Path, postgres: Postgres, gate: Gate) -> None:
        super().__init__(serve, folder, postgres)
        self.gate = gate

    @property
    def url(self) -> str:
        return self.gate.url(self.database)

    def lose(self) -> None:
        """Held bytes are lost, with every connection; new connections work."""
        self.gate.cut()
        self.gate.sessions.release()

    def until_settled(self) -> None:
        """Waits until no job waits or runs."""
        until("no job is left", lambda: self.count("running") + self.count("ready") + self.count("scheduled") == 0)


@pytest.fixture
def distant(serve: Serve, tmp_path: Path, postgres: Postgres) -> Iterator[Distant]:
    with ExitStack() as stack:
        gate = stack.enter_context(Gate(postgres))
        yield Distant(serve, tmp_path, postgres, gate)
        gate.sessions.release()


def test_jobs_whose_claim_was_answered_to_nobody_run_soon_and_their_first_attempt(distant: Distant) -> None:
    server = distant.serve(workers=2)
    distant.gate.sessions.to_client.hold_at(b"wait_at")  # their name, which only appears in the answer to the claim
    jobs = enqueue_many(server, 20, "wait_at", "gate")
    distant.gate.sessions.to_client.until_held()
    until("the claim is committed", lambda: distant.count("running") > 0)
    assert distant.ran.lines() == []

    distant.lose()
    distant.open_gate("gate")

    distant.ran.until_count("end", 20, seconds=SOON)
    for job in jobs:
        assert result(server, job).text == "gate"
    distant.until_settled()
    assert distant.ran.about("begin") == ["begin gate 1"] * 20


def test_what_a_server_claimed_that_heard_no_answer_and_died_another_runs(distant: Distant) -> None:
    first = distant.serve()
    distant.gate.sessions.to_client.hold_at(b"wait_at")
    job = enqueue(first, "wait_at", "gate")
    until("the claim is committed", lambda: distant.count("running") == 1)
    first.kill()
    distant.lose()
    distant.open_gate("gate")
    second = distant.serve()
    assert result(second, job).text == "gate"
    distant.until_settled()
    assert len(distant.ran.about("begin")) == 1


def test_a_job_that_was_stored_without_an_answer_is_acknowledged_or_refused_and_there_once(distant: Distant) -> None:
    server = distant.serve(workers=2)
    until("the store is open", lambda: json.loads(server.admin("GET", "/jobs/store")[1]).get("instance"))
    distant.gate.sessions.hold_answers_to(b"write")  # its name, which only appears in the statement that enqueues it
    clients = [server.connect().ask("POST", "/enqueue", body=asking("write", f"line {n}")) for n in range(20)]
    until("some are committed", lambda: distant.count("bodies") > 0)
    distant.gate.sessions.to_client.until_held()
    assert not any(client.is_readable() for client in clients), "nobody knows of it yet"

    distant.lose()

    answers = [client.answer() for client in clients]
    assert {answer.status for answer in answers} <= {200, 503}
    acknowledged = [f"line {number}" for number, answer in enumerate(answers) if answer.status == 200]
    distant.ran.until(*acknowledged)
    distant.until_settled()
    assert len(distant.ran.lines()) == len(set(distant.ran.lines())), "none is there twice"
    ids = [job for answer in answers if answer.status == 200 for job in answer.json()]
    assert all(result(server, job).status == 200 for job in ids), "they are found by what their clients were told"


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_job_whose_end_was_noted_without_an_answer_is_not_run_again(distant: Distant, is_stored: bool) -> None:
    """If recording the end failed, the server that ran the job still knows how it ended."""
    server = distant.serve()
    job = enqueue(server, "wait_at", "gate")
    distant.ran.until("begin gate 1")
    sessions, mark = distant.gate.sessions, job.encode()
    if is_stored:
        sessions.hold_answers_to(mark)
    else:
        sessions.to_server.hold_at(mark)
    distant.open_gate("gate")
    (sessions.to_client if is_stored else sessions.to_server).until_held()
    until("its end is stored, or is not", lambda: distant.count("ended") == int(is_stored))

    distant.lose()

    assert result(server, job).text == "gate"
    distant.until_settled()
    assert distant.ran.lines() == ["begin gate 1", "end gate 1"]


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_job_whose_server_died_at_its_end_is_run_again_if_that_was_not_noted(
    distant: Distant, is_stored: bool
) -> None:
    first = distant.serve()
    job = enqueue(first, "wait_at", "gate")
    distant.ran.until("begin gate 1")
    sessions, mark = distant.gate.sessions, job.encode()
    if is_stored:
        sessions.hold_answers_to(mark)
    else:
        sessions.to_server.hold_at(mark)
    distant.open_gate("gate")
    (sessions.to_client if is_stored else sessions.to_server).until_held()
    until("its end is stored, or is not", lambda: distant.count("ended") == int(is_stored))

    first.kill()
    distant.lose()

    second = distant.serve()
    assert result(second, job).text == "gate"
    distant.until_settled()
    assert distant.ran.about("begin") == ["begin gate 1", "begin gate 2"][: 1 if is_stored else 2]


def test_a_connection_that_is_cut_again_and_again_loses_nothing_acknowledged(distant: Distant) -> None:
    server = distant.serve(workers=2)
    until("the store is open", lambda: json.loads(server.admin("GET", "/jobs/store")[1]).get("instance"))

    def enqueued(number: int) -> str | None:
        answer = server.post("/enqueue", asking("write", f"line {number}"))
        assert answer.status in (200, 503), answer.text
        return f"line {number}" if answer.status == 200 else None

    with ThreadPoolExecutor(8) as threads:
        asked = []
        for round_ in range(12):
            asked += [threads.submit(enqueued, round_ * 25 + number) for number in range(25)]
            distant.ran.until_count("line", round_ * 10)
            distant.gate.cut()
        acknowledged = [line for one in asked if (line := one.result())]
    assert len(acknowledged) > 100
    distant.ran.until(*acknowledged)
    distant.until_settled()
    assert len(distant.ran.lines()) == len(set(distant.ran.lines())), "nobody died: none ran twice"


@pytest.mark.python_only("asyncio.timeout")
@pytest.mark.parametrize("path", ["/impatient", "/impatient-task"], ids=["the only one", "one of two"])
def test_a_wait_that_was_given_up_before_what_was_enqueued_is_stored_is_over(distant: Distant, path: str) -> None:
    server = distant.serve("several", database=distant.postgres.url)
    distant.gate.sessions.hold_answers_to(b"add")  # the job, in the statement that enqueues it
    client = server.connect().ask("POST", path)
    distant.gate.sessions.to_client.until_held()
    # It gives up after 0.05 s, which nobody is told: the wait itself has not been heard.
    assert not client.is_readable(seconds=0.5), "the response would say that the job is stored"
    distant.gate.sessions.release()
    assert client.answer().text == "nothing"
    distant.until_settled()
