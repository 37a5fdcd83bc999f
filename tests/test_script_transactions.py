"""Transactions of code that works for no request: scripts and management commands, threads and hooks of workers.

The worker for Perl has no transactions.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.asking import SLOW
from .harness.jobs import Ran
from .harness.ports import free_port
from .harness.postgres import Postgres
from .harness.server import APPS, Server, clean_environment
from .harness.until import until

PREAMBLE = """
import signal, sys, time
from pathlib import Path
sys.path.insert(0, {apps!r})
import parkade
from parkade import QueryError, connect, transaction
from parkade.errors import ConnectError
from jobs_within import write

def reach(gate):  # says so, and waits
    print(gate, flush=True)
    sys.stdin.readline()

def move(t, amount=30):
    t.query("update accounts set amount = amount - $1 where id = 1", amount)
    return t.query("update accounts set amount = amount + $1 where id = 2 returning amount", amount)

"""


class Script:
    """A running script; it says where it is, line by line."""

    def __init__(self, server: Server, code: str, **environment: str) -> None:
        code = PREAMBLE.format(apps=str(APPS)) + textwrap.dedent(code)
        environment = {"PARKADE_ADMIN": f"unix:{server.private}", "GATES": str(server.gates)} | environment
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], text=True, env=clean_environment(**environment), **pipes
        )

    def until(self, line: str) -> Script:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        if said != line:
            raise AssertionError(f"it says {said!r}: {self.end()}")
        return self

    def go_on(self) -> Script:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self

    def end(self) -> str:
        """What else it says, when it has ended well."""
        out, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors
        return str(out).strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres, database: str, folder: Path) -> Server:
    url = postgres.url if database == "postgres" else f"sqlite:{folder}/shop-{database}.db"
    settings: Any = {"database": url, "folder": folder / database, "workers": 1, "deadline": 4}
    (folder / database).mkdir()
    return serve_for_all("jobs_within", environment={"GATES": str(folder / database)}, **settings)


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    setup = """
        with connect(), transaction() as t:
            t.query("drop table if exists accounts")
            t.query("create table accounts (id int primary key, amount int)")
            t.query("insert into accounts values (1, 100), (2, 100)")
    """
    Script(shared, setup).end()
    yield shared
    at_rest(shared)


def at_rest(server: Server) -> None:
    """No transaction is left, no connection is held."""

    def is_so(status: Any) -> bool:
        return set(status["databases"]["default"]["slots"]) <= {"idle"} and not status["lives"]["parked"]

    server.until(is_so)


def the_script(server: Server) -> str:
    """The id by which an operator can end the only one."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(str(server.private))
    connection.sendall(b"GET /events HTTP/1.1\r\n\r\n")
    read = b""
    while (found := re.search(rb'"script":\[\{"id":"([0-9.]+)"', read)) is None:
        read += connection.recv(65_536)
    connection.close()
    return found[1].decode()


def amounts(server: Server) -> list[int]:
    code = """
        with connect(), transaction(read_only=True) as t:
            print([row["amount"] for row in t.query("select amount from accounts order by id")])
    """
    found: list[int] = json.loads(Script(server, code).end())
    return found


def held(server: Server) -> int:
    slots = server.status()["databases"]["default"]["slots"]
    return int(slots.get("held", 0) + slots.get("busy", 0))


def test_the_end_of_the_block_commits(server: Server) -> None:
    code = """
        with connect():
            with transaction() as t:
                print(move(t))
                reach("open")
    """
    script = Script(server, code)
    script.until("[{'amount': 130}]").until("open")
    assert server.status()["waits"]["script"]["count"] == 1
    assert script.go_on().end() == ""
    assert amounts(server) == [70, 130]


def test_a_connection_may_be_named_and_begin_several(server: Server) -> None:
    code = """
        with connect() as server:
            for _ in range(2):
                with server.transaction(isolation="serializable") as t:
                    move(t)
    """
    Script(server, code).end()
    assert amounts(server) == [40, 160]


