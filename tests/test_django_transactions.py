"""Django Tasks in a transaction of Django: stored by it if the jobs are in its database, else after it."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import django6
from .harness.client import Closed
from .harness.postgres import Postgres
from .harness.server import APPS, ROOT, Server, clean_environment
from .harness.until import until

PROJECT = APPS / "django_tasks"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PATH = ":".join(map(str, (ROOT / "workers" / "python" / "src", PROJECT)))


class Shop:
    """A database with orders, a project of Django that uses it, and servers of that."""

    def __init__(self, serve: Serve, postgres: Postgres, python: Path) -> None:
        self._serve = serve
        self._python = python
        self.postgres = postgres
        self.name = self.another()

    def another(self) -> str:
        """A database with a table for orders."""
        name = f"shop_{secrets.token_hex(4)}"
        self.postgres.psql(f"create database {name}")
        self.postgres.psql("create table orders (line text); grant all on orders to public", name)
        return name

    def serve(
        self, jobs: str | None = "", user: str = "postgres", environment: Mapping[str, str] | None = None
    ) -> Server:
        """`jobs`: the name of their database; None for a file. `user`: of Django."""
        where = None if jobs is None else self.postgres.url_of(jobs or self.name)
        told = {"PYTHONPATH": PATH, "SHOP": self.postgres.url_of(self.name, user), **(environment or {})}
        site = PROJECT / "site_of_tasks.py"
        server: Server = self._serve(site, python=self._python, jobs=where, workers=1, environment=told)
        if where is not None:  # until then, tasks are stored after the commit
            until("it has joined its store", lambda: json.loads(server.admin("GET", "/jobs/store")[1]).get("instance"))
        return server

    def command(self, end: str, server: Server | None, **environment: str) -> tuple[int, str]:
        """Orders in a management command. Returns its exit status, and what it printed."""
        folder = "/nowhere" if server is None else str(server.folder)
        environment = clean_environment(
            PYTHONPATH=PATH, SHOP=self.postgres.url_of(self.name), XDG_RUNTIME_DIR=folder, **environment
        )
        program = (
            "import site_of_tasks, urls_of_tasks; from django.test import RequestFactory as F; "
            f"urls_of_tasks.order(F().get('/'), {end!r})"
        )
        ran = subprocess.run([self._python, "-c", program], env=environment, timeout=60, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    def orders(self) -> list[list[str | None]]:
        """Each with the transaction that has written it."""
        return self.postgres.psql("select xmin, line from orders order by line", self.name)

    def tasks(self, what: str = "xmin, id") -> list[list[str | None]]:
        """Those of the database, if it has any."""
        with suppress(AssertionError):  # there is no store
            return self.postgres.psql(f"select {what} from parkade.bodies order by seq", self.name)
        return []

    def is_stored_with_its_order(self, id: str) -> bool:
        """Whether one transaction has written both."""
        writers = {writer for writer, _ in self.orders()}
        return {(writer, task) for writer, task in self.tasks()} == {(writer, id) for writer in writers}


@pytest.fixture(scope="module")
def python() -> Path:
    return django6.required_python()


@pytest.fixture
def shop(serve: Serve, postgres: Postgres, python: Path) -> Iterator[Shop]:
    shop = Shop(serve, postgres, python)
    yield shop
    postgres.psql(f"drop database if exists {shop.name} with (force)")


def ran(server: Server, id: str, seconds: float = 20) -> bool:
    def is_done() -> bool:
        return server.get(f"/result/default/{id}").json().get("status") == "SUCCESSFUL"

    until("the task has run", is_done, seconds)
    return True


def order(server: Server, end: str = "commit", query: str = "", *fields: str) -> Any:
    answer = server.get(f"/order/{end}{query}", *fields)
    assert answer.status == 200, answer.text
    return answer.json()["id"]


@pytest.mark.promise(9)
@pytest.mark.parametrize("interface", ["WSGI", "ASGI"])
def test_the_transaction_of_django_stores_the_task(shop: Shop, interface: str) -> None:
    server = shop.serve(environment={interface: "1"})
    id = order(server, "commit", "", f"traceparent: {TRACE}")
    assert shop.is_stored_with_its_order(id)
    assert ran(server, id, seconds=3), "servers are notified with the commit"
    ((queue, request_id, trace),) = shop.tasks("queue, request_id, traceparent")
    assert (queue, request_id) == ("default", TRACE[3:35])
    assert trace == TRACE


@pytest.mark.promise(9)
def test_what_is_rolled_back_was_not_enqueued(shop: Shop) -> None:
    server = shop.serve()
    assert order(server, "rollback") is None
    assert (shop.orders(), shop.tasks()) == ([], [])
    assert order(server, "savepoint") is None
    assert ([line for _, line in shop.orders()], shop.tasks()) == (["savepoint"], [])
    id = order(server, "inner")
    assert [task for _, task in shop.tasks()] == [id]
    assert ran(server, id)


@pytest.mark.promise(9)
def test_a_server_that_is_killed_just_after_the_commit_loses_nothing(shop: Shop) -> None:
    server = shop.serve()
    with suppress(Closed):
        order(server, "killed")
    server.process.wait(20)
    ((_, id),) = shop.tasks()
    assert [line for _, line in shop.orders()] == ["killed"]
    assert ran(shop.serve(), str(id))


@pytest.mark.promise(9)
def test_a_command_that_is_killed_just_after_the_commit_loses_nothing(shop: Shop) -> None:
    server = shop.serve()
    assert shop.command("killed", server) == (9, "")
    ((_, id),) = shop.tasks()
    assert shop.is_stored_with_its_order(str(id))
    assert ran(server, str(id))


@pytest.mark.promise(9)
def test_a_command_needs_no_server_if_it_is_told_where_the_jobs_are(shop: Shop) -> None:
    status, printed = shop.command("commit", None, IN_DATABASE="1")
    assert (status, shop.orders()) == (1, [])
    assert "in_database is true, but a task cannot be stored through the connection 'default'" in printed
    shop.serve().stop()
    for end in ("commit", "outside", "rollback"):
        assert shop.command(end, None, IN_DATABASE="1") == (0, "")
    ids = [str(task) for _, task in shop.tasks()]
    assert len(ids) == 2
    server = shop.serve(environment={"IN_DATABASE": "1"})
    assert [ran(server, id) for id in (*ids, order(server))] == [True] * 3


def test_the_task_has_its_time_its_queue_and_its_priority(shop: Shop) -> None:
    server = shop.serve()
    id = order(server, query="?later=1")
    assert shop.is_stored_with_its_order(id)
    ((queue, priority, due),) = shop.tasks("queue, priority, due - enqueued")
    assert (queue, priority) == ("mail", "5")
    assert 500 < int(due or 0) <= 1_000
    assert server.get(f"/result/default/{id}").json()["status"] == "READY"
    assert ran(server, id, seconds=6)


@pytest.mark.parametrize("query", ["", "?later=3600"])
def test_the_commit_notifies_servers(shop: Shop, query: str) -> None:
    """Otherwise they look every five seconds. Of those that are due later, too: no server knows their times."""
    server = shop.serve()
    with shop.postgres.connected(shop.name) as connection:
        connection.execute("listen parkade_jobs")
        order(server, "rollback", query)
        order(server, query=query)
        heard = [notification.payload for notification in connection.notifies(timeout=1)]
    assert heard == ["00000000-0000-0000-0000-000000000000"]


def test_a_server_that_was_taken_for_dead_is_known_by_its_new_instance(shop: Shop) -> None:
    server = shop.serve()
    assert ran(server, order(server))
    before = shop.postgres.psql("delete from parkade.boots returning boot", shop.name)

    def has_rejoined() -> bool:
        now = shop.postgres.psql("select boot from parkade.boots", shop.name)
        return bool(now) and now != before

    until("it has joined again", has_rejoined)
    shop.postgres.psql("truncate orders, parkade.bodies", shop.name)
    id = order(server)
    assert shop.is_stored_with_its_order(id)
    assert ran(server, id)


def test_a_long_transaction_with_one_snapshot_stores_its_task(shop: Shop) -> None:
    """There, the heart of its server has stood still since its beginning."""
    server = shop.serve()
    assert ran(server, order(server))
    shop.postgres.psql("truncate orders, parkade.bodies", shop.name)
    id = order(server, "snapshot")
    assert shop.is_stored_with_its_order(id)
    assert ran(server, id)


# Elsewhere: after the commit, as before


@pytest.mark.parametrize("where", ["in a file", "beside a store", "beside a copy"])
def test_jobs_elsewhere_get_the_task_after_the_commit(shop: Shop, where: str) -> None:
    elsewhere = None if where == "in a file" else shop.another()
    if where == "beside a store":
        shop.serve()  # another server has its jobs in the database of Django
    server = shop.serve(jobs=elsewhere)
    if where == "beside a copy":
        shop.postgres.psql(f"drop database {shop.name}")
        shop.postgres.psql(f"alter database {elsewhere} allow_connections false", "postgres")
        shop.postgres.psql(
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{elsewhere}'; "
            f"create database {shop.name} template {elsewhere}; alter database {elsewhere} allow_connections true"
        )
        shop.postgres.psql("update parkade.boots set seen = seen - interval '10 s'", shop.name)
    id = order(server)
    assert ran(server, id)
    assert [line for _, line in shop.orders()] == ["commit"]
    assert shop.tasks() == []


def test_a_role_without_rights_enqueues_after_the_commit(shop: Shop) -> None:
    shop.postgres.psql(
        "do $$ begin if to_regrole('shopper') is null then create role shopper login; end if; end $$", shop.name
    )
    server = shop.serve(user="shopper")
    for grant in (
        "",
        "grant usage on schema parkade to shopper",
        "grant insert on all tables in schema parkade to shopper",
    ):
        shop.postgres.psql(grant, shop.name)
        assert ran(server, order(server)), grant
    (one, two, three) = shop.orders()
    assert {one[0], two[0], three[0]}.isdisjoint(writer for writer, _ in shop.tasks())
    shop.postgres.psql(
        "grant select on all tables in schema parkade to shopper; truncate orders, parkade.bodies", shop.name
    )
    id = order(server)
    assert shop.is_stored_with_its_order(id)
    assert ran(server, id)


def test_a_transaction_that_only_reads_enqueues_after_it(shop: Shop) -> None:
    server = shop.serve()
    assert ran(server, order(server, "reading"))


def test_a_store_without_the_function_gets_the_task_after_the_commit(shop: Shop) -> None:
    server = shop.serve()
    shop.postgres.psql("drop function parkade.enqueue", shop.name)
    id = order(server)
    assert ran(server, id)
    assert not shop.is_stored_with_its_order(id)
    server.kill()
    shop.postgres.psql("truncate orders, parkade.bodies, parkade.ended", shop.name)
    server = shop.serve()
    assert shop.is_stored_with_its_order(order(server)), "the next server has made it"
