"""The five applications that a newcomer writes in the first hour: each is short, strictly typed, and does what it says.

They use only what the documentation describes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.checkers import CHECKERS, complaints
from .harness.client import Answer
from .harness.postgres import Postgres
from .harness.server import APPS, Server
from .harness.until import until

HOUR = APPS / "first_hour"
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
LINES_MAX = 150


def start(serve: Serve, name: str, environment: dict[str, str] | None = None, **settings: object) -> Server:
    return serve(HOUR / f"{name}.py", environment=environment, **settings)


def multipart(name: str, *files: tuple[str, bytes]) -> tuple[bytes, str]:
    head = 'Content-Disposition: form-data; name="{}"; filename="{}"'
    parts = [f"--b\r\n{head.format(name, file)}\r\n\r\n".encode() + body for file, body in files]
    return b"\r\n".join([*parts, b"--b--\r\n"]), "Content-Type: multipart/form-data; boundary=b"


# All of them


@pytest.mark.parametrize("name", ["chat", "dashboard", "notes", "quotes", "thumbnails"])
def test_each_is_short(name: str) -> None:
    assert len((HOUR / f"{name}.py").read_text().splitlines()) < LINES_MAX


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_strict_checkers_have_nothing_to_say(checker: str, tmp_path: Path) -> None:
    shutil.copytree(HOUR, tmp_path, dirs_exist_ok=True)
    assert complaints(checker, tmp_path) == ""


# Chat


def line(author: str, text: str) -> bytes:
    return json.dumps({"author": author, "text": text}).encode()


def test_a_chat_reaches_all_who_wait_and_keeps_what_was_said(serve: Serve) -> None:
    server = start(serve, "chat", workers=2)
    assert server.get("/rooms/lobby/lines").json() == []
    events, poll = server.events("/rooms/lobby/stream"), server.connect().ask("GET", "/rooms/lobby/next")
    server.until_parked(2)
    assert server.post("/rooms/lobby", line("Ana", "hola"), JSON).status == 202
    assert server.post("/rooms/lobby", line("Bo", "hey"), JSON).status == 202
    first = poll.answer()
    assert first.json() == {"author": "Ana", "text": "hola"}
    assert [json.loads(data)["author"] for data in events.data(2)] == ["Ana", "Bo"]
    assert [told["text"] for told in server.get("/rooms/lobby/lines").json()] == ["hola", "hey"]
    missed = server.get("/rooms/lobby/next", f"If-None-Match: {first['etag']}")
    assert missed.json() == {"author": "Bo", "text": "hey"}
    assert server.get("/rooms/garden/lines").json() == []
    assert "EventSource" in server.get("/").text


@pytest.mark.parametrize("room", ["a" * 300, "a%0ab", "a%2fb"])
def test_a_chat_has_no_room_with_a_strange_name(serve: Serve, room: str) -> None:
    server = start(serve, "chat")
    assert server.post(f"/rooms/{room}", line("Ana", "hola"), JSON).status == 422
    assert server.post("/rooms/lobby", line("", "hola"), JSON).status == 422
    assert server.post("/rooms/lobby", line("Ana", "hola"), FORM).status == 415


# Dashboard

SCHEMA = """
    drop table if exists sales, accounts;
    create table sales (id int generated always as identity primary key, product text not null,
                        amount numeric(10, 2) not null, sold timestamptz not null default now());
    insert into sales (product, amount) values ('lamp', 20), ('lamp', 22.50), ('chair', 70);
    create table accounts (name text primary key, balance numeric(10, 2) not null check (balance >= 0));
    insert into accounts values ('ana', 100), ('bo', 5);
