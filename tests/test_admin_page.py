"""The admin page in a real browser: what it shows, what it may do, and that nothing in it is taken for HTML."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from .conftest import Serve
from .harness.browser import CHROMIUM, Browser, Page
from .harness.client import Client
from .harness.crowd import Crowd
from .harness.ports import free_port
from .harness.server import Server
from .harness.until import Stopwatch, until

pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no Chromium: apt-get install chromium")

TOKEN = "0123456789abcdef-of-the-tests"

SCRIPT = "<script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    yield shared
    shared.close_all()


def enqueue(server: Server, name: str, *args: object, **kwargs: object) -> str:
    """As an operator does; returns the id."""
    arguments = b64encode(msgspec.msgpack.encode([1, args, kwargs])).decode()
    status, told = server.admin("POST", "/jobs", json.dumps({"name": name, "arguments": arguments}).encode())
    assert status == 201, told
    job: str = json.loads(told)["id"]
    return job


def until_state(server: Server, job: str, wanted: str) -> str:
    """Waits until that job has this state; returns its id."""

    def is_wanted() -> bool:
        told: bool = json.loads(server.admin("GET", f"/jobs/{job}")[1])["state"] == wanted
        return told

    until(f"the job is {wanted}", is_wanted, 60, told=server.log_tail)
    return job


def started(serve: Serve, tmp_path: Path, **settings: object) -> tuple[Server, str]:
    """A server with a page, and the page's address."""
    port = free_port()
    usual: dict[str, object] = {"workers": 2, "folder": tmp_path, "admin": f"127.0.0.1:{port}"}
    return serve("operated", **usual | settings), f"http://127.0.0.1:{port}/"


def unlocked(serve: Serve, tmp_path: Path, **settings: object) -> tuple[Server, str]:
    environment = {"PARKADE_ADMIN_TOKEN": TOKEN}
    return started(serve, tmp_path, admin_writes="token", environment=environment, **settings)


def opened(browser: Browser, address: str) -> Page:
    page = browser.open(address)
    page.until('document.querySelector("#link")?.dataset.state === "live"')
    return page


def unlock(page: Page, token: str = TOKEN) -> None:
    page.until('!document.querySelector("#unlock").hidden')
    page.run(
        f'document.querySelector("#unlock").token.value = "{token}", document.querySelector("#unlock").requestSubmit()'
    )


def choose(page: Page, group: str, kind: str) -> None:
    page.until(f'document.querySelector("#{group} [data-kind={kind}]") !== null')
    page.run(f'document.querySelector("#{group} [data-kind={kind}]").click()')


def press(page: Page, rows: str, word: str) -> None:
    """Presses the button of the first row, once."""
    page.until(f"(button => button && (button.focus(), button.click(), true))({_button(rows, word)})")


def confirm(page: Page, rows: str, word: str) -> None:
    """Presses the button of the first row until it was pressed while it asked "Sure?".

    A row is drawn anew when what it shows has changed, and its button asks again then.
    """
    page.until(
        "(button => { const sure = button?.innerText === 'Sure?'; button?.focus(); button?.click(); return sure; })"
        f"({_button(rows, word)})"
    )


def _button(rows: str, word: str) -> str:
    return f'document.querySelector("#{rows} .act button[aria-label^={word}]")'


def shown(selector: str, text: str) -> str:
    return f"document.querySelector({selector!r})?.innerText.includes({text!r})"


