"""In a real browser: the demo (windows of one auction, an echo, a car wash, a slow query), an auction, a report, a
query whose tab is closed, and a chat over WebSockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.browser import CHROMIUM, Browser
from .harness.ports import free_port
from .harness.postgres import Postgres
from .harness.server import ROOT, Server

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


def drawn(told: str) -> str:
    """The page shows a text that stands in its HTML, and its script has run: a form sends itself before that."""
    return f'document.readyState === "complete" && document.querySelector("#told")?.textContent === "{told}"'


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

WASH = """
(() => {{
  const form = document.querySelector("#wash");
  form.requestSubmit(form.querySelector("button[value='{cars}']"));
  return true;
}})()
"""

WRITE = """
(() => {{
  const form = document.querySelector("#ask");
  form.year.value = "{year}";
  form.requestSubmit();
  return true;
}})()
"""

JOIN = """
(() => {{
  window.states = [];
  const link = document.querySelector("#link");
  new MutationObserver(() => states.push(link.textContent)).observe(link, {{ childList: true }});
  const form = document.querySelector("form");
  form.name.value = "{name}";
  form.name.dispatchEvent(new Event("change"));
  return true;
}})()
"""

SAY = """
(() => {{
  const form = document.querySelector("form");
  form.text.value = "{text}";
  form.requestSubmit();
  return true;
}})()
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
    page.until('document.querySelector("#most").textContent === "at most 2"')
    assert page.run('document.querySelector("figcaption").textContent.startsWith("parked, last minute")')
    page.until(f'document.querySelector("#busy").textContent === "0 of {len(demo.workers())}"')
    page.until('document.querySelector("#echo-told").textContent.includes("olá <b>")')
    assert page.run('document.querySelector("#echo-told b") === null'), "what is typed stays text"
    assert browser.problems == []