@pytest.mark.parametrize("how", ["raise KeyError('x')", "t.rollback()", "raise KeyboardInterrupt"])
def test_an_exception_rolls_back_and_so_does_a_rollback(server: Server, how: str) -> None:
    code = f"""
        with connect():
            try:
                with transaction() as t:
                    move(t)
                    {how}
            except (KeyError, KeyboardInterrupt) as error:
                print(type(error).__name__)
    """
    Script(server, code).end()
    assert amounts(server) == [100, 100]


def test_bad_sql_raises_and_rolls_back(server: Server) -> None:
    code = """
        with connect():
            try:
                with transaction() as t:
                    move(t)
                    t.query("insert into accounts values (1, 1)")
            except QueryError as error:
                print(error.reason, error.effect)
            with transaction() as t:
                print(len(t.query("select 1 as one")))
    """
    assert Script(server, code).end() == "refused none\n1"
    assert amounts(server) == [100, 100]


@pytest.mark.promise(3)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_script_that_is_killed_leaves_nothing(server: Server, how: signal.Signals) -> None:
    script = Script(server, "with connect(), transaction() as t:\n    move(t)\n    reach('open')\n").until("open")
    assert held(server) == 1
    script.process.send_signal(how)
    script.process.communicate()
    at_rest(server)
    assert amounts(server) == [100, 100]


@pytest.mark.promise(3)
def test_a_script_that_is_killed_in_a_statement_has_it_cancelled(
    server: Server, database: str, postgres: Postgres
) -> None:
    slow = "select pg_sleep(60)" if database == "postgres" else SLOW
    code = f"""
        with connect(), transaction() as t:
            move(t)
            print("slow", flush=True)
            t.query({slow!r})
    """
    script = Script(server, code).until("slow")
    server.until(lambda status: status["databases"]["default"]["running"])
    script.kill()
    at_rest(server)
    if database == "postgres":
        assert not [row for row in postgres.activity() if "pg_sleep" in row["query"] and row["state"] == "active"]
    assert amounts(server) == [100, 100]


def test_a_statement_past_its_deadline_is_cancelled(server: Server, database: str) -> None:
    slow = "select pg_sleep(60)" if database == "postgres" else SLOW
    code = f"""
        with connect():
            try:
                with transaction() as t:
                    move(t)
                    t.query({slow!r}, deadline=0.2)
            except QueryError as error:
                print(error.reason, error.effect)
    """
    assert Script(server, code).end() == "deadline cancelled"
    assert amounts(server) == [100, 100]


def test_a_script_that_is_silent_for_too_long_is_told_so(server: Server) -> None:
    code = """
        with connect():
            try:
                with transaction() as t:
                    move(t)
                    reach("idle")
                    move(t)
            except QueryError as error:
                print(error, "/", error.reason, error.effect)
    """
    script = Script(server, code).until("idle")
    server.until(lambda status: not status["lives"]["parked"], seconds=10)
    told = script.go_on().end()
    assert (
        told == "the transaction was rolled back: it was idle for longer than the server permits / deadline cancelled"
    )
    assert amounts(server) == [100, 100]


def test_a_connection_that_is_closed_rolls_back(server: Server) -> None:
    code = """
        server = connect()
        t = server.transaction().__enter__()
        move(t)
        server.close()
        try:
            move(t)
        except QueryError as error:
            print(error.reason)
    """
    assert Script(server, code).end() == "lost"
    at_rest(server)
    assert amounts(server) == [100, 100]


def test_threads_have_transactions_of_their_own(server: Server, database: str) -> None:
    code = """
        from concurrent.futures import ThreadPoolExecutor
        def pay(amount):
            with transaction() as t:
                return move(t, amount)[0]["amount"]
        with connect():
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(pay, [1] * 12))
            with transaction() as one:
                try:
                    with transaction() as other:
                        pass
                except parkade.WaitError as error:
                    print("one at a time")
    """
    assert Script(server, code).end() == "one at a time"
    assert amounts(server) == [88, 112]


