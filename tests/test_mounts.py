"""`[[mount]]` in the settings file: several applications in one server, each with workers and code of its own."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import perl
from .harness.server import APPS, ROOT, Server, Status, run
from .harness.versions import VERSIONS, Ask, asking_over
from .harness.websocket import handshake, opened

FOLDER = APPS / "mounts"
IMPORTED = {"PYTHONPATH": str(APPS)}

SHOP = """
import os
from parkade import App
app = App()

@app.get("/hola/{{name}}")
def hola(name: str):
    return {{"by": "{name}", "name": name, "pid": os.getpid(), "version": 1}}
{more}
"""

HELD = """
import time
from pathlib import Path
@app.job
def held():
    while not Path("opened").exists(): time.sleep(0.01)
@app.post("/held")
def holding(): return held.enqueue().result(timeout=0)
"""

ROOMS = """
from parkade import WebSocket

@app.websocket("/rooms/{room}")
async def chat(socket: WebSocket, room: str) -> None:
    await socket.send([room, socket.request.path])
    async for message in socket:
        await socket.send(message)
"""

TWO = """
state = "state"
[[mount]]
prefix = "/"
target = "shop.py"
[[mount]]
prefix = "/live"
target = "live.py"
"""

Start = Callable[..., Server]


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """All four applications of `tests/apps/mounts`."""
    if not perl.has("JSON::PP"):
        pytest.skip("there is no Perl")
    state = tmp_path_factory.mktemp("state")
    return ready(serve_for_all(None, folder=FOLDER, environment=IMPORTED, state=state), 4)


@pytest.fixture(params=VERSIONS)
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    return asking_over(request.param, server)


@pytest.fixture
def start(serve: Serve, tmp_path: Path) -> Start:
    """Starts a server for applications that are written into its folder: `start(shop=MORE, live=MORE)`."""

    def started(settings: str = TWO, is_ready: bool = True, grace: str | None = None, **more: str) -> Server:
        write(tmp_path, **more)
        (tmp_path / "parkade.toml").write_text(settings)
        return serve(None, folder=tmp_path, is_ready=is_ready, grace=grace)

    return started


def write(folder: Path, **more: str) -> None:
    for name, text in more.items():
        (folder / f"{name}.py").write_text(SHOP.format(name=name, more=text))


def mounts(status: Status) -> dict[str, dict[str, Any]]:
    return {application["mount"]: application for application in status["applications"]}


def ready(server: Server, count: int) -> Server:
    """Waits until this many applications have workers for requests."""
    server.until(lambda status: [one["state"] for one in status["applications"]].count("ready") == count)
    return server


def job_workers(status: Status) -> list[str]:
    """The mounts of the workers for jobs that are ready."""
    return sorted(
        worker["mount"]
        for worker in status["workers"]
        if worker["role"] == "jobs" and worker["state"] in ("ready", "busy")
    )


# Which application has a path


def test_each_interface_is_told_its_prefix(ask: Ask) -> None:
    front = ask("/some/where?a=1").json()
    assert (front["by"], front["SCRIPT_NAME"], front["PATH_INFO"]) == ("front", "", "/some/where")
    assert front["QUERY_STRING"] == "a=1"
    api = ask("/live/api/some/wh%65re").json()
    assert (api["by"], api["root_path"], api["path"]) == ("api", "/live/api", "/live/api/some/where")
    assert api["raw_path"] == "/live/api/some/wh%65re"
    old = ask("/perl/some/where?a=1").json()
    assert (old["by"], old["SCRIPT_NAME"], old["PATH_INFO"], old["QUERY_STRING"]) == (
        "perl",
        "/perl",
        "/some/where",
        "a=1",
    )
    live = ask("/live/hola/Ana").json()
    assert (live["hola"], live["link"]) == ("Ana", "/live/hola/Ana")
    assert len({told["pid"] for told in (front, api, old, live)}) == 4


@pytest.mark.parametrize(
    "path",
    [
        "/live/../x",
        "/live/api/../../perl/x",
        "/x/../perl/y",
        "/../perl/y",
        "/perl/..",
        "/perl/%2e%2e/live",
        "/perl/..%2flive",
        "/perl/..\\live",
        "/perl/a/../b",
        "/perl/./b",
    ],
)
def test_a_path_that_leads_upwards_belongs_to_no_application(ask: Ask, path: str) -> None:
    """Whose it is would depend on who resolves it: a proxy in front may have let it pass for another one."""
    answer = ask(path)
    assert (answer.status, answer.json()["fault"]) == (400, "client")


def test_the_longest_prefix_has_a_path(ask: Ask) -> None:
    def by(target: str) -> str:
        answer = ask(target)
        return answer.json()["by"] if answer.status == 200 else str(answer.status)

    assert {path: by(path) for path in ("/lively", "/liv", "/x/live", "/live%2Fapi", "/perls/x")} == dict.fromkeys(
        ("/lively", "/liv", "/x/live", "/live%2Fapi", "/perls/x"), "front"
    )
    assert {path: by(path) for path in ("/live/api", "/live/api/", "/live/api/x", "/l%69ve/api/x")} == dict.fromkeys(
        ("/live/api", "/live/api/", "/live/api/x", "/l%69ve/api/x"), "api"
    )
    assert (by("/live/apis"), by("/live"), by("/live/x")) == ("404", "404", "404")


def test_the_prefix_alone_is_the_root_of_its_application(ask: Ask) -> None:
    assert [ask(path).json()["PATH_INFO"] for path in ("/perl", "/perl/")] == ["", "/"]
    assert ask("/live/api").json()["path"] == "/live/api"


def test_a_native_application_links_to_itself(ask: Ask) -> None:
    assert ask("/live/away")["location"] == "/live/hola/you"
    assert ask("/l%69ve/hola/Ana").json()["link"] == "/live/hola/Ana"


def test_where_nothing_is_mounted_there_is_nothing(start: Start) -> None:
    settings = '[[mount]]\nprefix = "/shop"\ntarget = "shop.py"\n[[mount]]\nprefix = "/live/"\ntarget = "live.py"\n'
    server = start(settings, shop="", live="")
    assert server.get("/shop/hola/Ana").json()["by"] == "shop"
    assert server.get("/live/hola/Ana").json()["by"] == "live"
    assert [server.get(path).status for path in ("/", "/hola/Ana", "/shops", "/shop/x")] == [404] * 4
    server.until_zero()


def test_a_slash_is_redirected_within_the_mount(start: Start) -> None:
    more = 'app = App(redirect_slashes=True)\napp.get("/folder/", "folder")'
    server = start(shop="", live=more)
    answer = server.get("/live/folder")
    assert (answer.status, answer["location"]) == (307, "/live/folder/")


def test_each_has_its_own_environment_and_number_of_workers(server: Server) -> None:
    assert server.get("/live/api/x").json()["colour"] == "blue"
    told = mounts(server.status())
    assert {mount: one["workers_ready"] for mount, one in told.items()} == {
        "/": 1,
        "/live": 1,
        "/live/api": 2,
        "/perl": 1,
    }
    assert {mount: one["interface"] for mount, one in told.items()} == {
        "/": "wsgi",
        "/live": "native",
        "/live/api": "asgi",
        "/perl": "psgi",
    }


def test_each_has_its_own_folder(start: Start, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "elsewhere", live="import neighbour\n")
    (tmp_path / "elsewhere" / "neighbour.py").write_text("")
    server = start(TWO + 'directory = "elsewhere"\n', shop="")
    assert server.get("/live/hola/Ana").json()["by"] == "live"


def test_a_single_application_may_have_a_prefix(serve: Serve, tmp_path: Path) -> None:
    """Whether a proxy has removed it or not."""
    link = '@app.get("/link")\ndef link(): return app.path("hola", name="Ana")\n'
    write(tmp_path, shop=HELD + link)
    server = serve("./shop.py", folder=tmp_path, root_path="/caf\u00e9")
    assert [server.get(f"{prefix}/hola/Ana").status for prefix in ("", "/caf%C3%A9", "/x")] == [200, 200, 404]
    assert server.get("/link").text == "/caf%C3%A9/hola/Ana"
    assert server.post("/held")["location"].startswith("/caf%C3%A9/jobs/")
    (tmp_path / "opened").touch()
    assert server.status()["applications"] == []


# What they share


def test_they_share_channels(server: Server) -> None:
    live, old = server.waiting("/live/news", 1) + server.waiting("/perl/news", 1)
    server.until_parked(2)
    assert server.get("/publish/one").text == "published"
    assert (live.answer().text, old.answer().text) == ("one", "one")
    [live] = server.waiting("/live/news", 1)
    server.until_parked(1)
    assert server.get("/perl/publish").text == "published"
    assert live.answer().text == "from Perl"


def test_a_job_runs_where_it_is_declared(server: Server) -> None:
    assert server.get("/perl/shout").text == "HEY"
    assert server.get("/perl/count").text == "5"
    job = server.get("/count").text
    assert run("jobs", "show", job, "--admin", f"unix:{server.private}").returncode == 0
    told = server.until(lambda _: json.loads(server.admin("GET", f"/jobs/{job}")[1])["state"] == "completed")
    assert told["state"] == "ready"


@pytest.mark.skipif(not perl.has(), reason="there is no Perl")
def test_the_example_with_perl_and_python_answers_as_the_page_says(serve: Serve, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "mounts.md").read_text().partition("### Perl next to Python")[2].partition("\n## ")[0]
    codes = re.findall(r"```(?:toml|perl|python)\b.*\n([^`]+)```", page)
    for name, code in zip(("parkade.toml", "app.psgi", "live.py"), codes, strict=True):
        (tmp_path / name).write_text(code)
    server = ready(serve(None, folder=tmp_path), 2)
    [news] = server.waiting("/live/news", 1)
    server.until_parked(1)
    assert server.get("/publish").text == "Perl answers /publish\n"
    assert news.answer().text == "news from Perl"
    [news] = server.waiting("/news", 1)
    server.until_parked(1)
    assert server.post("/live/news", b"news from Python").status == 204
    assert news.answer().text == "news from Python"
    assert server.get("/shout").text == "HOLA"
    job = server.get("/live/count/camel").text
    server.until(lambda _: json.loads(server.admin("GET", f"/jobs/{job}")[1]).get("shown") == 5)


def test_a_job_that_two_import_is_run_by_the_first(server: Server) -> None:
    from_front, from_live = server.get("/letter").json(), server.get("/live/letter").json()
    assert (from_front["to"], from_live["to"]) == ("Ana", "Bo")
    mount = {worker["pid"]: (worker["mount"], worker["role"]) for worker in server.workers()}
    assert [mount[letter["pid"]] for letter in (from_front, from_live)] == [("/", "jobs")] * 2


def test_the_address_of_a_job_is_below_its_mount(start: Start, tmp_path: Path) -> None:
    server = start(shop="@app.job\ndef other(): ...\n", live=HELD)
    told = server.post("/live/held")
    assert (told.status, told["location"].startswith("/live/jobs/")) == (202, True)
    assert server.get(told["location"]).status == 202
    assert server.get(told["location"].removeprefix("/live")).status == 404, "the job of another application"
    (tmp_path / "opened").touch()
    server.until(lambda _: server.get(told["location"]).status in (200, 204))


def test_they_share_databases(start: Start) -> None:
    more = 'from parkade import query\n@app.get("/sum")\ndef total(): return query("select 3 + 4 as sum").one()\n'
    server = start(shop=more, live=more)
    assert server.get("/sum").json() == server.get("/live/sum").json() == {"sum": 7}


def test_the_description_of_an_api_names_its_prefix(start: Start) -> None:
    more = 'app.openapi(title="Live", version="1")\n'
    server = start(shop="", live=more)
    told = server.get("/live/openapi.json").json()
    assert (told["servers"], list(told["paths"])) == ([{"url": "/live"}], ["/hola/{name}"])


def test_recurring_jobs_of_each_are_run_there(start: Start, tmp_path: Path) -> None:
    more = """
