"""What an operator requests, reads and sets: health, status, metrics, the command line, settings, the access log."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .conftest import Serve
from .harness.client import Answer, Client
from .harness.ports import free_port
from .harness.server import APPS, PARKADE, Server, clean_environment, run, whom
from .harness.until import until

pytestmark = pytest.mark.also_in_perl

BASIC = str(APPS / "basic.py")


def metric(server: Server, name: str, **labels: str) -> float:
    """The value of one sample of `/metrics`."""
    for family in text_string_to_metric_families(server.metrics()):
        for sample in family.samples:
            if sample.name == f"parkade_{name}" and labels.items() <= sample.labels.items():
                return float(sample.value)
    raise AssertionError(f"there is no {name} {labels}:\n{server.metrics()}")


# Health


@pytest.mark.promise(10)
def test_health_is_true_while_it_serves(serve: Serve) -> None:
    server = serve("basic")
    assert server.admin("GET", "/health/live") == (200, b'{"live":true}')
    assert server.admin("GET", "/health/ready") == (200, b'{"ready":true}')
    assert server.admin("HEAD", "/health/ready")[0] == 200


@pytest.mark.promise(10)
def test_it_is_not_ready_before_a_worker_is(serve: Serve, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    file = tmp_path / "slow.py"
    file.write_text(
        "import os, time\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        "from parkade import App\n"
        "app = App()\n"
        "@app.get('/hola/{name}')\n"
        "def hola(name: str): return f'Hola {name}'\n"
    )
    server = serve(file, is_ready=False)
    until("the private socket", server.private.exists)
    assert server.admin("GET", "/health/live")[0] == 200
    code, told = server.admin("GET", "/health/ready")
    assert (code, json.loads(told)["ready"]) == (503, False)
    early = server.connect().ask("GET", "/hola/early")
    gate.touch()
    server.ready()
    assert server.admin("GET", "/health/ready")[0] == 200
    assert early.answer().text == "Hola early", "who came early was not sent away"


@pytest.mark.promise(10)
def test_health_status_and_metrics_answer_while_every_worker_is_stuck(serve: Serve) -> None:
    server = serve("faulty", workers=2, deadline="30s")
    server.waiting("/loop", 2)
    server.until_running(2)
    server.waiting("/hola/x", 20)
    server.until(lambda status: status["lives"]["queued"] == 20)
    assert server.admin("GET", "/health/live")[0] == 200
    assert server.admin("GET", "/health/ready")[0] in (200, 503)
    assert metric(server, "lives", state="running") == 2
    assert metric(server, "lives", state="queued") == 20
    assert {worker["state"] for worker in server.workers()} == {"busy"}


def test_the_admin_address_may_be_tcp(serve: Serve) -> None:
    port = free_port()
    serve("basic", admin=f"127.0.0.1:{port}")
    with Client(("127.0.0.1", port), host=f"localhost:{port}") as client:
        assert client.get("/health/ready").status == 200
        assert client.get("/status").json()["state"] == "ready"
        assert client.get("/metrics")["content-type"].startswith("text/plain; version=0.0.4")
        assert client.post("/publish/x", b"message").status == 202
        assert client.get("/nowhere").status == 404
        assert client.post("/status", b"x")["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/status", "/jobs", "/metrics", "/health/ready", "/nowhere"])
def test_a_page_that_makes_up_a_name_for_the_admin_address_learns_nothing(serve: Serve, path: str) -> None:
    """DNS rebinding: for the browser it is the page's own origin, so there is no Origin to detect it."""
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}")

    def asked(host: str, method: str = "GET") -> Answer:
        with Client(("127.0.0.1", port), host=host) as client:
            return client.ask(method, path, body=b"x" if method == "POST" else b"").answer()

    expected = asked(f"127.0.0.1:{port}").status
    assert expected != 421
    for host in ("127.0.0.1", f"localhost:{port}", f"[::1]:{port}"):
        assert asked(host).status == expected, host
    for host in (f"evil.example:{port}", "127.0.0.1.evil.example"):
        for method in ("GET", "POST"):
            refused = asked(host, method)
            assert (refused.status, "http://127.0.0.1:9000" in refused.json()["error"]) == (421, True)
    assert server.admin("GET", path, Host="evil.example")[0] == expected, "no browser gets to the private socket"


