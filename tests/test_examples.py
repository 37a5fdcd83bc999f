"""Every example starts and does what its README says."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.checkers import CHECKERS, complaints
from .harness.client import Answer
from .harness.ports import free_port
from .harness.postgres import Postgres
from .harness.server import ROOT, Server, run
from .harness.until import BUSY, Stopwatch, until
from .harness.websocket import handshake, opened

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/app.py"))
AUCTIONS = ["auction", "auction_django", "auction_fastapi", "auction_flask"]
TRIED = {*AUCTIONS, "bookshop", "cancelled_query", "chat", "deferred_log", "delayed_echo", "demo", "hola", "report"}
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"


def example(serve: Serve, name: str, application: str = "", **settings: object) -> Server:
    return serve(f"{ROOT}/examples/{name}/app.py{application}", **settings)


def test_every_example_is_tried_here() -> None:
    assert set(EXAMPLES) >= TRIED
    assert set(EXAMPLES) <= TRIED, "a new example needs a test of its own"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_strict_checkers_have_nothing_to_say(checker: str, tmp_path: Path) -> None:
    for name in EXAMPLES:  # the bookshop alone has modules, which it imports from its folder
        folder = tmp_path if name == "bookshop" else tmp_path / name
        if name == "auction_django":  # Django comes without types
            continue
        shutil.copytree(ROOT / "examples" / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
    assert complaints(checker, tmp_path) == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_a_readme_and_loads(name: str, tmp_path: Path) -> None:
    readme = (ROOT / "examples" / name / "README.md").read_text()
    assert f"parkade serve examples/{name}/app.py" in readme
    words = ["--check", "--bind", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    assert run("serve", f"{ROOT}/examples/{name}/app.py", *words).returncode == 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_example_names_another_machine(name: str) -> None:
    for file in (ROOT / "examples" / name).rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            text = file.read_text()
            assert "https://" not in text.replace("https://github.com", ""), file


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"hola", "deferred_log"}))
def test_pages_of_examples_share_one_stylesheet(name: str, serve: Serve, tmp_path: Path) -> None:
    path = "/books" if name == "bookshop" else "/"
    database = f"sqlite:///{tmp_path}/shop.db"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript((ROOT / "examples/bookshop/schema.sql").read_text())
    server = example(serve, name, database=database)
    page = server.get(path)
    assert page.status == 200
    assert "<style>" not in page.text
    sheet = next(part for part in page.text.split('"') if part.endswith("style.css"))
    assert server.get(sheet).text == (ROOT / "examples/style.css").read_text()


# What it takes to read WCAG's AA: https://www.w3.org/TR/WCAG22/#contrast-minimum
CONTRAST_MIN = 4.5


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_texts_of_pages_can_be_read(mode: int) -> None:
    """Also those of buttons that are disabled, which are `--soft`."""
    palette = re.findall(r":root \{(.*?)\}", (ROOT / "examples/style.css").read_text(), re.DOTALL)[mode]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", palette))
    for text, ground in [
        *((text, ground) for text in ("ink", "soft", "accent", "good", "bad") for ground in ("paper", "card")),
        ("ink", "code"),
        ("on-accent", "accent"),
    ]:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= CONTRAST_MIN, (text, ground)


# Hola


def test_hola_greets_in_three_ways(serve: Serve) -> None:
    server = example(serve, "hola")
    assert server.get("/hola").text == "Hola"
    assert server.get("/hola/Jos%C3%A9").text == "Hola José"
    assert (server.post("/hola/Ana").status, server.get("/nobody").status) == (405, 404)
    assert server.status()["workers"][0]["requests"] == 1, "a constant needs no worker"
    assert example(serve, "hola", ":coroutines").get("/hola/Ana").text == "Hola Ana"


# Bookshop


def cookie_of(answer: Answer) -> str:
    return answer["set-cookie"].partition(";")[0]


def test_the_bookshop_sells_to_users(serve: Serve, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript((ROOT / "examples/bookshop/schema.sql").read_text())
    server = example(serve, "bookshop", database=f"sqlite:///{tmp_path}/shop.db")
    assert (server.get("/")["location"], server.get("/books/")["location"]) == ("/books", "/books")
    assert "Patience, 12.00 €" in server.get("/books").text
    assert server.get("/books/2").json() == {"id": 2, "title": "The Waiting Room", "price": 900}
    assert "Nothing is at /nowhere." in server.get("/nowhere").text
    assert server.get("/orders")["location"] == "/login?next=/orders"
    assert "Log in first" in server.post("/orders", b"book=1", FORM).text
    assert server.post("/login", b"name=Ana&next=//elsewhere.example", FORM).status == 400
    login = server.post("/login", b"name=Ana&next=/orders", FORM)
    assert (login.status, login["location"]) == (303, "/orders")
    cookie = f"Cookie: {cookie_of(login)}"
    assert server.post("/orders", b"book=1", FORM, cookie)["location"] == "/orders"
    assert server.post("/orders", b"book=3", FORM, cookie).status == 404
    until("the book is sent", lambda: "Patience: sent" in server.get("/orders", cookie).text)
    assert cookie_of(server.post("/logout", b"", cookie)) == "user="


# Delayed echo


def test_two_hundred_delayed_echoes_come_together_after_two_seconds(serve: Serve) -> None:
    server = example(serve, "delayed_echo", workers=1)
    watch = Stopwatch()
    clients = server.waiting("/echo?field=%3Chola%3E", 200)
    status = server.until_parked(200)
    assert (status["lives"]["running"], status["waits"]["timer"]["count"]) == (0, 200)
    assert {worker["state"] for worker in status["workers"]} == {"ready"}
    answers = [client.answer() for client in clients]
    assert 2.0 <= watch.seconds < 2.0 + BUSY
    assert {answer.status for answer in answers} == {200}
    assert all("You said: &lt;hola&gt;" in answer.text for answer in answers)


def test_the_form_comes_at_once_and_too_much_is_422(serve: Serve) -> None:
    server = example(serve, "delayed_echo")
    for target in ("/", "/echo"):
        answer = server.get(target)
        assert (answer.status, "<form" in answer.text) == (200, True)
    assert server.get("/echo?field=" + "x" * 1_001).status == 422


def test_who_leaves_before_the_echo_is_forgotten(serve: Serve) -> None:
    server = example(serve, "delayed_echo")
    clients = server.waiting("/echo?field=x", 50)
    server.until_parked(50)
    for client in clients:
        client.close()
    server.until_zero(1.5)


# Auction


def bid(server: Server, bidder: str, amount: object, path: str = "/auction/7") -> int:
    status: int = server.post(path, json.dumps({"bidder": bidder, "amount": amount}).encode(), JSON).status
    return status


@pytest.mark.parametrize("name", AUCTIONS)
def test_a_bid_reaches_polls_and_streams(serve: Serve, name: str) -> None:
    server = example(serve, name, workers=2)
    script = server.get("/auction.js")
    assert script["content-type"] == "text/javascript; charset=utf-8"
    assert server.get("/auction.js", f"If-None-Match: {script['etag']}").status == 304
    assert "<form" in server.get("/").text
    streams = [server.events("/auction/7/bids") for _ in range(2)]
    poll = server.connect().ask("GET", "/auction/7/next")
    server.until_parked(3)
    assert bid(server, "Ana", 10) == 202
    answer = poll.answer()
    assert answer.json() == {"bidder": "Ana", "amount": 10}
    assert bid(server, "Ben", 20) == 202
    following = server.get("/auction/7/next", f"If-None-Match: {answer['etag']}")
    assert following.json() == {"bidder": "Ben", "amount": 20}
    for stream in streams:
        assert [json.loads(data)["amount"] for data in stream.data(2)] == [10, 20]


@pytest.mark.parametrize("name", AUCTIONS)
def test_who_comes_late_gets_the_bids_that_are_held(serve: Serve, name: str) -> None:
    server = example(serve, name)
    for amount in range(10, 60, 10):
        assert bid(server, "Ana", amount) == 202
    late = server.events("/auction/7/bids")
    assert [json.loads(data)["amount"] for data in late.data(5)] == [10, 20, 30, 40, 50]


@pytest.mark.parametrize("name", AUCTIONS)
def test_nonsense_is_no_bid(serve: Serve, name: str) -> None:
    server = example(serve, name)
    assert [bid(server, "Ben", amount) for amount in ("much", 0, 1_000_001, None)] == [422] * 4
    assert bid(server, "", 10) == 422
    assert server.post("/auction/7", b"{", JSON).status == (422 if name == "auction_fastapi" else 400)
    assert server.status()["counts"]["published"] == 0


# Chat


def test_what_one_says_is_heard_by_everybody_in_the_room(serve: Serve) -> None:
    server = example(serve, "chat", workers=2)
    assert server.get("/chat.js").status == 200
    ana, ben, eve = (
        opened(server, f"/rooms/{room}?name={name}") for name, room in (("Ana", 7), ("Ben", 7), ("Eve", 8))
    )
    server.until(lambda status: status["waits"]["socket"]["count"] == 3)
    ana.send('{"text": "hola"}')
    ben.send('{"text": "J\u00fcrgen?"}')
    for client in (ana, ben):
        heard = [json.loads(client.receive()) for _ in range(2)]
        assert sorted(told["name"] for told in heard) == ["Ana", "Ben"]
    late = opened(server, "/rooms/7?name=Late")
    assert sorted(json.loads(late.receive())["text"] for _ in range(2)) == ["J\u00fcrgen?", "hola"]
    eve.send("nonsense")
    assert eve.closed()[0] == 1007
    assert [client.close()[0] for client in (ana, ben, late)] == [1000] * 3


@pytest.mark.parametrize("query", ["", "?name=", f"?name={'x' * 41}"])
def test_nobody_without_a_name_is_let_into_the_room(serve: Serve, query: str) -> None:
    server = example(serve, "chat")
    with server.connect() as client:
        assert client.send(handshake(f"/rooms/7{query}")).answer().status == 422


# Demo


def test_the_demo_shows_its_page_and_the_numbers_of_the_core(serve: Serve) -> None:
    port = free_port()
    server = example(serve, "demo", admin=f"127.0.0.1:{port}", environment={"DEMO_ADMIN": f"127.0.0.1:{port}"})
    page = server.get("/")
    assert (page.status, page["content-type"]) == (200, "text/html; charset=utf-8")
    for asset in ("style.css", "page.css", "page.js"):
        path = next(part for part in page.text.split('"') if part.endswith(asset))
        assert server.get(path).status == 200
    echo = server.connect().ask("GET", "/echo?word=ol%C3%A1")
    stream = server.events("/auction")
    server.until_parked(2)
    numbers = server.get("/numbers").json()
    assert (numbers["parked"], numbers["running"]) == (2, 0)
    assert not any(worker["busy"] for worker in numbers["workers"])
    assert bid(server, "Ana", 10, "/auction") == 202
    assert json.loads(stream.data(1)[0]) == {"bidder": "Ana", "amount": 10}
    assert echo.answer().text == "You said: olá"


def test_pages_of_other_origins_may_ask_the_demo_for_echoes_and_for_nothing_else(serve: Serve) -> None:
    server = example(serve, "demo")
    for path, origin in (("/here", ["*"]), ("/echo?word=hey", ["*"]), ("/", [])):
        answer = server.get(path, "Origin: http://127.0.0.1:8000")
        assert answer.all("access-control-allow-origin") == origin, path
    assert server.get("/echo?word=hey")["cache-control"] == "no-store"


def test_the_cars_of_the_demo_are_washed_while_no_worker_is_busy(serve: Serve) -> None:
    port = free_port()
    server = example(serve, "demo", admin=f"127.0.0.1:{port}", environment={"DEMO_ADMIN": f"127.0.0.1:{port}"})
    assert server.post("/wash?cars=0").status == 422
    *_, last = server.post("/wash?cars=4").json()["jobs"]
    server.until(lambda status: status["jobs"]["parked"] == 3)
    numbers = server.get("/numbers").json()
    assert numbers["parked"] == 3
    assert not any(worker["busy"] for worker in numbers["workers"])
    states = [json.loads(data) for data in server.events(f"/jobs/{last}").data(6)]
    assert [told.get("text") for told in states if told["state"] == "running"][-1] == "being dried"
    assert server.get(f"/jobs/{last}", "Prefer: wait=10").text == "Car 4 is clean."
    # The core counts the jobs in its store once a second.
    until("they are counted", lambda: server.get("/numbers").json()["jobs"]["completed"] == 4)


def test_make_demo_serves_the_demo() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "examples/demo/app.py" in makefile
    assert Path(ROOT / "examples" / "demo" / "page.html").exists()


# Cancelled query


def test_a_query_ends_in_the_database_when_its_client_leaves(serve: Serve, postgres: Postgres) -> None:
    server = example(serve, "cancelled_query", database=postgres.url)
    assert "<table" in server.get("/").text
    until("what other tests ran has ended", lambda: server.get("/running").json() == [])
    client = server.connect().ask("GET", "/slow?seconds=60")
    running = until("it runs", lambda: server.get("/running").json())
    assert "pg_sleep" in running[0]["query"]
    assert server.status()["counts"]["parked"] >= 1
    client.close()
    until("it has gone", lambda: server.get("/running").json() == [])
    postgres.until_idle()


def test_the_others_of_the_cancelled_query(serve: Serve, postgres: Postgres) -> None:
    server = example(serve, "cancelled_query", database=postgres.url)
    assert "It ended at" in server.get("/report?seconds=0").text
    clients = [server.connect().ask("GET", "/shared?seconds=0.5") for _ in range(20)]
    assert len({client.answer().text for client in clients}) == 1, "one execution for all"
    assert server.get("/slow?seconds=99999").status == 422


# Deferred log


def lines(server: Server) -> object:
    return server.get("/log").json()


def test_a_line_is_written_behind_its_answer(serve: Serve, tmp_path: Path) -> None:
    server = example(serve, "deferred_log", folder=tmp_path)
    assert server.post("/log", b"It was a dark\nand stormy night").text == "Doobie Doo"
    until("it is written", lambda: lines(server) == {"lines": 1, "again": 0})
    id, _, line = (tmp_path / "deferred.log").read_text().partition(" ")
    assert (len(id), line) == (36, "It was a dark and stormy night\n")
    assert server.post("/log", b"x" * 1_001).status == 422
    assert server.post("/log?seconds=61", b"x").status == 422


def test_what_was_answered_is_written_though_the_server_is_killed(serve: Serve, tmp_path: Path) -> None:
    server = example(serve, "deferred_log", folder=tmp_path, workers=2)
    for number in range(20):
        assert server.post("/log?seconds=0.1", f"line {number}".encode()).text == "Doobie Doo"
    server.kill()
    again = example(serve, "deferred_log", folder=tmp_path, workers=2)
    until("all are written", lambda: again.get("/log").json()["lines"] == 20)


# Report


def test_who_waits_gets_the_report(serve: Serve) -> None:
    server = example(serve, "report", workers=2, environment={"REPORT_SECONDS": "0.2"})
    assert "<progress" in server.get("/").text
    report = server.post("/reports/2026").json()
    assert (report["year"], len(report["sales"])) == (2026, 12)
    assert report["total"] == sum(amount for _, amount in report["sales"])
    assert server.post("/reports/1066").status == 422
    assert server.post("/reports/2026?timeout=1e300").status == 200


def test_who_cannot_wait_for_the_report_comes_back_for_it(serve: Serve) -> None:
    server = example(serve, "report", workers=2, environment={"REPORT_SECONDS": "2"})
    submitted = server.post("/reports/2026", b"", "Prefer: wait=0")
    place = submitted["location"]
    assert (submitted.status, place) == (202, f"/jobs/{submitted.json()['id']}")
    told = [json.loads(server_sent) for server_sent in server.events(place).data(2)]
    assert told[-1]["state"] == "running"
    assert 0 <= told[-1]["fraction"] < 1
    report = server.get(place, "Prefer: wait=10")
    assert (report.status, report.json()["year"]) == (200, 2026)
    assert server.get(place).json() == report.json(), "it is kept"


def test_a_report_that_nobody_wants_ends(serve: Serve) -> None:
    server = example(serve, "report", workers=2)
    place = server.post("/reports/2026", b"", "Prefer: wait=0")["location"]
    until("it runs", lambda: server.get(place).json()["state"] == "running")
    with server.connect() as client:
        assert client.ask("DELETE", place).answer().status in (200, 202)
    until("it has ended", lambda: server.get(place).status == 410)
    server.until(lambda status: all(worker["state"] == "ready" for worker in status["workers"]))
    assert server.status()["counts"]["workers_killed"] == {}, "it looked whether it was to end"