"""


@pytest.fixture
def dashboard(serve: Serve, postgres: Postgres) -> Server:
    with postgres.connected() as connection:
        connection.execute(SCHEMA)
    return start(serve, "dashboard", database=postgres.url)


def test_a_dashboard_shows_what_is_in_the_database(dashboard: Server) -> None:
    assert dashboard.get("/products").json()[0] == {"product": "chair", "orders": 1, "revenue": "70.00"}
    assert dashboard.get("/products?since=2999-01-01").json() == []
    assert dashboard.get("/products/lamp").json() == {"product": "lamp", "revenue": "42.50"}
    assert dashboard.get("/products/nothing").status == 404
    best = {"product": "chair", "orders": 1, "revenue": "70.00"}
    assert dashboard.get("/overview").json() == {"best": best, "sales": 3, "balance": "105.00"}
    page = dashboard.get("/")
    assert "<td>lamp<td>2<td>42.50" in page.text
    assert (page["cache-control"], "<td>total<td><td>112.50" in page.text) == ("no-store", True)
    assert dashboard.get("/export.csv").text.splitlines()[0].startswith("lamp,20.00,20")


def test_a_sale_reaches_those_who_watch(dashboard: Server) -> None:
    events = dashboard.events("/sales/stream")
    dashboard.until_parked(1)
    sold = dashboard.post("/sales", b"product=desk&amount=199.95", FORM)
    assert (sold.status, sold.json()) == (201, {"id": 4})
    assert json.loads(events.data(1)[0]) == {"product": "desk", "amount": "199.95"}
    assert dashboard.post("/sales", b"product=desk&amount=-1", FORM).status == 422


def transfer(server: Server, payer: str, payee: str, amount: str) -> Answer:
    answer: Answer = server.post(
        "/transfers", json.dumps({"payer": payer, "payee": payee, "amount": amount}).encode(), JSON
    )
    return answer


def test_a_transfer_changes_both_accounts_or_neither(dashboard: Server) -> None:
    def balances() -> Any:
        return [(row["name"], row["balance"]) for row in dashboard.get("/accounts").json()]

    assert transfer(dashboard, "ana", "bo", "30.50").status == 204
    assert balances() == [("ana", "69.50"), ("bo", "35.50")]
    assert transfer(dashboard, "bo", "ana", "1000").status == 409
    assert transfer(dashboard, "bo", "nobody", "1").status == 404
    assert balances() == [("ana", "69.50"), ("bo", "35.50")]


def test_an_analysis_ends_in_the_database_with_its_tab(dashboard: Server, postgres: Postgres) -> None:
    tab = dashboard.connect().ask("GET", "/analysis?seconds=50")
    until("it runs", lambda: any("pg_sleep" in one["query"] for one in postgres.active()))
    tab.close()
    postgres.until_idle()
    dashboard.until_zero()


# Thumbnails


def picture(columns: int, rows: int) -> bytes:
    return b"P6\n%d %d\n255\n" % (columns, rows) + bytes(range(columns)) * 3 * rows


@pytest.fixture
def thumbnails(serve: Serve, tmp_path: Path) -> Server:
    return start(serve, "thumbnails", {"THUMBNAILS": str(tmp_path / "made"), "ROW_SECONDS": "0.02"}, job_workers=2)


def test_a_thumbnail_is_made_while_its_client_waits(thumbnails: Server, tmp_path: Path) -> None:
    body, kind = multipart("picture", ("../../evil.ppm", picture(40, 20)))
    made = thumbnails.post("/picture?width=10", body, kind)
    assert made.status == 201
    assert made.json() | {"id": ""} == {"id": "", "title": "one", "width": 10, "height": 5}
    assert thumbnails.get(made["location"]).body.startswith(b"P6 10 5 255\n")
    assert {file.name for file in tmp_path.iterdir()} == {"made"}, "no file is where its client wants it"
    assert thumbnails.get("/pictures/01890000-0000-7000-8000-000000000000").status == 404


def test_several_pictures_are_followed_retried_refused_and_cancelled(thumbnails: Server) -> None:
    files = [
        ("fine.ppm", picture(8, 4)),
        ("flaky.ppm", picture(8, 4)),
        ("none.txt", b"text"),
        ("big.ppm", picture(90, 900)),
    ]
    answer = thumbnails.post("/pictures?width=90", *multipart("pictures", *files))
    assert answer.status == 202
    fine, flaky, broken, big = answer.json()
    assert thumbnails.get(fine, "Prefer: wait=20").json()["title"] == "fine"
    assert thumbnails.get(flaky, "Prefer: wait=20").json()["title"] == "flaky"
    assert thumbnails.get(broken, "Prefer: wait=20").status == 500
    with thumbnails.events(big) as events:
        told = next(told for told in map(json.loads, events.data(20)) if told["state"] == "running" and told["text"])
    assert told["text"].endswith("of 900")
    assert thumbnails.connect().ask("DELETE", big).answer().status in (200, 202, 204)
    assert thumbnails.get(big, "Prefer: wait=20").status == 410
    assert thumbnails.post("/tidy").json() == {"removed": 0}


# Notes


@pytest.fixture
def notes(serve: Serve, tmp_path: Path) -> Server:
    with closing(sqlite3.connect(tmp_path / "notes.db")) as database:
        database.execute("create table notes (id integer primary key, owner text, title text, text text, colour text)")
    return start(serve, "notes", database=f"sqlite:///{tmp_path}/notes.db")


def log_in(server: Server, user: str) -> str:
    answer = server.post("/login", f"user={user}".encode(), FORM)
    assert (answer.status, answer["location"]) == (303, "/notes")
    return f"Cookie: {answer['set-cookie'].partition(';')[0]}"


def test_notes_belong_to_users(notes: Server) -> None:
    ana, bo = log_in(notes, "ana"), log_in(notes, "bo")
    made = notes.post("/notes", b'{"title": "milk", "colour": "blue"}', JSON, ana)
    assert (made.status, made["location"]) == (201, "/notes/1")
    assert notes.get("/notes/1", ana).json()["title"] == "milk"
    assert [note["id"] for note in notes.get("/notes?colour=blue", ana).json()] == [1]
    assert notes.get("/notes?colour=yellow", ana).json() == notes.get("/notes", bo).json() == []
    assert (notes.get("/notes/1", bo).status, notes.get("/notes").status) == (404, 401)
    assert notes.get("/notes", "Cookie: session=ana.forged").status == 401
    assert notes.get("/notes/", ana)["location"] == "/notes"
    assert [notes.connect().ask("DELETE", "/notes/1", who).answer().status for who in (bo, ana)] == [404, 204]
    assert "max-age=0" in notes.post("/logout", b"", ana)["set-cookie"].lower()


def test_notes_are_validated(notes: Server) -> None:
    ana = log_in(notes, "ana")
    wrong = notes.post("/notes", b'{"title": "", "colour": "green"}', JSON, ana)
    assert wrong.status == 422
    assert "title" in wrong.text
    assert "colour" in wrong.text
    assert notes.get("/notes?limit=0", ana).status == 422
    assert notes.post("/login", b"user=ana&next=//elsewhere.example", FORM).status == 400


def test_notes_go_in_and_out_as_files(notes: Server) -> None:
    ana = log_in(notes, "ana")
    assert notes.post("/notes/import", *multipart("files", ("a", b"one"), ("b", b"two")), ana).json() == {"imported": 2}
    exported = notes.get("/notes/export.jsonl", ana).text.splitlines()
    assert [json.loads(line)["text"] for line in exported] == ["one", "two"]


def test_an_error_is_a_page_for_people_and_json_for_programs(notes: Server) -> None:
    assert "Nothing is at /&lt;b&gt;" in notes.get("/%3Cb%3E", "Accept: text/html").text
    assert notes.get("/nowhere").json() == {"error": "no route matches this path"}


# Quotes


@pytest.fixture
def quotes(serve: Serve) -> tuple[Server, Server]:
    """The application, and the server of its suppliers."""
    pytest.importorskip("httpx")
    suppliers = start(serve, "quotes")
    host, port = suppliers.address
    return start(serve, "quotes", {"SUPPLIERS": f"http://{host}:{port}"}), suppliers


def test_fifty_suppliers_are_asked_at_once(quotes: tuple[Server, Server]) -> None:
    server, _ = quotes
    found = server.get("/quotes/lamp").json()
    assert len(found) == 50
    assert found == sorted(found, key=lambda quote: quote["cents"])
    assert server.get("/quotes/unicorn").status == 502


def test_who_leaves_takes_all_requests_to_suppliers_along(quotes: tuple[Server, Server]) -> None:
    server, suppliers = quotes
    client = server.connect().ask("GET", "/quotes/lamp?seconds=60")
    suppliers.until_parked(50)
    client.close()
    suppliers.until_zero()
    server.until_zero()


def test_a_race_and_a_timeout_abandon_the_slow(quotes: tuple[Server, Server]) -> None:
    server, suppliers = quotes
    assert server.get("/quick/lamp").json()["supplier"] == "fast"
    assert server.get("/patient/lamp").status == 504
    suppliers.until_zero()


def test_a_coroutine_waits_for_a_message_and_then_for_a_supplier(quotes: tuple[Server, Server]) -> None:
    server, _ = quotes
    watching = server.connect().ask("GET", "/watched/lamp")
    server.until_parked(1)
    assert server.post("/prices/lamp").status == 204
    assert watching.answer()["x-changed"] == "yes"
    assert server.get("/watched/lamp")["x-changed"] == "no"
