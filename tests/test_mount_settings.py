"""`[[mount]]` in the settings file: what is refused, and with which advice; `--check`, `parkade routes`; the jobs of
applications that are mounted elsewhere after a restart.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.server import PARKADE, Server, clean_environment, run

SHOP = """
from parkade import App
app = App()
app.get("/orders/{{number:int}}", "an order")

@app.job
def {job}(text: str) -> str: return "{name} " + text

@app.post("/later")
def later(): return {job}.options(delay={delay}).enqueue("ran").id
"""


def mount(prefix: str, target: str, *more: str) -> str:
    return "\n".join(["[[mount]]", f'prefix = "{prefix}"', f'target = "{target}"', *more, ""])


TWO = mount("/", "shop.py") + mount("/live", "live.py")


def write(folder: Path, settings: str, delay: float = 0, jobs: tuple[str, str] = ("send", "shout")) -> None:
    for name, job in zip(("shop", "live"), jobs, strict=True):
        (folder / f"{name}.py").write_text(SHOP.format(name=name, job=job, delay=delay))
    (folder / "parkade.toml").write_text(settings)


def parkade(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(XDG_RUNTIME_DIR=str(folder))
    command = [PARKADE, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("settings", "words", "says"),
    [
        (mount("/", "shop.py") + mount("/", "live.py"), [], ['[[mount]] "/"', "shop.py is mounted there already"]),
        (mount("/a", "shop.py") + mount("/a/", "live.py"), [], ["shop.py is mounted there already"]),
        ('target = "shop.py"\n' + TWO, [], ["[[mount]]", "leave out shop.py"]),
        (TWO, ["shop.py"], ["[[mount]]", "leave out shop.py"]),
        (TWO, ["--root-path", "/x"], ["--root-path", "`prefix`"]),
        (mount("live", "shop.py"), [], ["a slash at its beginning"]),
        (mount("/a/../b", "shop.py"), [], ["as a browser shows it"]),
        (mount("/a//b", "shop.py"), [], ["as a browser shows it"]),
        (mount("/a%20b", "shop.py"), [], ["as a browser shows it"]),
        ('[[mount]]\nprefix = "/"\n', [], ["`target` is missing"]),
        ('[[mount]]\ntarget = "shop.py"\n', [], ["`prefix` is missing"]),
        (mount("/", "shop.py", "factory = 3"), [], ["[[mount]]", "factory"]),
        (mount("/", "shop.py", "wrokers = 3"), [], ["unknown key `wrokers`", "workers"]),
        ('[[mount]]\npath = "/"\ntarget = "shop.py"\n', [], ["unknown key `path`; did you mean `prefix`?"]),
        ('[[mount]]\nprefix = "/"\napp = "shop.py"\n', [], ["unknown key `app`; did you mean `target`?"]),
        (mount("/", "shop.py", "workers = 0"), [], ["[[mount]]", "workers"]),
        (mount("/", "shop.py", "workers = []"), [], ["`workers` takes"]),
        (mount("/", "shop.py", "job-workers = 0"), [], ["above the first [[mount]]"]),
        (mount("/", "shop.py", 'interface = "cgi"'), [], ["wsgi"]),
        (mount("/", "shop.py", 'env = "A=b"'), [], ["`env` takes a table"]),
        (mount("/", "shop.py", "env = { A = [] }"), [], ["`A` in `env`"]),
        (mount("/", "shop.py", 'env = { "A=B" = "c" }'), [], ["not the name of a variable"]),
        ('[mount]\nprefix = "/"\ntarget = "shop.py"\n', [], ["write [[mount]]"]),
        (mount("/", "nowhere.py"), [], ["there is no file", "nowhere.py"]),
    ],
)
def test_what_is_wrong_is_refused_with_advice(tmp_path: Path, settings: str, words: list[str], says: list[str]) -> None:
    write(tmp_path, settings)
    ended = parkade(tmp_path, "serve", *words, "--bind", "127.0.0.1:0")
    assert ended.returncode in (1, 2), ended.stderr
    assert all(text in ended.stderr for text in says), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_check_tells_of_each(tmp_path: Path) -> None:
    write(tmp_path, TWO)
    ended = parkade(tmp_path, "serve", "--check", "--bind", "127.0.0.1:0")
    assert (ended.returncode, ended.stdout.splitlines()) == (
        0,
        [
            "/: shop.py loads: written for Parkade, 3 routes, 1 job",
            "/live: live.py loads: written for Parkade, 3 routes, 1 job",
        ],
    ), ended.stderr


def test_those_that_load_are_shown_next_to_one_that_does_not(tmp_path: Path) -> None:
    """Whatever their order, and however many fail."""
    write(tmp_path, TWO)
    check = ("serve", "--check", "--bind", "127.0.0.1:0")
    for failing, other in (("live.py at /live", "/: shop.py loads"), ("shop.py at /", "/live: live.py loads")):
        file = tmp_path / failing.split()[0]
        code = file.read_text()
        file.write_text("raise RuntimeError('no luck')")
        ended = parkade(tmp_path, *check)
        assert (ended.returncode, ended.stdout.startswith(other)) == (1, True), ended.stdout + ended.stderr
        assert f"parkade: {failing}: the application does not load; see the error above\n" in ended.stderr
        assert ended.stderr.endswith("parkade: 1 of 2 applications did not load\n")
        assert "no luck" in ended.stderr
        routes, listed = parkade(tmp_path, "routes"), parkade(tmp_path, "routes", "--json")
        assert (routes.returncode, listed.returncode) == (1, 1)
        assert [one["mount"] for one in json.loads(listed.stdout)] == [other.split(":")[0]]
        assert "no luck" in routes.stderr
        assert routes.stdout.startswith(other.replace(": ", "  ").removesuffix(" loads"))
        file.write_text(code)
    for name in ("live.py", "shop.py"):
        (tmp_path / name).write_text("raise RuntimeError('no luck')")
    ended = parkade(tmp_path, *check)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("no luck") >= 2
    assert "2 of 2" in ended.stderr


def test_routes_are_listed_below_their_mounts(tmp_path: Path) -> None:
    write(tmp_path, TWO)
    text = parkade(tmp_path, "routes").stdout
    assert "/live  live.py\n" in text
    assert "/live/orders/{number:int}" in text
    listed = json.loads(parkade(tmp_path, "routes", "--json").stdout)
    assert [(one["mount"], one["routes"][0]["path"]) for one in listed] == [
        ("/", "/orders/{number:int}"),
        ("/live", "/live/orders/{number:int}"),
    ]


@pytest.mark.parametrize("words", [[], ["--check"]])
def test_a_job_that_two_declare_is_refused(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, TWO, jobs=("send", "send"))
    ended = parkade(tmp_path, "serve", *words, "--bind", "127.0.0.1:0")
    assert ended.returncode == 1, ended.stderr
    assert 'also declares a job "send"' in ended.stderr
    assert "rename one of them" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_reload_that_brings_the_job_of_another_is_refused(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path, TWO)
    server = serve(None, folder=tmp_path)
    server.until(lambda status: [worker["role"] for worker in status["workers"]].count("jobs") == 2)
    server.until(lambda status: all(worker["state"] == "ready" for worker in status["workers"]))
    (tmp_path / "live.py").write_text(SHOP.format(name="live", job="send", delay=0))
    ended = run("reload", "--admin", f"unix:{server.private}", seconds=60)
    assert ended.returncode == 1
    assert "also declares a job" in ended.stderr
    job = server.post("/live/later").text
    until_ended(server, job, "live ran")


def until_ended(server: Server, job: str, result: str) -> None:
    """The jobs of applications are those of one store."""

    def is_over(_: object) -> bool:
        code, body = server.admin("GET", f"/jobs/{job}")
        told = json.loads(body)
        return code == 200 and (told["state"], told.get("shown")) == ("completed", result)

    server.until(is_over)


@pytest.mark.promise(9)
def test_jobs_find_their_application_after_the_mounts_have_changed(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path, TWO, delay=2)
    server = serve(None, folder=tmp_path)
    of_live, of_shop = server.post("/live/later").text, server.post("/later").text
    server.stop()
    write(tmp_path, mount("/elsewhere", "live.py") + mount("/", "shop.py"))
    server = serve(None, folder=tmp_path)
    until_ended(server, of_live, "live ran")
    until_ended(server, of_shop, "shop ran")


@pytest.mark.promise(9)
def test_a_job_waits_for_an_application_that_is_not_mounted(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path, TWO, delay=1)
    server = serve(None, folder=tmp_path)
    of_live = server.post("/live/later").text
    server.stop()
    (tmp_path / "parkade.toml").write_text(mount("/", "shop.py"))
    server = serve(None, folder=tmp_path)
    server.until(lambda _: json.loads(server.admin("GET", f"/jobs/{of_live}")[1])["state"] == "unknown")
    server.stop()
    write(tmp_path, TWO)
    server = serve(None, folder=tmp_path)
    until_ended(server, of_live, "live ran")