def test_the_admin_endpoints_are_not_at_the_address_of_the_clients(serve: Serve) -> None:
    server = serve("basic")
    assert [server.get(path).status for path in ("/health/live", "/status", "/metrics")] == [404] * 3
    assert server.post("/publish/x", b"y").status == 202, "that is the application's own"


# Status and metrics


@pytest.mark.promise(2)
def test_the_status_tells_where_every_request_is(serve: Serve) -> None:
    server = serve("basic", workers=1)
    server.waiting("/next/a", 3)
    server.waiting("/after/60", 2)
    events = server.events("/events/b")
    server.until_parked(6)
    server.waiting("/hold/status", 1)
    server.until_running(1)
    server.waiting("/hola/x", 4)
    server.until(lambda status: all((worker["resident_bytes"] or 0) > 1 << 20 for worker in status["workers"]))
    status = server.until(lambda status: status["lives"]["queued"] == 4)
    assert status["lives"] == {"accepted": 0, "queued": 4, "running": 1, "parked": 6}
    assert {kind: wait["count"] for kind, wait in status["waits"].items()} == {
        "next": 3,
        "timer": 2,
        "file": 0,
        "script": 0,
        "several": 0,
        "stream": 1,
        "socket": 0,
        "query": 0,
        "job": 0,
    }
    assert all(wait["oldest"] >= 0 for wait in status["waits"].values() if wait["count"])
    channels = {channel["name"]: (channel["next"], channel["stream"]) for channel in status["channels"]["busiest"]}
    assert channels == {"a": (3, 0), "b": (0, 1)}
    (worker,) = status["workers"]
    assert (worker["state"], worker["held"]) == ("busy", 1)
    assert status["connections"]["http1"] == 11
    assert status["memory"]["resident_bytes"] > 1 << 20
    assert status["limits"]["parked"] == 1_000_000
    assert sum(status["lives"].values()) == status["counts"]["accepted"]
    events.close()
    server.open_gate("status")


def test_memory_and_requests_of_workers_are_told(serve: Serve) -> None:
    server = serve("basic")
    for _ in range(5):
        server.get("/hola/x")
    # Memory is measured once a second; the first time the interpreter may have been starting.
    status = server.until(lambda status: (status["workers"][0]["resident_bytes"] or 0) > 5 << 20)
    assert status["workers"][0]["requests"] == 5


def test_the_metrics_can_be_parsed_and_agree_with_the_status(serve: Serve) -> None:
    server = serve("basic", workers=2)
    server.waiting("/next/a", 3)
    server.until_parked(3)
    for target in ("/hola/x", "/nowhere", "/raise", "/constant"):
        server.get(target)
    server.publish("b", b"x")
    families = {family.name: family for family in text_string_to_metric_families(server.metrics())}
    assert {"parkade_lives", "parkade_workers", "parkade_responses", "parkade_request_run_seconds"} <= set(families)
    assert all(family.documentation for family in families.values())
    status = server.status()
    assert metric(server, "ready") == 1
    assert metric(server, "lives", state="parked") == status["lives"]["parked"] == 3
    assert metric(server, "waits", kind="next") == 3
    assert metric(server, "workers", state="ready") == 2
    assert metric(server, "messages_published_total") == status["counts"]["published"] == 1
    assert metric(server, "responses_total", **{"class": "2xx"}) == 2
    assert metric(server, "responses_total", **{"class": "4xx"}) == 1
    assert metric(server, "responses_total", **{"class": "5xx"}) == 1
    assert metric(server, "request_run_seconds_count") == 4
    assert metric(server, "requests_accepted_total") == status["counts"]["accepted"]


