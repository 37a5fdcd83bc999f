"""Bad statements, values and results: a clear error with the right fault, and without confidential details."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from .conftest import Serve
from .harness.asking import WAYS, ask, database, left_at_rest, until_settled, value, waiting
from .harness.postgres import GUARDED, Postgres
from .harness.server import Server, run

pytestmark = pytest.mark.also_in_perl

SLOTS = 2

MiB = 1 << 20


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres) -> Server:
    server = serve_for_all("shop_queries", database=postgres.url, database_slots=SLOTS)
    postgres.psql("create table if not exists shop (id int primary key, name text not null check (name <> ''))")
    postgres.psql("insert into shop values (1, 'one') on conflict do nothing")
    return server


@pytest.fixture
def server(shared: Server, postgres: Postgres) -> Iterator[Server]:
    yield from left_at_rest(shared, postgres)


# Statements

SECRET = "s3cret_value"

BAD: dict[str, tuple[str, list[object], int, str]] = {
    "syntax": (f"selec '{SECRET}'", [], 500, "application"),
    "a table that is not there": (f"select '{SECRET}' from nowhere", [], 500, "application"),
    "a column that is not there": (f"select {SECRET} from shop", [], 500, "application"),
    "too few parameters": ("select $1::text, $2::text", [SECRET], 500, "application"),
    "too many parameters": ("select $1::text", [SECRET, SECRET], 500, "application"),
    "types nobody can know": ("select $1 + $2", [1, 2], 500, "application"),
    "a value of the wrong type": ("select $1::int", [SECRET], 400, "client"),
    "a value that is too large": ("select $1::int2", [100_000], 400, "client"),
    "a division by zero": ("select 1 / $1::int", [0], 500, "application"),
    "two columns of one name": ("select 1 as n, 2 as n", [], 500, "application"),
    "several statements": ("select 1; select 2", [], 500, "application"),
    "copy in": ("copy shop from stdin", [], 500, "application"),
    "copy out": ("copy shop to stdout", [], 500, "application"),
    "not unique": ("insert into shop values (1, $1)", [SECRET], 409, "client"),
    "null where there may be none": ("insert into shop values (2, $1)", [None], 400, "client"),
    "against a rule": ("insert into shop values (2, $1)", [""], 400, "client"),
    "an exception": (f"do $$ begin raise exception '{SECRET}'; end $$", [], 500, "application"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_statement_is_a_clear_error_that_does_not_quote_it(server: Server, what: str) -> None:
    sql, parameters, status, fault = BAD[what]
    answer = ask(server, "returned", sql, *parameters)
    told = answer.json()
    assert (answer.status, told["status"], told["fault"]) == (status, status, fault), told
    assert told["effect"] == ("unknown" if what == "copy out" else "none")
    assert set(told) == {"status", "title", "fault", "detail", "effect"}
    assert SECRET not in answer.text
    for way in WAYS[1:]:
        answer = ask(server, way, sql, *parameters)
        assert (answer.status, SECRET in answer.text) == (status, False)
    until_settled(server)
    assert value(server, "select 7") == 7


def test_a_statement_that_is_not_permitted_is_the_operators_fault(serve: Serve, postgres: Postgres) -> None:
    name, password = GUARDED
    url = postgres.url_of(user=f"{name}:{quote(password, safe='')}")
    postgres.psql("create table if not exists closed (n int)")
    server = serve("shop_queries", database=url)
    answer = ask(server, "returned", "select * from closed")
    assert (answer.status, answer.json()["fault"]) == (500, "operator")
    assert "closed" not in answer.text
    server.until_logged("42501.*closed")


def test_the_log_says_what_the_client_is_not_told(server: Server) -> None:
    ask(server, "returned", "select from_nowhere from nowhere_else where $1::text = ''", "a value of a client")
    line = server.until_logged(r"a query failed: .*nowhere_else.*").group()
    assert "42P01" in line
    assert "a value of a client" not in server.log()


def test_a_statement_that_says_nothing_does_nothing(server: Server) -> None:
    assert ask(server, "returned", "-- nothing").json() == {"command": "", "rows": 0}
    assert ask(server, "returned", "").status == 500
    assert ask(server, "returned", "select 7 as n;").json() == [{"n": 7}]


def test_a_connection_that_listens_disturbs_nobody(server: Server, postgres: Postgres) -> None:
    """Only the server's `--listen` counts; a LISTEN of the application's own statement has no effect."""
    for _ in range(SLOTS):
        ask(server, "returned", "listen nobody")
    for n in range(20):
        if n % 5 == 0:
            postgres.psql("notify nobody, 'is told'")
        assert value(server, "select $1::int", n) == n
    ask(server, "returned", "unlisten *")


def test_a_developer_sees_the_statement_and_what_the_database_said(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", command="dev", database=postgres.url)
    told = ask(server, "returned", "select nothing_such").json()
    assert (told["query"], told["sqlstate"]) == ("select nothing_such", "42703")
    assert "nothing_such" in told["message"]
    assert "nothing_such" in ask(server, "awaited", "select nothing_such").text


def test_text_with_a_nul_is_refused_before_it_is_sent(server: Server) -> None:
    answer = server.get("/nul")
    assert 400 <= answer.status <= 500
    assert value(server, "select 7") == 7


@pytest.mark.promise(8)
@pytest.mark.parametrize("way", WAYS)
def test_a_value_over_the_limit_of_a_row_is_an_error_and_not_kept(server: Server, way: str) -> None:
    value(server, "select 1")
    before = server.resident_bytes
    answer = ask(server, way, "select repeat('x', 60 * 1024 * 1024)")
    assert (answer.status, answer.json()["detail"]) == (500, "the result is larger than the server allows")
    until_settled(server)
    assert server.resident_bytes - before < 8 * MiB


def test_a_row_that_would_hold_up_everybody_is_over_the_limit(server: Server) -> None:
    """4 MiB, which take up to 28 ms to be written as JSON."""
    statuses = [ask(server, "returned", f"select repeat('x', {size} * 1024 * 1024)").status for size in (3, 5)]
    assert statuses == [200, 500]


def test_a_parameter_of_sixty_megabytes_is_a_clear_error(server: Server) -> None:
    assert server.get(f"/large-value/{60 << 10}").status == 500
    server.until_logged("a query has at most 1048576 bytes with its parameters")
    server.until_zero()
    assert server.get("/large-value/1000").json() == {"length": 1000 << 10}
    assert len(server.workers("ready", "busy")) == 1


def test_a_row_that_is_broken_in_the_middle_of_a_stream_breaks_it_off(server: Server) -> None:
    """The first rows have been sent, so no status can report the error: the client must not take a part for all."""
    client = waiting(
        server, "returned", 1, "select 1 / (20000 - n) as n, repeat('x', 100) as x from generate_series(1, 30000) n"
    )[0]
    assert client.opening().status == 200
    assert not client.rest().endswith(b"0\r\n\r\n")
    assert value(server, "select 7") == 7


# Credentials

PASSWORD = "hunter2-pass:word"


def test_no_password_is_ever_told(serve: Serve, postgres: Postgres) -> None:
    url = postgres.url_of(user=f"guarded:{quote(PASSWORD, safe='')}")
    server = serve("shop_queries", database=[f"default={url}"], log_level="debug")
    answer = ask(server, "returned", "select 1")
    server.until(lambda status: status["databases"]["default"]["state"] == "denied")
    told = [
        answer.text,
        json.dumps(server.status()),
        server.metrics(),
        server.admin("GET", "/health/ready")[1].decode(),
    ]
    ask(server, "awaited", "select broken")
    for text in [*told, server.log()]:
        assert "hunter2" not in text


@pytest.mark.parametrize(
    "refused",
    [
        f"mysql://root:{PASSWORD}@127.0.0.1/shop",
        f"postgres://root:{PASSWORD}@127.0.0.1:99999/shop",
        f"postgres://root:{PASSWORD}@127.0.0.1/shop?sslmode=perhaps",
        f"postgres://root:{PASSWORD}@127.0.0.1/shop?pasword={PASSWORD}",
        f"two words=postgres://root:{PASSWORD}@127.0.0.1/shop",
    ],
)
def test_a_database_that_is_refused_is_not_repeated(refused: str) -> None:
    ended = run(
        "serve", str(Path(__file__).parent / "apps" / "basic.py"), "--bind", "127.0.0.1:0", "--database", refused
    )
    assert ended.returncode != 0
    assert ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


def test_help_does_not_show_what_the_environment_holds() -> None:
    ended = run("serve", "--help", PARKADE_DATABASE=f"postgres://root:{PASSWORD}@127.0.0.1/shop")
    assert "--database" in ended.stdout
    assert "hunter2" not in ended.stdout


def test_a_check_of_the_settings_does_not_show_it_either(tmp_path: Path) -> None:
    url = f"postgres://root:{PASSWORD}@127.0.0.1/shop"
    app = str(Path(__file__).parent / "apps" / "shop_queries.py")
    (tmp_path / "parkade.toml").write_text(f'database = ["{url}"]\ndatabase-slots = 0\n')
    told = [
        run("serve", app, "--check", "--bind", "127.0.0.1:0", PARKADE_DATABASE=url),
        run("serve", app, "--check", "--bind", "127.0.0.1:0", "--database-slots", "0", PARKADE_DATABASE=url),
        run("serve", app, "--check", "--bind", "127.0.0.1:0", "--config", tmp_path / "parkade.toml"),
    ]
    assert [ended.returncode == 0 for ended in told] == [True, False, False]
    assert "hunter2" not in "".join(ended.stdout + ended.stderr for ended in told)


@pytest.fixture(params=[4096, 100_000], ids="{} rounds".format)
def guarded(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[tuple[str, str]]:
    """A role whose password takes this many rounds to prove."""
    name, password = GUARDED
    postgres.psql(f"alter role {name} password '{scram_verifier(password, request.param)}'")
    yield GUARDED
    postgres.psql(f"alter role {name} password '{password}'")


def scram_verifier(password: str, rounds: int) -> str:
    """The form in which PostgreSQL stores a password (RFC 5802, section 3)."""
    salt = b"sixteen bytes :)"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    texts = [base64.b64encode(part).decode() for part in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    return f"SCRAM-SHA-256${rounds}:{texts[0]}${texts[1]}:{texts[2]}"


def test_a_password_that_is_right_lets_in(serve: Serve, postgres: Postgres, guarded: tuple[str, str]) -> None:
    name, password = guarded
    server = serve("shop_queries", database=postgres.url_of(user=f"{name}:{quote(password, safe='')}"))
    assert value(server, "select current_user") == name


def test_a_password_that_is_wrong_is_the_operators_fault(serve: Serve, postgres: Postgres) -> None:
    server = serve("shop_queries", database=postgres.url_of(user="guarded:wrong"))
    answer = ask(server, "returned", "select 1")
    assert (answer.status, answer.json()["fault"]) == (503, "operator")
    assert "retry-after" in answer
    assert database(server)["state"] == "denied"
    assert "password" in database(server)["why"]
    code, told = server.admin("GET", "/health/ready")
    assert (code, "default" in json.loads(told)["reason"]) == (503, True)


# Sessions

CHANGES = [
    "set datestyle to 'German'",
    "set time zone 'Asia/Tokyo'",
    "set client_encoding to 'LATIN1'",
    "set default_transaction_read_only to on",
    "set search_path to nowhere",
    "create temp table left_behind (a int)",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_session_that_was_changed_is_nobody_elses(serve: Serve, postgres: Postgres, change: str) -> None:
    server = serve("shop_queries", database=postgres.url, database_slots=1)
    postgres.psql("create table if not exists shop (id int primary key, name text not null check (name <> ''))")
    shown = "select '2026-11-22 03:04:05+00'::timestamptz || chr(233)"
    before = value(server, "select current_setting('search_path')"), value(server, shown)
    assert ask(server, "returned", change).status == 200
    assert (value(server, "select current_setting('search_path')"), value(server, shown)) == before
    assert value(server, "select to_regclass('pg_temp.left_behind')::text is null") is True
    assert value(server, "with a as (insert into shop values (-1, 'x') returning id) select id from a") == -1
    assert ask(server, "returned", "delete from shop where id = -1").status == 200