def test_the_page_shows_what_the_server_does(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = started(serve, tmp_path)
    server.get("/boom")
    server.waiting("/wait/60", 3)
    server.waiting("/next/lobby", 2)
    server.waiting("/slow", 1)
    server.until_parked(6)
    server.waiting("/hold/page", 1)
    page = opened(browser, address)
    page.until('document.querySelector("#parked").textContent === "6"')
    page.until('document.querySelector("#running").textContent === "1"')
    page.until('document.querySelectorAll("#request-rows tr").length === 3')
    assert page.run(shown("#request-rows", "/wait/{seconds:float}"))
    choose(page, "request-kinds", "next")
    page.until(shown("#request-rows", "channel room/lobby"))
    page.until(shown("#channel-rows", "room/lobby"))
    choose(page, "request-kinds", "running")
    page.until(shown("#request-rows", "/hold/{gate}"))
    page.until(shown("#worker-rows", "GET /hold/{gate}"))
    page.until(shown("#query-rows", "with recursive"))
    page.until(shown("#databases", "SQLite"))
    page.until(shown("#route-rows", "/boom"))
    page.until('Number(document.querySelector("#errors").textContent) > 0')
    page.until('document.querySelector("#graph-requests path.c1").getAttribute("d").length > 10')
    page.until(shown("#setting-rows", "admin"))
    assert page.run('document.querySelectorAll(".act button").length') == 0, "it only reads"
    assert page.run(shown("#access", "read-only"))
    assert browser.problems == []
    server.open_gate("page")


def test_jobs_are_shown_with_their_arguments_and_errors(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = started(serve, tmp_path)
    good = until_state(server, enqueue(server, "deliver", "ana"), "completed")
    until_state(server, enqueue(server, "deliver", "ben", copies=10), "dead")
    page = opened(browser, address)
    page.until('document.querySelectorAll("#job-rows tr").length === 2')
    page.until(shown("#alerts", "1 job is dead"))
    page.until(shown("#run-rows", "deliver"))
    choose(page, "job-states", "dead")
    page.until('document.querySelectorAll("#job-rows tr").length === 1')
    assert page.run(shown("#job-rows", "10 copies are too many for ben"))
    page.run('document.querySelector("#job-rows button.plain").click()')
    page.until(shown("#job-rows .more", 'deliver("ben", copies=10)'))
    assert page.run(shown("#job-rows .more", "enqueued"))
    choose(page, "job-states", "completed")
    page.until(f"document.querySelector('#job-rows tr')?.dataset.key === '{good}'")
    page.run('document.querySelector("#job-rows button.plain").click()')
    page.until(shown("#job-rows .more", '"ana"'))
    assert browser.problems == []


def test_texts_of_clients_are_never_html(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = started(serve, tmp_path, access_log="text", access_log_file=tmp_path / "access")
    server.waiting("/next/%3Cscript%3Edocument.title='owned'%3C%2Fscript%3E?%3Cimg%20src=x%20onerror=alert(1)%3E", 1)
    server.waiting("/slow", 1)
    until_state(server, enqueue(server, "deliver", SCRIPT, copies=10), "dead")
    page = opened(browser, address)
    choose(page, "request-kinds", "next")
    page.until(shown("#request-rows", "%3Cscript%3E"))
    page.until(shown("#request-rows", f"channel room/{SCRIPT}"))
    page.until(shown("#channel-rows", SCRIPT))
    page.until(shown("#query-rows", "<script>document.title=1"))
    page.until(shown("#job-rows", f"too many for {SCRIPT}"))
    page.run('document.querySelector("#job-rows button.plain").click()')
    page.until(shown("#job-rows .more", "deliver("))
    assert page.run('document.querySelectorAll("script").length') == 1
    assert page.run('document.querySelectorAll("main img").length') == 0
    assert page.run("document.title").endswith("Parkade admin")
    assert browser.problems == []


def test_what_waits_is_cancelled_after_a_second_look(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = unlocked(serve, tmp_path)
    (parked,) = server.waiting("/wait/60", 1)
    (asked,) = server.waiting("/slow", 1)
    page = opened(browser, address)
    unlock(page)
    choose(page, "request-kinds", "timer")
    press(page, "request-rows", "Cancel")
    page.until(shown("#request-rows", "Sure?"))
    assert server.status()["waits"]["timer"]["count"] == 1, "it is asked for again"
    press(page, "request-rows", "Cancel")
    assert parked.answer().status == 503
    confirm(page, "query-rows", "Cancel")
    assert asked.answer().status == 503
    page.until(shown("#query-none", "No query runs."))
    assert browser.problems == []


def test_jobs_are_retried_dropped_and_cancelled(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = unlocked(serve, tmp_path)
    dead = until_state(server, enqueue(server, "deliver", "ana", copies=10), "dead")
    page = opened(browser, address)
    unlock(page)
    choose(page, "job-states", "dead")
    press(page, "job-rows", "Retry")
    server.until(lambda status: status["counts"]["jobs_dead"] == 2)
    confirm(page, "job-rows", "Drop")
    page.until(shown("#job-none", "No job is dead."))
    assert server.admin("GET", f"/jobs/{dead}")[0] == 404
    held = enqueue(server, "hold_at", "page")
    until_state(server, held, "running")
    choose(page, "job-states", "running")
    confirm(page, "job-rows", "Cancel")
    until_state(server, held, "cancelled")
    assert browser.problems == []
    server.open_gate("page")


def test_the_code_is_reloaded_and_a_failure_says_why(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(
        "from parkade import App\napp = App()\n@app.get('/hola/{name}')\ndef hola(name: str): return name\n"
    )
    port = free_port()
    environment = {"PARKADE_ADMIN_TOKEN": TOKEN}
    serve(file, admin=f"127.0.0.1:{port}", admin_writes="token", environment=environment)
    page = opened(browser, f"http://127.0.0.1:{port}/")
    unlock(page)
    page.until('!document.querySelector("#reload").hidden')
    page.run('document.querySelector("#reload").click()')
    page.until(shown("#reload-told", "Generation 2"))
    file.write_text("from parkade import App\nthis is no Python\n")
    page.until('!document.querySelector("#reload").disabled')
    page.run('document.querySelector("#reload").click()')
    page.until(shown("#alerts", "the old code serves"))
    page.run('document.querySelector("#reload-error").open = true')
    page.until(shown("#reload-error", "this is no Python"))
    assert browser.problems == []


def test_a_wrong_token_unlocks_nothing(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = unlocked(serve, tmp_path)
    server.waiting("/wait/60", 1)
    page = opened(browser, address)
    unlock(page, "0123456789abcdef-wrong")
    page.until(shown("#told", "not the token"))
    assert page.run('document.querySelectorAll(".act button").length') == 0
    unlock(page)
    page.until('document.querySelectorAll(".act button").length > 0')
    page.run("location.reload()")
    page.until('document.querySelectorAll(".act button").length > 0')
    assert page.run("document.cookie") == ""


def test_every_action_can_be_reached_with_the_keyboard(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = unlocked(serve, tmp_path)
    (parked,) = server.waiting("/wait/60", 1)
    page = opened(browser, address)
    unlock(page)
    page.until('document.querySelector("#request-rows .act button") !== null')
    page.run('document.querySelector("#requests").focus()')

    def key(name: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            page.ask(
                "Input.dispatchKeyEvent",
                {"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}
                | ({"text": text} if kind == "keyDown" and text else {}),
            )

    for _ in range(20):
        if page.run('document.activeElement?.getAttribute("aria-label")?.startsWith("Cancel the request")'):
            break
        key("Tab", 9)
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus is visible"
    age = page.run('document.querySelector("#request-rows td").textContent')
    page.until(f'document.querySelector("#request-rows td").textContent !== {json.dumps(age)}')  # and the focus stays
    key("Enter", 13, "\r")
    page.until('document.activeElement?.textContent === "Sure?"')
    key("Enter", 13, "\r")
    assert parked.answer().status == 503


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, serve: Serve, tmp_path: Path, width: int) -> None:
    server, address = unlocked(serve, tmp_path)
    server.waiting("/next/" + "a" * 150, 1)
    server.waiting("/slow", 1)
    until_state(server, enqueue(server, "deliver", "x" * 300, copies=10), "dead")
    page = browser.open(address)
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    unlock(page)
    page.until(shown("#job-rows", "too many"))
    choose(page, "request-kinds", "next")
    page.until('document.querySelector("#request-rows .act button") !== null')
    page.run('document.querySelector("#job-rows button.plain").click()')
    page.until('document.querySelector("#job-rows .more") !== null')
    assert page.run("document.documentElement.scrollWidth") <= width


def test_ten_thousand_parked_requests_are_a_short_list(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    count = 10_000
    server, address = started(serve, tmp_path)
    with Crowd(server.address, count) as crowd:
        crowd.ask("/wait/600")
        server.until_parked(count, seconds=60)
        before = server.status()["turns"]
        page = opened(browser, address)
        page.until('document.querySelector("#parked").textContent === "10,000"')
        page.until(shown("#requests-note", "the oldest 100 of 10,000"))
        assert page.run('document.querySelectorAll("#request-rows tr").length') == 100
        watch = Stopwatch()
        while watch.seconds < 5:
            assert server.get("/hola/you").status == 200
        turns = server.status()["turns"]
        assert turns["busy"] - before["busy"] == 0, (before, turns)
    assert browser.problems == []


def test_the_page_says_when_the_server_is_gone_and_comes_back(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    server, address = started(serve, tmp_path)
    page = opened(browser, address)
    server.kill()
    page.until('document.querySelector("#link").dataset.state === "lost"', seconds=15)
    browser.problems.clear()
    serve("operated", folder=tmp_path, admin=address.removeprefix("http://").rstrip("/"))
    page.until('document.querySelector("#link").dataset.state === "live"', seconds=30)


def test_programs_get_no_page_and_browsers_a_strict_one(serve: Serve, tmp_path: Path) -> None:
    server, address = started(serve, tmp_path)
    port = int(address.rsplit(":", 1)[1].rstrip("/"))
    assert server.admin("GET", "/")[0] == 404
    client = Client(("127.0.0.1", port), host=f"127.0.0.1:{port}")
    page = client.get("/", "Accept: text/html")
    assert page.status == 200
    policy = page["content-security-policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    client.close()