def test_the_metrics_tell_which_route_is_slow_and_how_it_answers(serve: Serve) -> None:
    server = serve("basic", workers=2)
    for target in ("/hola/x", "/hola/y", "/raise", "/after/0.2", "/constant", "/standing-timer", "/nowhere", "/else"):
        server.get(target)
    server.post("/hola/x", b"")
    assert server.connect().ask("HEAD", "/hola/z").answer(head=True).status == 200
    hola = {"route": "/hola/{name}", "method": "GET"}
    assert metric(server, "route_requests_total", **hola, **{"class": "2xx"}) == 2
    assert metric(server, "route_requests_total", route="/hola/{name}", method="HEAD") == 1
    assert metric(server, "route_requests_total", route="/raise", **{"class": "5xx"}) == 1
    assert metric(server, "route_requests_total", route="/constant", **{"class": "2xx"}) == 1
    assert metric(server, "route_requests_total", route="unmatched", method="other", **{"class": "4xx"}) == 3
    assert metric(server, "route_seconds_count", **hola) == 2
    assert metric(server, "route_phase_seconds_total", **hola, phase="run") > 0
    for route in ("/after/{seconds:float}", "/standing-timer"):
        total = metric(server, "route_seconds_sum", route=route)
        parked = metric(server, "route_phase_seconds_total", route=route, phase="park")
        assert total >= parked >= 0.2
        assert parked + metric(server, "route_phase_seconds_total", route=route, phase="run") < total + 0.01
    families = list(text_string_to_metric_families(server.metrics()))
    counted = [
        sample.value for family in families for sample in family.samples if family.name == "parkade_route_requests"
    ]
    assert sum(counted) == server.status()["counts"]["accepted"]


def test_what_clients_send_adds_no_series(serve: Serve) -> None:
    server = serve("basic")
    server.get("/nowhere")
    before = len(server.metrics().splitlines())
    for number in range(50):
        server.connect().ask(f"M{number}", f"/{number}")
        server.get(f"/nowhere/{number}?{number}")
    assert len(server.metrics().splitlines()) == before


def test_a_route_keeps_its_counts_through_a_reload(serve: Serve) -> None:
    server = serve("basic")
    server.get("/hola/x")
    server.reload()
    server.get("/hola/x")
    assert metric(server, "route_requests_total", route="/hola/{name}", method="GET") == 2


def test_the_process_of_the_core_is_measured(serve: Serve) -> None:
    server = serve("basic")
    families = {family.name: family for family in text_string_to_metric_families(server.metrics())}
    value = {name: families[f"process_{name}"].samples[0].value for name in PROCESS}
    assert value["cpu_seconds"] > 0
    assert 1 << 20 < value["resident_memory_bytes"] < value["virtual_memory_bytes"]
    assert 10 < value["open_fds"] < value["max_fds"]
    assert 0 <= time.time() - value["start_time_seconds"] < 600
    assert abs(value["start_time_seconds"] - server.status()["started"]) < 0.01


PROCESS = ["cpu_seconds", "resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds", "start_time_seconds"]


def test_rates_and_latencies_are_those_of_the_last_minute(serve: Serve) -> None:
    server = serve("basic", workers=2)
    server.until(lambda status: status["rates"]["seconds"] > 0)
    for target in ["/hola/x"] * 20 + ["/raise", "/after/0.5"]:
        server.get(target)
    status = server.until(lambda status: status["rates"]["errors"] > 0)
    rates = server.until(lambda status: (status["rates"]["latency"] or {"p99": 0})["p99"] > 0.4)["rates"]
    assert 0 < rates["errors"] < rates["requests"]
    assert rates["latency"]["p50"] < 0.4 < rates["latency"]["p99"] < 2
    assert rates["work"]["p99"] < 0.4, "a wait is no work"
    assert status["rates"]["seconds"] <= 62
    shown = run("status", "--once", *whom(server), XDG_RUNTIME_DIR=str(server.folder)).stdout
    assert re.search(r"^rates +\d+\.\d requests/s   0\.\d 5xx/s   latency p50 \S+ \S+ +p99", shown, re.MULTILINE), shown


def test_counters_never_fall(serve: Serve) -> None:
    server = serve("faulty")
    before: dict[str, float] = {}
    for target in ("/hola/x", "/raise", "/kill", "/hola/x", "/exit", "/hola/x"):
        server.get(target)
        server.ready()
        for family in text_string_to_metric_families(server.metrics()):
            for sample in family.samples:
                if family.type == "counter":
                    key = f"{sample.name}{sorted(sample.labels.items())}"
                    assert sample.value >= before.get(key, 0)
                    before[key] = sample.value


@pytest.mark.promise(1)
def test_every_request_that_came_has_one_end(serve: Serve) -> None:
    server = serve("basic", workers=2)
    for target in ("/hola/x", "/constant", "/nowhere", "/raise", "/after/0.01", "/status/204", "/stream/3/3"):
        server.get(target)
    for client in server.waiting("/next/ends", 10)[:5]:
        server.until(lambda status: status["lives"]["parked"] >= 5)
        client.close()
    server.until_parked(5)
    server.publish("ends", b"x")
    counts = server.until_zero()["counts"]
    assert counts["accepted"] == counts["answered"] + sum(counts["cancelled"].values()) == 17


