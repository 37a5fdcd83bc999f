"""In a real browser: the demo with two windows of one auction, an echo that comes back, a query whose tab is closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.browser import CHROMIUM, Browser
from .harness.postgres import Postgres
from .harness.server import ROOT, Server, free_port

pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture
def browser(shared: Browser, demo: Server) -> Iterator[Browser]:
    yield shared
    shared.close_all()


@pytest.fixture
def demo(serve: Serve) -> Server:
    port = free_port()
    environment = {"DEMO_ADMIN": f"127.0.0.1:{port}"}
    return serve(f"{ROOT}/examples/demo/app.py", admin=f"127.0.0.1:{port}", environment=environment, workers=2)


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.address[1]}/"


BID = """
(() => {{
  const form = document.querySelector("#bid");
  form.bidder.value = "{bidder}";
  form.amount.value = "{amount}";
  form.requestSubmit();
  return true;
}})()
"""

ECHO = """
(() => {
  const form = document.querySelector("#echo");
  form.word.value = "olá <b>";
  form.requestSubmit(form.querySelector("button"));
  return true;
})()
"""


def test_a_bid_in_one_window_shows_in_both(browser: Browser, demo: Server) -> None:
    one, other = browser.open(url(demo)), browser.open(url(demo))
    for page in (one, other):
        page.until('document.querySelector("#link")?.dataset.state === "live"')
    demo.until(lambda status: status["waits"]["stream"]["count"] == 2)
    one.run(BID.format(bidder="Ana", amount=50))
    for page in (one, other):
        page.until('document.querySelector("#leader").textContent.includes("Ana leads with 50")')
    other.run(BID.format(bidder="Ben", amount=70))
    for page in (one, other):
        page.until('document.querySelector("#leader").textContent.includes("Ben leads with 70")')
        page.until('document.querySelectorAll("#bids li").length === 2')
    assert browser.problems == []


def test_an_echo_comes_back_after_two_seconds_while_no_worker_is_busy(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    page.run(ECHO)
    status = demo.until(lambda status: status["waits"]["timer"]["count"] == 1)
    assert status["lives"]["parked"] == 2
    page.until('Number(document.querySelector("#parked").textContent) === 2')
    page.until('document.querySelector("#busy").textContent === "0 of 2"')
    page.until('document.querySelector("#echo-told").textContent.includes("olá <b>")')
    assert page.run('document.querySelector("#echo-told b") === null'), "what is typed stays text"
    assert browser.problems == []


def test_a_page_comes_back_by_itself_when_the_code_is_reloaded(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    demo.reload()
    demo.publish("auction", b'{"bidder": "The house", "amount": 500}', "application/json")
    page.until('document.querySelector("#leader").textContent.includes("The house leads with 500")')


def test_a_query_leaves_the_list_when_its_tab_is_closed(shared: Browser, serve: Serve, postgres: Postgres) -> None:
    server = serve(f"{ROOT}/examples/cancelled_query/app.py", database=postgres.url)
    live = shared.open(url(server))
    live.until('document.querySelector("#told").textContent === "Nothing runs."')
    slow = shared.open(url(server) + "slow?seconds=60")
    live.until('document.querySelector("#running").textContent.includes("pg_sleep")')
    shared.close(slow)
    live.until('document.querySelector("#told").textContent === "Nothing runs."')
    postgres.until_idle()
    shared.close_all()