from pathlib import Path
@app.every(1)
def tick_{name}():
    Path("{name}.ran").write_text(str(os.getpid()))
"""
    server = start(shop=more.format(name="shop"), live=more.format(name="live"))
    server.until(lambda _: all((tmp_path / f"{name}.ran").exists() for name in ("shop", "live")))
    mount = {str(worker["pid"]): worker["mount"] for worker in server.workers() if worker["role"] == "jobs"}
    ran = [mount.get((tmp_path / f"{name}.ran").read_text()) for name in ("shop", "live")]
    assert ran == ["/", "/live"]


# What one of them does to the others


def test_a_busy_one_keeps_no_other_waiting(server: Server) -> None:
    gate = server.new_gate()
    waiting = server.waiting(f"/live/hold/{gate}", 3)
    server.until(lambda status: status["lives"]["running"] + status["lives"]["queued"] == 3)
    for _ in range(20):
        assert server.get("/hola/you").text == "Hola you"
    assert mounts(server.status())["/"]["queued"] == 0
    server.open_gate(gate)
    assert [client.answer().text for client in waiting] == ["held"] * 3


@pytest.mark.promise(6)
def test_a_worker_that_is_killed_leaves_the_others_serving(start: Start) -> None:
    server = start(shop="", live="")
    shop, live = (server.get(path).json()["pid"] for path in ("/hola/Ana", "/live/hola/Ana"))
    os.kill(live, signal.SIGKILL)
    assert [server.get("/hola/Ana").json()["pid"] for _ in range(5)] == [shop] * 5
    again = server.until(lambda status: mounts(status)["/live"]["state"] == "ready" and live not in pids(status))
    assert shop in pids(again)
    assert server.get("/live/hola/Ana").json()["pid"] != live
    server.until_logged(r'a worker died: .*mount="?/live')


def pids(status: Status) -> list[int]:
    return [worker["pid"] for worker in status["workers"]]


def test_one_that_does_not_load_leaves_the_others_serving(start: Start, tmp_path: Path) -> None:
    server = start(shop="", live="raise RuntimeError('no luck')")
    assert server.get("/hola/Ana").json()["by"] == "shop"
    status = server.until(lambda status: mounts(status)["/live"]["state"] == "failed")
    assert status["state"] == "ready"
    assert "no luck" in mounts(status)["/live"]["error"]
    assert mounts(status)["/"]["error"] is None
    assert 'parkade_application_failed{mount="/live"} 1' in server.metrics()
    assert 'parkade_application_workers_ready{mount="/"} 1' in server.metrics()
    refused = server.get("/live/hola/Ana")
    assert (refused.status, "/live" in refused.text) == (503, True)
    shown = run("status", "--once", "--admin", f"unix:{server.private}").stdout
    assert "no luck" in shown, shown
    write(tmp_path, live="")
    server.until(lambda status: mounts(status)["/live"]["state"] == "ready", seconds=40)
    assert server.get("/live/hola/Ana").json()["by"] == "live"


def test_none_that_loads_ends_the_start(start: Start) -> None:
    server = start(is_ready=False, shop="raise RuntimeError('one')", live="raise RuntimeError('two')")
    assert server.fails() == 1
    assert "one" in server.log()
    assert "two" in server.log()


def test_jobs_that_kill_their_workers_delay_no_other_jobs(start: Start) -> None:
    """In the same queue, too."""
    more = """