# The command line


def test_status_once_tells_the_same_words_in_a_terminal(serve: Serve) -> None:
    server = serve("basic")
    server.waiting("/next/seen", 3)
    server.until_parked(3)
    for words in (["--once"], []):
        ended = run("status", *words, *whom(server), XDG_RUNTIME_DIR=str(server.folder))
        assert ended.returncode == 0, ended.stderr
        assert re.search(r"parked\D+3", ended.stdout), ended.stdout
        assert "seen" in ended.stdout
        assert "\x1b" not in ended.stdout
    told = json.loads(run("status", "--json", "--pid", str(server.pid), XDG_RUNTIME_DIR=str(server.folder)).stdout)
    assert told["lives"]["parked"] == 3


def test_status_asks_an_admin_address(serve: Serve) -> None:
    port = free_port()
    serve("basic", admin=f"127.0.0.1:{port}")
    assert "ready" in run("status", "--once", "--admin", f"127.0.0.1:{port}").stdout


def test_status_says_when_nobody_is_there(short_folder: Path) -> None:
    for words in (["--pid", "1"], ["--admin", f"127.0.0.1:{free_port()}"]):
        nobody = run("status", "--once", *words, XDG_RUNTIME_DIR=str(short_folder))
        assert (nobody.returncode, bool(nobody.stderr)) == (1, True)


def test_status_asks_which_when_there_are_several(serve: Serve, short_folder: Path) -> None:
    environment = {"XDG_RUNTIME_DIR": str(short_folder)}
    servers = []
    for _ in range(2):
        server = serve("basic", environment=environment, is_ready=False)
        until("its socket", (short_folder / "parkade" / f"{server.pid}.sock").exists)
        servers.append(server)
    several = run("status", "--once", XDG_RUNTIME_DIR=str(short_folder))
    assert several.returncode == 1
    assert all(str(server.pid) in several.stderr for server in servers)


def test_routes_are_printed_with_who_answers(short_folder: Path) -> None:
    ended = run("routes", BASIC)
    assert ended.returncode == 0, ended.stderr
    lines = {line.split()[1]: line.split(maxsplit=3) for line in ended.stdout.splitlines()}
    _, _, source, kind = lines["/hola/{name}"]
    file, _, number = source.rpartition(":")
    assert (Path(BASIC).samefile(file), kind) == (True, "def hola")
    assert Path(BASIC).read_text().splitlines()[int(number) - 1].startswith('@app.get("/hola/{name}"')
    assert "constant" in lines["/constant"][3]
    assert "wait" in lines["/standing-next"][3]
    assert "async def " in run("routes", str(APPS / "coroutines.py")).stdout.splitlines()[0]


