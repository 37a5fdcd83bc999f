"""Jobs within transactions: enqueued if and when the transaction commits; in the same transaction where possible.

The worker for Perl has no transactions.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Client
from .harness.jobs import Ran, result, until_state
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.until import until

Step = dict[str, Any]


class Shop:
    """A database with orders and jobs; a folder for the lines of jobs."""

    def __init__(self, serve: Serve, postgres: Postgres, folder: Path) -> None:
        self._serve = serve
        self.postgres = postgres
        self.folder = folder
        self.ran = Ran(folder)
        self.name = self.another()

    def another(self) -> str:
        """A database with a table for orders."""
        name = f"shop_{secrets.token_hex(4)}"
        self.postgres.psql(f"create database {name}")
        self.postgres.psql("create table orders (line text)", name)
        return name

    def url(self, name: str = "", user: str = "postgres") -> str:
        return self.postgres.url_of(name or self.name, user)

    def serve(self, **settings: object) -> Server:
        told = {"jobs": self.url(), "database": self.url(), "folder": self.folder, "workers": 1}
        environment = {"GATES": str(self.folder)}
        server: Server = self._serve("jobs_within", **(told | {"environment": environment} | settings))
        return server

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()

    def orders(self) -> list[str]:
        return [str(line) for (line,) in self.postgres.psql("select line from orders order by line", self.name)]

    def bodies(self, name: str = "") -> int:
        """Jobs in the store."""
        ((count,),) = self.postgres.psql("select count(*) from parkade.bodies", name or self.name)
        return int(count or 0)


@pytest.fixture
def shop(serve: Serve, postgres: Postgres, tmp_path: Path) -> Shop:
    return Shop(serve, postgres, tmp_path)


@pytest.fixture
def fragile(serve: Serve, tmp_path: Path) -> Iterator[Shop]:
    """With a PostgreSQL that the test may end."""
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        yield Shop(serve, postgres, tmp_path)


def order(line: str) -> Step:
    return {"sql": "insert into orders (line) values ($1)", "parameters": [line]}


def begin(server: Server, *steps: Step, way: str = "transaction", **asked: object) -> Client:
    client: Client = server.connect()
    return client.ask("POST", f"/{way}", body=json.dumps({"steps": steps, **asked}).encode())


def ids(server: Server, *steps: Step, **asked: object) -> list[str]:
    """The jobs, as stored."""
    answer = begin(server, *steps, **asked).answer()
    assert answer.status == 200, answer.text
    told: list[str] = answer.json()
    return told


# In the same transaction


@pytest.mark.promise(9)
def test_the_transaction_itself_enqueues(shop: Shop) -> None:
    server = shop.serve()
    client = begin(server, order("one"), {"enqueue": "one"}, {"gate": "gate"})
    until("it is open", lambda: any(row["state"] == "idle in transaction" for row in shop.postgres.activity()))
    assert shop.bodies() == 0
    shop.open_gate("gate")
    (job,) = client.answer().json()
    assert result(server, job).text == "one"
    written = [shop.postgres.psql(f"select xmin from {table}", shop.name) for table in ("orders", "parkade.bodies")]
    assert written[0] == written[1], "one transaction has written both"
    assert shop.ran.lines() == ["one"]


def test_a_job_belongs_to_a_transaction_beside_which_another_task_waits(shop: Shop) -> None:
    server = shop.serve()
    (job,) = begin(server, order("one"), {"enqueue": "one"}, order("two"), way="beside").answer().json()
    assert result(server, job).text == "one"
    (job,) = begin(server, {"enqueue": "last"}, way="beside").answer().json()
    assert result(server, job).text == "last"
    assert shop.orders() == ["one", "two"]


@pytest.mark.promise(9)
@pytest.mark.parametrize("end", [{"fail": True}, {"rollback": True}])
def test_what_is_rolled_back_was_not_enqueued(shop: Shop, end: Step) -> None:
    server = shop.serve()
    before, gone, behind = ids(
        server,
        {"enqueue": "gone"},
        end,
        behind=[{"enqueue": "behind"}, {"enqueue": "behind", "options": {"key": "behind"}}],
    )
    assert "rolled back" in before
    shop.ran.until_count("behind", 2)
    assert [result(server, job).text for job in (gone, behind)] == ["behind", "behind"]
    assert (shop.bodies(), shop.orders(), shop.ran.about("gone")) == (2, [], [])


@pytest.mark.promise(9)
def test_what_belonged_to_one_transaction_does_not_go_with_the_next(shop: Shop) -> None:
    server = shop.serve()
    for number in range(3):
        begin(server, {"enqueue": "gone"}, {"rollback": True}).answer()
        ids(server, order(f"{number}"), {"enqueue": f"{number}"})
    shop.ran.until("0", "1", "2")
    assert shop.bodies() == 3


@pytest.mark.promise(9)
def test_a_client_that_leaves_before_the_commit_has_enqueued_nothing(shop: Shop) -> None:
    server = shop.serve()
    client = begin(server, order("gone"), {"enqueue": "gone"}, {"gate": "gate"}, {"enqueue": "gone"})
    until("it is open", lambda: any(row["state"] == "idle in transaction" for row in shop.postgres.activity()))
    client.close()
    server.until(lambda status: status["databases"]["default"]["slots"].get("held", 0) == 0)
    shop.open_gate("gate")
    ids(server, order("here"), {"enqueue": "here"})
    shop.ran.until("here")
    assert (shop.orders(), shop.bodies()) == (["here"], 1)


@pytest.mark.promise(9)
def test_whenever_the_server_dies_orders_and_jobs_are_the_same(shop: Shop) -> None:
    for kill in range(4):
        server = shop.serve(workers=2)
        with ThreadPoolExecutor(8) as threads:

            def trade(line: str, server: Server = server) -> None:
                with suppress(OSError):  # it was killed
                    begin(server, order(line), {"enqueue": line}, way="plain").answer()

            for number in range(100):
                threads.submit(trade, f"{kill} {number}")
            until("some have been traded", lambda kill=kill: len(shop.orders()) > 20 * (kill + 1) + 60 * kill)
            server.kill()
    server = shop.serve(workers=2)
    shop.postgres.until_idle()
    orders = shop.orders()
    assert len(orders) == shop.bodies()
    shop.ran.until(*orders, seconds=60)
    assert set(shop.ran.lines()) == set(orders)


def test_jobs_with_keys_are_the_ones_that_are_there(shop: Shop) -> None:
    server = shop.serve()
    late = {"delay": 3_600.0, "key": "same"}
    (first,) = ids(server, {"enqueue": "one", "options": late})
    other = ids(
        server,
        {"enqueue": "two", "options": late},
        {"enqueue": "three", "options": {"delay": 3_600.0}},
        {"enqueue": "four", "options": late},
    )
    assert (other[0], other[2]) == (first, first)
    assert len({*other}) == 2
    assert shop.bodies() == 2
    until_state(server, other[1], "scheduled")


def test_a_job_may_do_so_too(shop: Shop) -> None:
    server = shop.serve()
    job = server.post("/enqueue", b"from a job").text
    assert result(server, job).text == "from a job"
    shop.ran.until("from a job")
    assert shop.orders() == ["from a job"]


def test_many_jobs_go_with_one_commit(shop: Shop) -> None:
    server = shop.serve()
    told = ids(server, *({"enqueue": f"job {number}"} for number in range(1_000)))
    assert len(set(told)) == 1_000
    shop.ran.until_count("job", 1_000)


def test_more_than_a_transaction_may_enqueue_fails_and_changes_nothing(shop: Shop) -> None:
    server = shop.serve()
    answer = begin(server, order("too many"), *({"enqueue": "job"} for _ in range(10_001)), way="plain").answer(30)
    assert answer.status == 500
    server.until_logged("a transaction can enqueue at most 10000 jobs")
    assert (shop.orders(), shop.bodies()) == ([], 0)


@pytest.mark.parametrize("way", ["is_awaited", "result"])
def test_nobody_can_wait_for_it_in_the_block(shop: Shop, way: str) -> None:
    server = shop.serve()
    answer = begin(server, order("one"), {"enqueue": "one", way: True}).answer()
    if way == "is_awaited":
        assert answer.status == 500
        server.until_logged("await it after the block")
        assert (shop.orders(), shop.bodies()) == ([], 0)
    else:
        assert answer.status == 200
        assert shop.ran.lines()[0] == "no result: missing"


def test_a_transaction_that_comes_before_the_store_is_open_waits_for_it(shop: Shop) -> None:
    def in_state(**wanted: str) -> int:
        return sum(wanted.items() <= row.items() for row in shop.postgres.activity())

    with shop.postgres.connected(shop.name) as other:
        other.execute("begin; create schema parkade")
        server = shop.serve()
        until("the store waits for its schema", lambda: in_state(wait_event_type="Lock"))
        stays, leaves = (begin(server, order(line), {"enqueue": line}) for line in ("stays", "leaves"))
        until("both have done all but commit", lambda: in_state(state="idle in transaction") == 2)
        leaves.close()
        until("who left is rolled back", lambda: in_state(state="idle in transaction") == 1)
        other.execute("rollback")
    (job,) = stays.answer().json()
    assert result(server, job).text == "stays"
    assert (shop.orders(), shop.bodies()) == (["stays"], 1)


def test_a_server_that_the_others_took_for_lost_refuses_for_a_moment(shop: Shop) -> None:
    server = shop.serve()
    ids(server, order("one"), {"enqueue": "one"})
    shop.postgres.psql("delete from parkade.boots", shop.name)
    answers = []

    def is_back() -> bool:
        answers.append(begin(server, order("more"), {"enqueue": "more"}).answer())
        return answers[-1].status == 200

    until("it is back", is_back)
    assert {answer.status for answer in answers} <= {200, 503}
    assert len(shop.orders()) == shop.bodies() == 2


@pytest.mark.promise(9)
def test_a_database_that_dies_takes_both_or_keeps_both(fragile: Shop) -> None:
    server = fragile.serve(workers=2)
    with ThreadPoolExecutor(8) as threads:
        for number in range(100):
            threads.submit(
                lambda line: begin(server, order(line), {"enqueue": line}, way="plain").answer(), f"{number}"
            )
        until("some have been traded", lambda: len(fragile.orders()) > 10)
        fragile.postgres.restart()
    fragile.postgres.until_idle()
    orders = fragile.orders()
    assert len(orders) == fragile.bodies()
    fragile.ran.until(*orders, seconds=60)


# Where that is not possible


@pytest.mark.promise(9)
@pytest.mark.parametrize("jobs", ["another database", "another's tables", "a file", "a closed schema"])
def test_elsewhere_they_are_enqueued_behind_the_commit(shop: Shop, jobs: str) -> None:
    settings: dict[str, object] = {}
    if jobs == "a file":
        settings["jobs"] = None
    elif jobs == "a closed schema":
        shop.postgres.psql("drop role if exists clerk; create role clerk login", shop.name)
        shop.postgres.psql("grant insert on orders to clerk", shop.name)
        settings["database"] = shop.url(user="clerk")
    else:
        other = shop.another()
        settings["jobs"] = shop.url(other)
        if jobs == "another's tables":
            shop.serve().stop()
    server = shop.serve(**settings)
    (gone,) = ids(server, order("gone"), {"enqueue": "gone"}, {"rollback": True})
    assert "rolled back" in gone
    first, second = ids(server, order("one"), {"enqueue": "one"}, {"enqueue": "two"})
    assert [result(server, job).text for job in (first, second)] == ["one", "two"]
    assert (shop.orders(), sorted(shop.ran.lines())) == (["one"], ["one", "two"])
    if jobs == "a closed schema":
        server.until_logged("has no access to the schema parkade")