def test_many_rows_come_whole(server: Server) -> None:
    code = """
        numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)"
        sql = numbers + " select i, 'abcdefghijklmnopqrstuvwxyz' as text from n"
        with connect(), transaction() as t:
            rows = t.query(sql)
            print(len(rows), rows[-1]["i"], sum(len(row["text"]) for row in rows))
    """
    assert Script(server, code).end() == "60000 60000 1560000"


def test_jobs_are_stored_when_it_commits_and_not_when_it_does_not(server: Server, folder: Path, database: str) -> None:
    code = """
        with connect() as server:
            with transaction() as t:
                move(t)
                write.enqueue("committed")
                server.enqueue("write", "by its name")
                reach("open")
            try:
                with transaction() as t:
                    write.enqueue("rolled back")
                    server.enqueue("write", "rolled back by its name")
                    raise KeyError
            except KeyError:
                pass
            write.enqueue("after")
    """
    script = Script(server, code).until("open")
    ran = Ran(folder / database)
    assert not ran.about("committed")
    script.go_on().end()
    for line in ("committed", "by its name", "after"):
        ran.until_count(line, 1)
    assert not ran.about("rolled back")
    assert not ran.about("rolled back by its name")


def test_the_transaction_itself_stores_them_where_the_jobs_are(
    serve: Serve, postgres: Postgres, tmp_path: Path
) -> None:
    postgres.psql("drop database if exists shop_scripts")
    postgres.psql("create database shop_scripts")
    postgres.psql("create table orders (line text)", "shop_scripts")
    url = postgres.url_of("shop_scripts", "postgres")
    settings: Any = {"jobs": url, "database": url, "folder": tmp_path, "workers": 1}
    server = serve("jobs_within", environment={"GATES": str(tmp_path)}, **settings)
    code = """
        with connect(), transaction() as t:
            t.query("insert into orders values ('one')")
            write.enqueue("one")
    """
    Script(server, code).end()
    Ran(tmp_path).until_count("one", 1)
    written = [postgres.psql(f"select xmin from {table}", "shop_scripts") for table in ("orders", "parkade.bodies")]
    assert written[0] == written[1], "one transaction has written both"


def test_an_operator_ends_it(server: Server) -> None:
    code = """
        with connect():
            try:
                with transaction() as t:
                    move(t)
                    reach("open")
                    move(t)
            except QueryError as error:
                print(error.reason)
    """
    script = Script(server, code).until("open")
    assert server.admin("POST", f"/requests/{the_script(server)}/cancel")[0] == 202
    assert script.go_on().end() == "operator"
    assert amounts(server) == [100, 100]


def test_a_reload_does_not_disturb_it(server: Server) -> None:
    code = "with connect(), transaction() as t:\n    move(t)\n    reach('open')\n    move(t)\n"
    script = Script(server, code).until("open")
    server.reload()
    script.go_on().end()
    assert amounts(server) == [40, 160]


@pytest.mark.promise(3)
def test_a_server_that_stops_waits_for_it_within_the_grace(serve: Serve, tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path}/shop.db"
    code = """
        with connect() as server:
            with transaction() as t:
                t.query("create table if not exists one (a int)")
                t.query("insert into one values (1)")
                reach("open")
    """
    server = serve("jobs_within", database=database, folder=tmp_path, workers=1, environment={"GATES": str(tmp_path)})
    script = Script(server, code).until("open")
    server.signal(signal.SIGTERM)
    server.until_logged("shutting down")
    script.go_on().end()
    assert server.ended() == 0
    settings: Any = {"database": database, "folder": tmp_path, "grace": 1, "workers": 1}
    server = serve("jobs_within", environment={"GATES": str(tmp_path)}, **settings)
    catch = "except QueryError as error:\n    print(error.reason)\n"
    script = Script(server, "try:" + textwrap.indent(textwrap.dedent(code), "    ") + catch)
    script.until("open")
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert script.go_on().end() == "stopping"
    server = serve("jobs_within", database=database, folder=tmp_path, workers=1, environment={"GATES": str(tmp_path)})
    count = "with connect(), transaction() as t:\n    print(t.query('select count(*) as n from one')[0]['n'])\n"
    assert Script(server, count).end() == "1"


