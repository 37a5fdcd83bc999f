"""Every example is started and does what its README says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.postgres import Postgres
from .harness.server import ROOT, Server, free_port, run
from .harness.until import Stopwatch, until

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/app.py"))
TRIED = {"auction", "cancelled_query", "delayed_echo", "demo", "hola"}
JSON = "Content-Type: application/json"


def example(serve: Serve, name: str, application: str = "", **settings: object) -> Server:
    return serve(f"{ROOT}/examples/{name}/app.py{application}", **settings)


def test_every_example_is_tried_here() -> None:
    assert set(EXAMPLES) >= TRIED
    assert set(EXAMPLES) <= TRIED, "a new example needs a test of its own"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_a_readme_and_loads(name: str) -> None:
    readme = (ROOT / "examples" / name / "README.md").read_text()
    assert f"parkade serve examples/{name}/app.py" in readme
    assert run("serve", f"{ROOT}/examples/{name}/app.py", "--check").returncode == 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_example_names_another_machine(name: str) -> None:
    for file in (ROOT / "examples" / name).iterdir():
        if file.is_file():
            text = file.read_text()
            assert "https://" not in text.replace("https://github.com", ""), file


# Hola


def test_hola_greets_in_three_ways(serve: Serve) -> None:
    server = example(serve, "hola")
    assert server.get("/hola").text == "Hola"
    assert server.get("/hola/Jos%C3%A9").text == "Hola José"
    assert (server.post("/hola/Ana").status, server.get("/nobody").status) == (405, 404)
    assert server.status()["workers"][0]["requests"] == 1, "a constant needs no worker"
    assert example(serve, "hola", ":coroutines").get("/hola/Ana").text == "Hola Ana"


# Delayed echo


def test_two_hundred_delayed_echoes_come_together_after_two_seconds(serve: Serve) -> None:
    server = example(serve, "delayed_echo", workers=1)
    watch = Stopwatch()
    clients = server.waiting("/echo?field=%3Chola%3E", 200)
    status = server.until_parked(200)
    assert (status["lives"]["running"], status["waits"]["timer"]["count"]) == (0, 200)
    assert {worker["state"] for worker in status["workers"]} == {"ready"}
    answers = [client.answer() for client in clients]
    assert 2.0 <= watch.seconds < 3.5
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


def test_a_bid_reaches_polls_and_streams(serve: Serve) -> None:
    server = example(serve, "auction", workers=2)
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


def test_who_comes_late_gets_the_bids_that_are_held(serve: Serve) -> None:
    server = example(serve, "auction")
    for amount in range(10, 60, 10):
        assert bid(server, "Ana", amount) == 202
    late = server.events("/auction/7/bids")
    assert [json.loads(data)["amount"] for data in late.data(5)] == [10, 20, 30, 40, 50]


def test_nonsense_is_no_bid(serve: Serve) -> None:
    server = example(serve, "auction")
    assert [bid(server, "Ben", amount) for amount in ("much", 0, 1_000_001, None)] == [422] * 4
    assert bid(server, "", 10) == 422
    assert server.post("/auction/7", b"{", JSON).status == 400
    assert server.status()["counts"]["published"] == 0


# Demo


def test_the_demo_shows_its_page_and_the_numbers_of_the_core(serve: Serve) -> None:
    port = free_port()
    server = example(serve, "demo", admin=f"127.0.0.1:{port}", environment={"DEMO_ADMIN": f"127.0.0.1:{port}"})
    page = server.get("/")
    assert (page.status, page["content-type"]) == (200, "text/html; charset=utf-8")
    for asset in ("page.css", "page.js"):
        path = next(part for part in page.text.split('"') if part.endswith(asset))
        assert server.get(path).status == 200
    echo = server.connect().ask("GET", "/echo?word=ol%C3%A1")
    stream = server.events("/auction")
    server.until_parked(2)
    numbers = server.get("/numbers").json()
    assert (numbers["parked"], numbers["running"]) == (2, 0)
    assert [worker["busy"] for worker in numbers["workers"]] == [False]
    assert bid(server, "Ana", 10, "/auction") == 202
    assert json.loads(stream.data(1)[0]) == {"bidder": "Ana", "amount": 10}
    assert echo.answer().text == "You said: olá"


def test_make_demo_serves_the_demo() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "examples/demo/app.py" in makefile
    assert Path(ROOT / "examples" / "demo" / "page.html").exists()


# Cancelled query


def test_a_query_ends_in_the_database_when_its_client_leaves(serve: Serve, postgres: Postgres) -> None:
    server = example(serve, "cancelled_query", database=postgres.url)
    assert "<table" in server.get("/").text
    assert server.get("/running").json() == []
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