def test_a_page_comes_back_by_itself_when_the_code_is_reloaded(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    demo.reload()
    demo.publish("auction", b'{"bidder": "The house", "amount": 500}', "application/json")
    page.until('document.querySelector("#leader").textContent.includes("The house leads with 500")')


def test_a_car_is_washed_step_by_step_and_another_drives_off(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    page.run(WASH.format(cars=1))
    page.until('document.querySelector("#wash-bar").value >= 0.2')
    page.until('document.querySelector("#wash-told").textContent === "Car 1 is clean."')
    assert page.run('document.querySelector("#drive-off").disabled')
    page.until('document.querySelector("#wash-numbers [data-state=completed]").textContent === "1"')
    assert browser.problems == []
    page.run(WASH.format(cars=20))
    page.until('document.querySelector("#wash-told").textContent.startsWith("Car 1 of 20 is")')
    page.until('document.querySelector("#wash-told").textContent.startsWith("Car 4 of 20 is")')
    page.run('document.querySelector("#drive-off").click()')
    page.until('document.querySelector("#wash-told").textContent === "You drove off."')


def test_the_bar_of_a_car_follows_it_to_the_end_after_the_page_is_loaded_again(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    page.run(WASH.format(cars=1))
    page.until('document.querySelector("#wash-bar").value >= 0.2')
    page.ask("Page.reload")
    page.until('document.querySelector("#wash-told")?.textContent === "Car 1 is clean."')
    assert page.run('sessionStorage.getItem("cars") === null')


def test_a_slow_query_ends_in_the_database_when_its_tab_is_closed(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    page.run('document.querySelector("#count").click()')
    page.until('document.querySelector("#count-told").textContent.startsWith("Counting in the database: ")')
    demo.until(lambda status: len(status["databases"]["default"]["running"]) == 1)
    page.until('document.querySelector("#count-numbers [data-state=running]").textContent === "1"')
    page.run('document.querySelector("#count-leave").click()')
    page.until('/^Cancelled after [0-9]+ ms/.test(document.querySelector("#count-told").textContent)')
    assert demo.status()["databases"]["default"]["running"] == []
    assert demo.status()["counts"]["queries_cancelled"] == 1
    page.until('document.querySelector("#count-numbers [data-state=cancelled]").textContent === "1"')
    assert browser.problems == []


def test_no_code_on_the_page_is_cut_off(browser: Browser, demo: Server) -> None:
    page = browser.open(url(demo))
    page.until('document.querySelectorAll("pre").length > 4')
    page.run('for (const details of document.querySelectorAll("details")) details.open = true')
    wide = '[...document.querySelectorAll("pre")].filter((pre) => pre.scrollWidth > pre.clientWidth)'
    assert page.run(f"{wide}.map((pre) => pre.textContent).join()") == ""


def test_an_auction_after_a_restart_says_that_it_begins_anew(browser: Browser, serve: Serve) -> None:
    port, admin = free_port(), free_port()
    settings = {"bind": f"127.0.0.1:{port}", "admin": f"127.0.0.1:{admin}"}
    environment = {"DEMO_ADMIN": f"127.0.0.1:{admin}"}
    first = serve(f"{ROOT}/examples/demo/app.py", environment=environment, **settings)
    page = browser.open(url(first))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    page.run(BID.format(bidder="Ana", amount=30))
    page.until('document.querySelector("#leader").textContent === "Ana leads with 30"')
    first.kill()
    page.until('document.querySelector("#link").dataset.state === "reconnecting"')
    serve(f"{ROOT}/examples/demo/app.py", environment=environment, **settings)
    page.until('document.querySelector("#auction-told").textContent.startsWith("The server was started anew")')
    assert page.run('document.querySelector("#bid [name=amount]").value') == "10"


def test_the_page_of_the_auction_shows_that_its_server_is_gone(shared: Browser, serve: Serve) -> None:
    server = serve(f"{ROOT}/examples/auction/app.py")
    page = shared.open(url(server))
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    server.kill()
    page.until('document.querySelector("#link").textContent === "reconnecting"')
    shared.close_all()


def test_a_report_is_found_again_by_the_address_of_its_page(shared: Browser, serve: Serve) -> None:
    server = serve(f"{ROOT}/examples/report/app.py", workers=2, environment={"REPORT_SECONDS": "3"})
    page = shared.open(url(server))
    page.until(drawn("No report yet."))
    page.run(WRITE.format(year=2026))
    page.until('document.querySelector("#told").dataset.state === "running"')
    page.until('document.querySelector("#bar").value > 0')
    address = page.run("location.href")
    shared.close(page)
    again = shared.open(address)
    again.until('document.querySelector("#told")?.textContent === "Sales of 2026"')
    assert again.run('document.querySelectorAll("#report tbody tr").length') == 12
    assert shared.problems == []
    shared.close_all()


def test_a_report_is_cancelled_from_its_page(shared: Browser, serve: Serve) -> None:
    server = serve(f"{ROOT}/examples/report/app.py", workers=2)
    page = shared.open(url(server))
    page.until(drawn("No report yet."))
    page.run(WRITE.format(year=2025))
    page.until('document.querySelector("#told").dataset.state === "running"')
    page.run('document.querySelector("#cancel").click()')
    page.until('document.querySelector("#told").textContent === "It was cancelled."')
    assert page.run('document.querySelector("#running").offsetParent === null')
    shared.close_all()


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


def test_a_page_says_how_long_a_query_outlived_its_tab(shared: Browser, serve: Serve, postgres: Postgres) -> None:
    server = serve(f"{ROOT}/examples/cancelled_query/app.py", database=postgres.url)
    page = shared.open(url(server))
    page.until(drawn("Nothing runs."))
    page.ask("Runtime.evaluate", {"expression": 'document.querySelector("#start").click()', "userGesture": True})
    page.until('document.querySelector("#running").textContent.includes("pg_sleep")')
    [tab] = [one for one in shared.ask("Target.getTargets")["targetInfos"] if one.get("openerId") == page.target]
    shared.ask("Target.closeTarget", {"targetId": tab["targetId"]})
    page.until('/^Cancelled [0-9]+ ms after/.test(document.querySelector("#moment").textContent)')
    postgres.until_idle()
    shared.close_all()


TRY = """
(() => {
  const operation = [...document.querySelectorAll("details")].find(one => one.textContent.includes("PUT/points/{id}"));
  operation.open = true;
  operation.querySelector("input[name=id]").value = "00000000-0000-0000-0000-000000000007";
  operation.querySelector("textarea").value = '{"x": 1, "y": 2}';
  operation.querySelector("form").requestSubmit();
  return true;
})()
"""


def test_the_page_of_a_description_shows_every_operation_and_sends_requests(shared: Browser, serve: Serve) -> None:
    page = shared.open(f"{url(serve('described'))}docs")
    page.until('document.querySelector("h1")?.textContent === "Described & <tried>"')
    assert page.run('document.querySelectorAll("details").length') == 18
    assert page.run('[...document.querySelectorAll("h2")].map(one => one.textContent).join()') == "orders,jobs"
    page.run(TRY)
    page.until('document.querySelector("details[open] form pre").textContent.startsWith("200 OK")')
    assert page.run('document.querySelector("details[open] form pre").textContent.endsWith(\'{"x":1.0,"y":2.0}\')')
    assert shared.problems == []
    shared.close_all()


ELSEWHERE = """
(() => {{
  const api = "{api}";
  const text = async (path, options) => (await fetch(api + path, options)).text();
  window.told = {{}};
  (async () => {{
    told.set = await text("/set", {{credentials: "include"}});
    told.who = await text("/who", {{credentials: "include", headers: {{"x-a": "preflight, please"}}}});
    told.nobody = await text("/who", {{credentials: "omit"}});
    told.row = (await fetch(api + "/many", {{method: "GET"}})).status;
    told.missing = (await fetch(api + "/nowhere", {{method: "PUT"}})).status;
    told.private = await text("/private").catch(error => error.name);
    told.ready = true;
  }})();
  const events = new EventSource(api + "/stream", {{withCredentials: true}});
  events.onopen = () => told.open = true;
  events.onmessage = event => told.message = event.data;
  return true;
}})()
"""


def test_a_page_of_another_origin_uses_what_it_is_permitted_to(shared: Browser, serve: Serve) -> None:
    site = serve("basic")
    api = serve("added", workers=2, environment={"ORIGINS": url(site)[:-1]})
    page = shared.open(url(site) + "constant-page")
    page.run(ELSEWHERE.format(api=url(api)[:-1]))
    page.until("told.ready && told.open")
    api.publish("news", b"hello over there")
    page.until('told.message === "hello over there"')
    told = {name: page.run(f"told.{name}") for name in ("set", "who", "nobody", "row", "missing", "private")}
    assert told == {
        "set": "set",
        "who": "yes",
        "nobody": "nobody",
        "row": 201,
        "missing": 404,
        "private": "TypeError",
    }
    shared.problems.clear()  # the browser notes what it kept from the page, and the 404
    shared.close_all()


def test_a_page_of_another_origin_is_kept_out_otherwise(shared: Browser, serve: Serve) -> None:
    site, api = serve("basic"), serve("added", environment={"ORIGINS": "https://elsewhere.example"})
    page = shared.open(url(site) + "constant-page")
    page.run(f"fetch('{url(api)}').catch(error => window.told = error.name)")
    page.until('window.told === "TypeError"')
    shared.problems.clear()
    shared.close_all()


def test_what_somebody_says_in_the_chat_shows_in_both_windows_which_do_not_notice_a_reload(
    shared: Browser, serve: Serve
) -> None:
    server = serve(f"{ROOT}/examples/chat/app.py", workers=2, grace="2s")
    windows = {name: shared.open(url(server)) for name in ("Ana", "Ben")}
    for name, page in windows.items():
        page.until('document.querySelector("#link")?.textContent === "give your name"')
        page.run(JOIN.format(name=name))
        page.until('document.querySelector("#link").dataset.state === "live"')
    windows["Ana"].run(SAY.format(text="olá <b>"))
    for page in windows.values():
        page.until('document.querySelector("#said").innerText.includes("Ana: olá <b>")')
    server.reload()
    windows["Ben"].run(SAY.format(text="still here"))
    for page in windows.values():
        page.until('document.querySelector("#said").innerText.includes("Ben: still here")')
        assert page.run('!states.includes("reconnecting")') is True
    shared.close_all()