@app.job(retries=100)
def die(): os._exit(1)
@app.post("/die")
def dying(): return [die.enqueue().id for _ in range(20)]
"""
    works = """
@app.job
def add(a: int): return a + 1
@app.post("/add")
def adding(): return add.enqueue(1).result(timeout=20)
"""
    server = start(shop=works, live=more)
    server.until(lambda status: job_workers(status) == ["/", "/live"])
    server.post("/live/die")
    server.until(lambda status: status["counts"]["workers_died"] >= 3)
    assert [server.post("/add").json() for _ in range(10)] == [2] * 10


# Reloads


def changed(folder: Path, name: str) -> None:
    write(folder, **{name: ""})
    code = folder / f"{name}.py"
    code.write_text(code.read_text().replace('"version": 1', '"version": 2'))


def test_sighup_loads_all_of_them(start: Start, tmp_path: Path) -> None:
    server = start(shop="", live="")
    for name in ("shop", "live"):
        changed(tmp_path, name)
    server.reload()
    assert [server.get(path).json()["version"] for path in ("/hola/a", "/live/hola/a")] == [2, 2]
    assert {one["generation"] for one in server.status()["applications"]} == {2}
    server.until_logged(r'a worker has exited: .*mount="?/live')


@pytest.mark.promise(7)
def test_one_that_does_not_load_keeps_its_old_code(start: Start, tmp_path: Path) -> None:
    server = start(shop="", live="")
    changed(tmp_path, "shop")
    write(tmp_path, live="raise RuntimeError('no luck')")
    ended = run("reload", "--admin", f"unix:{server.private}", seconds=60)
    assert ended.returncode == 1
    assert "the application at /live" in ended.stderr
    assert "no luck" in ended.stderr
    old = "the new code of the application at /live does not load (above): its old code goes on serving"
    assert ended.stderr.endswith(f"parkade: {old}; the others are reloaded\n")
    server.until_logged(r'the application does not load: .*no luck.* mount="/live"')
    server.until_logged(r'reload aborted: .*mount="?/live.*why=.*no luck')
    assert server.get("/hola/a").json()["version"] == 2
    assert server.get("/live/hola/a").json()["version"] == 1
    told = mounts(server.status())
    assert [(one["generation"], one["last_reload"]) for one in told.values()] == [(2, "done"), (1, "aborted")]


def test_development_reloads_what_changes_in_the_folder_of_any(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path, shop="")
    write(tmp_path / "elsewhere", live="")
    (tmp_path / "parkade.toml").write_text(TWO + 'directory = "elsewhere"\n')
    server = serve(None, command="dev", folder=tmp_path)
    ready(server, 2)
    changed(tmp_path / "elsewhere", "live")
    server.until(lambda _: server.get("/live/hola/a").json()["version"] == 2)


# WebSockets


def test_a_websocket_of_asgi_is_told_its_prefix(server: Server) -> None:
    client = opened(server, "/live/api/some/where")
    assert json.loads(client.receive()) == {"root_path": "/live/api", "path": "/live/api/some/where"}
    assert client.send("hola").receive() == "hola"
    assert client.close()[0] == 1000


def test_a_websocket_belongs_to_the_application_of_its_path(start: Start) -> None:
    server = start(shop="", live=ROOMS)
    client = opened(server, "/live/rooms/a")
    assert json.loads(client.receive()) == ["a", "/rooms/a"]
    assert server.connect().send(handshake("/rooms/a")).answer().status == 404
    assert server.get("/live/rooms/a").status == 426
    os.kill(server.get("/hola/a").json()["pid"], signal.SIGKILL)
    server.until(lambda status: status["counts"]["workers_died"] == 1)
    assert client.send("hola").receive() == "hola"
    server.signal(signal.SIGTERM)
    assert client.closed()[0] == 1001


@pytest.mark.promise(7)
def test_a_reload_closes_no_websocket_of_an_application_that_keeps_its_old_code(start: Start, tmp_path: Path) -> None:
    server = start(shop=ROOMS, live=ROOMS, grace="2s")
    shop, live = opened(server, "/rooms/a"), opened(server, "/live/rooms/a")
    write(tmp_path, live="raise RuntimeError('no luck')")
    assert run("reload", "--admin", f"unix:{server.private}", seconds=60).returncode == 1
    assert json.loads(shop.receive()) == json.loads(live.receive()) == ["a", "/rooms/a"]
    assert shop.closed()[0] == 1012
    assert live.send("hola").receive() == "hola"
    assert json.loads(opened(server, "/live/rooms/b").receive()) == ["b", "/rooms/b"]