# Who may


TRY = """
    try:
        with connect(sys.argv[1] if len(sys.argv) > 1 else None), transaction() as t:
            print(t.query("select 1 as one")[0]["one"])
    except ConnectError as error:
        print(error)
"""


def test_over_tcp_it_needs_the_token(serve: Serve, tmp_path: Path) -> None:
    database, token = f"sqlite:{tmp_path}/shop.db", "0123456789abcdef0123456789abcdef"
    common: Any = {"database": database, "folder": tmp_path, "workers": 1}
    for writes in ("local", "off", "token"):
        port = free_port()
        environment = {"GATES": str(tmp_path)} | ({"PARKADE_ADMIN_TOKEN": token} if writes == "token" else {})
        own: Any = {"admin": f"127.0.0.1:{port}", "admin_writes": writes, "state": tmp_path / writes}
        server = serve("jobs_within", environment=environment, **common, **own)
        address = f"http://127.0.0.1:{port}"
        assert Script(server, TRY).end() == "1", "by the private socket"
        told = Script(server, TRY, PARKADE_ADMIN=address).end()
        assert {"local": "--admin-writes token", "off": "--admin-writes is off", "token": "401"}[writes] in told
        if writes == "token":
            assert Script(server, TRY, PARKADE_ADMIN=address, PARKADE_ADMIN_TOKEN=token).end() == "1"
            assert "401" in Script(server, TRY, PARKADE_ADMIN=address, PARKADE_ADMIN_TOKEN="wrong" * 7).end()


def test_a_page_cannot_have_one(server: Server) -> None:
    for headers, expected in [
        ({}, 426),
        ({"origin": "null", "upgrade": "parkade-transaction/1"}, 403),
        ({"upgrade": "websocket"}, 426),
    ]:
        code, _ = server.admin("POST", "/transaction", **headers)
        assert code == expected, headers
    assert server.admin("GET", "/transaction")[0] == 405


def test_only_so_many_scripts_have_one_at_a_time(server: Server) -> None:
    def opened() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(server.private))
        connection.sendall(
            b"POST /transaction HTTP/1.1\r\nconnection: upgrade\r\nupgrade: parkade-transaction/1\r\n\r\n"
        )
        connection.settimeout(10)
        return connection

    all_of_them = [opened() for _ in range(64)]
    assert {one.recv(12) for one in all_of_them} == {b"HTTP/1.1 101"}
    server.until(lambda status: status["lives"]["parked"] == 64)
    assert "64 scripts have a transaction already" in Script(server, TRY).end()
    assert server.get("/ready").text == "ready"
    for one in all_of_them:
        one.close()
    at_rest(server)
    assert Script(server, TRY).end() == "1"


# In workers


HOOKS = """
import threading
from parkade import App, query, transaction

app = App()

def note(line):
    with transaction() as t:
        t.query("create table if not exists lines (line text)")
        t.query("insert into lines values ($1)", line)

def note_later():
    for nth in range(3):
        note(f"thread {nth}")

@app.on_start
def begins():
    note("hook")
    threading.Thread(target=note_later).start()

@app.get("/lines")
def lines():
    return query("select line from lines order by line")
"""


def test_hooks_and_threads_of_a_worker_have_transactions_too(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooked.py").write_text(HOOKS)
    database = f"sqlite:{tmp_path}/lines.db"
    server = serve(tmp_path / "hooked.py", database=database, workers=1, state=tmp_path)
    expected = [{"line": line} for line in ("hook", "thread 0", "thread 1", "thread 2")]
    until("the thread is done", lambda: server.get("/lines").json() == expected, told=lambda: server.get("/lines").text)