def test_routes_tells_what_is_easily_overlooked(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(
        "from parkade import App, after, channel, query\napp = App()\n"
        "@app.get('/{a}', deadline=2.5)\ndef first(a: str): return a\n"
        "app.get('/news/next', channel('news').next(timeout=30))\n"
        "app.get('/bids/all', query('select * from bids'))\n"
        "@app.every('10 seconds')\ndef clean() -> None: ...\n"
    )
    ended = run("routes", file, "--directory", tmp_path)
    assert ended.returncode == 0, ended.stderr
    lines = {line.split()[1]: " ".join(line.split()[2:]) for line in ended.stdout.splitlines()}
    assert lines["/{a}"] == "shop.py:3 def first, deadline 2.5 s"
    assert lines["/news/next"] == "shop.py:5 wait: next message of news, at most 30 s, no worker"
    assert lines["/bids/all"] == "shop.py:6 wait: query: select * from bids, no worker"
    assert lines["clean"] == "shop.py:7 def, queue default, retries 3, every 10 s", ended.stdout
    told = json.loads(run("routes", file, "--json").stdout)
    assert [told["routes"][0][key] for key in ("name", "handler", "source")] == ["first", "shop:first", f"{file}:3"]
    assert [route["shadowed"] for route in told["routes"]][:2] == [[], []]
    assert told["recurring"][0]["when"] == "every 10 s"


def test_check_says_whether_it_would_start(tmp_path: Path) -> None:
    assert run("serve", BASIC, "--check", "--bind", "127.0.0.1:0").returncode == 0
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name")
    ended = run("serve", str(broken), "--check", "--bind", "127.0.0.1:0")
    assert (ended.returncode, "nothing_of_this_name" in ended.stderr) == (1, True)
    assert run("serve", BASIC, "--check", "--deadline", "soon").returncode == 2


def test_version_and_help() -> None:
    assert re.match(r"parkade \d+\.\d+\.\d+ \(", run("--version").stdout)
    told = run("serve", "--help").stdout
    assert "--deadline" in told
    assert "PARKADE_" in told
    assert run().returncode == 2


@pytest.mark.promise(8)
@pytest.mark.parametrize(("size", "status"), [(524_288, 0), (524_289, 1)])
@pytest.mark.parametrize("how", ["--pid", "--admin"])
def test_the_command_line_publishes_a_message_up_to_the_limit(serve: Serve, how: str, size: int, status: int) -> None:
    address = f"127.0.0.1:{free_port()}"
    server = serve("basic", admin=address)
    poll = server.connect().ask("GET", "/next/long")
    server.until_parked(1)
    ended = subprocess.run(
        [PARKADE, "publish", "long", "-", how, str(server.pid) if how == "--pid" else address],
        input=b"x" * size,
        capture_output=True,
        env=clean_environment(XDG_RUNTIME_DIR=str(server.folder)),
        timeout=20,
    )
    assert ended.returncode == status, ended.stderr
    if status == 0:
        assert poll.answer().body == b"x" * size
    else:
        assert b"524288" in ended.stderr.replace(b",", b"")
        server.until_parked(1)


# Settings


@pytest.mark.parametrize(
    ("flags", "variables", "file", "says"),
    [
        (["--deadlin", "3"], {}, "", "--deadline"),
        ([], {"PARKADE_DEADLIN": "3"}, "", "PARKADE_DEADLINE"),
        ([], {}, "deadlin = 3", "deadline"),
        ([], {}, "[deadline]\nx = 1", "takes"),
        ([], {}, "deadline = ", "not valid TOML"),
        (["--deadline", "soon"], {}, "", "write a duration"),
        ([], {"PARKADE_DEADLINE": "soon"}, "", "environment variable PARKADE_DEADLINE"),
        ([], {}, 'deadline = "soon"', "parkade.toml"),
        (["--workers", "0"], {}, "", "1 or more"),
        (["--body-limit", "much"], {}, "", "write a size"),
        (["--log-format", "xml"], {}, "", "json"),
    ],
)
def test_a_setting_that_is_none_is_refused_with_advice(
    tmp_path: Path, flags: list[str], variables: dict[str, str], file: str, says: str
) -> None:
    settings = tmp_path / "parkade.toml"
    settings.write_text(file)
    ended = run("serve", BASIC, "--config", str(settings), *flags, **variables)
    assert ended.returncode == 2
    assert says in ended.stderr


@pytest.mark.parametrize(
    ("file", "variable", "flag", "told"),
    [
        (None, None, None, 30),
        ("11s", None, None, 11),
        ("11s", "12s", None, 12),
        ("11s", "12s", "13s", 13),
        (None, "12s", None, 12),
        ("11s", None, "0", None),
    ],
)
def test_a_flag_beats_the_environment_which_beats_the_file(
    serve: Serve, tmp_path: Path, file: str | None, variable: str | None, flag: str | None, told: float | None
) -> None:
    if file is not None:
        (tmp_path / "parkade.toml").write_text(f'deadline = "{file}"\n')
    environment = {} if variable is None else {"PARKADE_DEADLINE": variable}
    server = serve("basic", deadline=flag, environment=environment, folder=tmp_path)
    assert server.status()["limits"]["deadline"] == told


def test_the_target_and_lists_may_stand_in_the_file(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from parkade import App\napp = App()\napp.get('/x', 'x')\n")
    (tmp_path / "parkade.toml").write_text('bind = ["127.0.0.1:0", "127.0.0.2:0"]\nworkers = 1\n')
    server = serve("shop:app", folder=tmp_path, bind=None, workers=None)
    assert len(server.addresses) == 2
    assert server.get("/x").text == "x"


def test_the_folder_of_the_application_can_be_set(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import os\nfrom parkade import App\napp = App()\napp.get('/cwd', os.getcwd())\n")
    server = serve("shop:app", directory=tmp_path)
    assert server.get("/cwd").text == str(tmp_path)


# The access log


def lines(server: Server, count: int) -> list[str]:
    until(f"{count} lines of the access log", lambda: len(server.printed().splitlines()) >= count, told=server.printed)
    return server.printed().splitlines()


def test_a_json_line_tells_queue_run_and_park_apart(serve: Serve) -> None:
    server = serve("basic", access_log="json")
    server.get("/after/0.2?x=1", "User-Agent: me/1")
    first = json.loads(lines(server, 1)[0])
    assert (first["method"], first["path"], first["status"], first["client"]) == (
        "GET",
        "/after/0.2?x=1",
        200,
        "127.0.0.1",
    )
    assert first["user_agent"] == "me/1"
    assert 200 <= first["park_ms"] < 2_000
    assert first["run_ms"] < 200
    assert abs(first["total_ms"] - first["queue_ms"] - first["run_ms"] - first["park_ms"]) < 1
    running = server.connect().ask("GET", "/hold/log")
    server.until_running(1)
    queued = server.connect().ask("GET", "/hola/x")
    server.until(lambda status: status["lives"]["queued"] == 1)
    server.open_gate("log")
    running.answer()
    queued.answer()
    told = {one["path"]: one for one in map(json.loads, lines(server, 3))}
    assert told["/hola/x"]["queue_ms"] > 0
    assert told["/hold/log"]["run_ms"] >= told["/hola/x"]["queue_ms"] * 0.5
    assert told["/hola/x"]["bytes"] == len("Hola x")


def test_every_kind_of_end_has_its_line(serve: Serve) -> None:
    server = serve("basic", access_log="json")
    for target in ("/constant", "/nowhere", "/raise", "/stream/3/10"):
        server.get(target)
    left = server.connect().ask("GET", "/next/left")
    server.until_parked(1)
    left.close()
    told = {one["path"]: (one["status"], one["ending"]) for one in map(json.loads, lines(server, 5))}
    assert told == {
        "/constant": (200, "done"),
        "/nowhere": (404, "done"),
        "/raise": (500, "done"),
        "/stream/3/10": (200, "done"),
        "/next/left": (0, "client left"),
    }


@pytest.mark.python_only("an application of ASGI")
def test_a_client_that_leaves_with_a_complete_response_was_served(serve: Serve) -> None:
    """Its application has only not said that the body, as long as announced, is complete."""
    server = serve("raw_asgi", access_log="json")
    client = server.connect().ask("GET", "/sent-but-not-ended")
    assert client.answer().text == "body"
    client.close()
    told = json.loads(lines(server, 1)[0])
    assert (told["status"], told["ending"]) == (200, "done")
    assert server.status()["counts"]["cancelled"].get("client left", 0) == 0


def test_a_text_line_tells_the_same(serve: Serve) -> None:
    server = serve("basic", access_log="text")
    server.get("/after/0.05", 'User-Agent: "x')
    times = r"queue=[\d.]+ms run=[\d.]+ms park=(\d+)\.\d+ms total=[\d.]+ms"
    pattern = rf'\S+ 127\.0\.0\.1 "GET /after/0\.05" 200 10 {times} "done" "\\"x" HTTP/1\.1 id=[0-9a-f]{{32}}'
    found = re.fullmatch(pattern, lines(server, 1)[0])
    assert found
    assert int(found[1]) >= 50


def test_the_access_log_may_be_a_file(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    server = serve("basic", access_log="text", access_log_file=file)
    server.get("/hola/x")
    until("a line", lambda: "/hola/x" in file.read_text())
    assert server.printed() == ""


def test_the_log_can_be_json(serve: Serve) -> None:
    port = free_port()
    server = serve("faulty", log_format="json", bind=f"127.0.0.1:{port}")
    with Client(("127.0.0.1", port)) as client:
        client.get("/raise")
    server.until_logged("the handler of /raise raises")
    for line in server.log().splitlines():
        assert {"timestamp", "level"} <= set(json.loads(line))


def test_the_log_tells_what_runs_and_where(serve: Serve) -> None:
    server = serve("basic", bind=["127.0.0.1:0"], admin="127.0.0.1:0")
    server.until_logged(r"is starting .*basic\.p[yl] at http://127\.0\.0\.1:\d+")
    server.until_logged(r"127\.0\.0\.1:[1-9]\d+", times=2)
