"""One failure is one record, with what is needed to find its cause; `logging` keeps levels, names and fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Kind, Serve
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import Server
from .harness.until import until


def records(server: Server) -> list[dict[str, Any]]:
    """The log of a server with `--log-format json`."""
    return [json.loads(line) for line in server.log().splitlines()]


def found(server: Server, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The only record that matches; waits for it."""
    until("the record", lambda: any(map(matches, records(server))))
    (record,) = filter(matches, records(server))
    return record


def error_of(kind: Kind, text: str) -> str:
    """An exception with this text, as records tell it: in Perl it has no type."""
    return text if "LANGUAGE" in kind else f"ValueError: {text}"


def said(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda record: text in record["message"]


@pytest.fixture
def server(serve: Serve, kind: Kind) -> Server:
    return serve("failing", environment=kind, log_format="json", workers=1)


@pytest.mark.also_in_perl
def test_a_failure_is_one_record(server: Server, kind: Kind) -> None:
    assert server.get("/raise/boom?x=1").status == 500
    record = found(server, said("boom"))
    error = error_of(kind, "boom")
    assert record["message"] == f"GET /raise/boom: {error}"
    assert (record["level"], record["exception"]) == ("ERROR", error)
    assert (record["method"], record["path"], record["route"]) == ("GET", "/raise/boom", "GET /raise/{what}")
    if "LANGUAGE" not in kind:  # in Perl, an error says where it occurred
        assert record["traceback"].startswith("Traceback (most recent call last):\n")
        assert "in fails" in record["traceback"]
    assert record["worker"] == 1
    assert record["pid"] in {worker["pid"] for worker in server.status()["workers"]}


@pytest.mark.also_in_perl
def test_a_failure_after_a_wait_knows_its_route(server: Server) -> None:
    assert server.get("/raise-later").status == 500
    record = found(server, said("later"))
    assert (record["level"], record["route"]) == ("ERROR", "GET /raise-later")


@pytest.mark.also_in_perl
def test_a_failure_in_a_streamed_answer_is_one_record(server: Server, kind: Kind) -> None:
    targets = ("/pieces", "/pieces/async") if "CONCURRENT" in kind else ("/pieces",)
    for target in targets:
        with pytest.raises(AssertionError):  # it ends too early
            server.get(target)
        record = found(server, lambda record, route=f"GET {target}": record.get("route") == route)
        assert (record["level"], record["exception"]) == ("ERROR", error_of(kind, "in the middle"))
    about = [record for record in records(server) if "in the middle" in json.dumps(record)]
    assert len(about) == len(targets)


@pytest.mark.also_in_perl
def test_a_query_that_fails_names_its_request(server: Server) -> None:
    assert server.get("/query").status == 500
    record = found(server, said("a query failed"))
    assert (record["level"], record["query"]) == ("ERROR", "selct 1")
    assert record["request"].startswith("GET /query (")


@pytest.mark.also_in_perl
def test_a_worker_that_dies_is_a_warning_with_its_request(server: Server) -> None:
    assert server.get("/die").status == 502
    record = found(server, said("a worker died: exit status 3"))
    assert (record["level"], record["worker"]) == ("WARN", 1)
    assert record["requests"].startswith("GET /die (")


@pytest.mark.also_in_perl
def test_a_stop_is_no_death(server: Server) -> None:
    assert server.stop() == 0
    assert not [record for record in records(server) if record["level"] in ("WARN", "ERROR")]


@pytest.mark.parametrize(("number", "level"), [(20, "INFO"), (25, "INFO"), (30, "WARN"), (40, "ERROR"), (50, "ERROR")])
def test_logging_keeps_level_logger_and_fields(serve: Serve, kind: Kind, number: int, level: str) -> None:
    server = serve("failing", environment=kind, log_format="json")
    assert server.get(f"/log/{number}").status == 204
    record = found(server, said("told"))
    assert (record["level"], record["logger"], record["route"]) == (level, "shop", "GET /log/{level:int}")
    assert (record["count"], record["who"], record["extra_level"]) == (3, {"name": "Ana"}, "mine")


def test_a_lone_surrogate_is_escaped(server: Server) -> None:
    assert server.get("/surrogate/raised").status == 500
    record = found(server, said("surrogate/raised"))
    assert (record["level"], record["exception"]) == ("ERROR", "ValueError: \\ud800")
    assert record["traceback"].endswith("ValueError: \\ud800")
    assert server.get("/surrogate/logged").status == 204
    record = found(server, said("caf"))
    assert (record["message"], record["who"], record["level"]) == ("caf\\udce9", {"\\ud800": ["\\udfff"]}, "ERROR")
    assert server.get("/surrogate/answered").json()["detail"] == "no \\ud800"
    assert len([record for record in records(server) if record["level"] == "ERROR"]) == 2


def test_the_log_tells_which_event_loop_runs_coroutines(serve: Serve) -> None:
    server = serve("coroutines", log_format="json", log_level="debug")
    assert re.fullmatch("coroutines run on (asyncio|uvloop).*", found(server, said("coroutines run on"))["message"])


def test_the_level_of_the_server_is_that_of_logging(serve: Serve, kind: Kind) -> None:
    server = serve("failing", environment=kind, log_format="json", log_level="debug")
    server.get("/log/10?text=detail")
    assert found(server, said("detail"))["level"] == "DEBUG"
    port = free_port()  # the log does not tell it
    server = serve("failing", environment=kind, log_format="json", log_level="warn", bind=f"127.0.0.1:{port}")
    with Client(("127.0.0.1", port)) as client:
        for target in ("/log/20?text=hidden", "/print?text=hidden", "/raise/shown", "/log/30?text=shown"):
            client.get(target)
        assert client.get("/die").status == 502
    found(server, said("a worker died"))
    assert {(record["level"], "shown" in record["message"]) for record in records(server)} >= {
        ("ERROR", True),
        ("WARN", True),
    }
    assert "hidden" not in server.log()


def test_logging_has_the_route_of_what_runs(server: Server) -> None:
    assert server.get("/log-later").text == "logged"
    assert found(server, said("after the wait"))["route"] == "GET /log-later"
    assert server.get("/log-exception").text == "on"
    record = found(server, said("it went on"))
    assert (record["exception"], record["logger"]) == ("KeyError: 'caught'", "root")
    assert "logs_exception" in record["traceback"]
    server.get("/thread")
    record = found(server, said("in a thread"))
    assert (record["level"], record["message"]) == ("ERROR", "the thread mine: ValueError: in a thread")


@pytest.mark.parametrize("setting", ["logging.basicConfig(level='DEBUG')", "logging.config.dictConfig(SETTINGS)"])
def test_an_application_that_configures_logging_keeps_it(serve: Serve, tmp_path: Any, setting: str) -> None:
    file = tmp_path / "configured.py"
    file.write_text(
        "import logging, logging.config\n"
        "from parkade import App\n"
        "SETTINGS = {'version': 1, 'formatters': {'f': {'format': 'X %(message)s'}},\n"
        "    'handlers': {'h': {'class': 'logging.StreamHandler', 'formatter': 'f'},\n"
        "                 'own': {'class': 'logging.FileHandler', 'filename': 'own.log', 'formatter': 'f'}},\n"
        "    'root': {'level': 'DEBUG', 'handlers': ['h', 'own']}}\n"
        f"{setting}\n"
        "app = App()\n"
        "app.get('/constant', 'constant')\n"
        "@app.get('/hola/{name}')\n"
        "def hola(name: str): logging.getLogger('a.b').warning('hola %s', name); return name\n"
    )
    server = serve(file, log_format="json")
    server.get("/hola/Ana")
    record = found(server, said("hola Ana"))
    assert (record["message"], record["level"], record["logger"]) == ("hola Ana", "WARN", "a.b")


@pytest.mark.also_in_perl
def test_what_is_printed_is_info_and_no_record(server: Server) -> None:
    forged = '\x1e0123456789abcdef{"level":"error","message":"forged"}'
    assert server.get("/print?text=hello").status == 204
    server.until_logged("hello", times=2)
    server.get("/print?text=" + "".join(f"%{byte:02X}" for byte in forged.encode()))
    server.until_logged("forged", times=2)
    assert {record["level"] for record in records(server) if "worker" in record} == {"INFO"}


def test_in_text_the_traceback_belongs_to_its_record(serve: Serve, kind: Kind) -> None:
    server = serve("failing", environment=kind)
    server.get("/raise/boom")
    server.until_logged("GET /raise/boom: ValueError: boom")
    lines = server.log().splitlines()
    begin = next(at for at, line in enumerate(lines) if "ValueError: boom" in line)
    assert 'exception="ValueError: boom" method="GET" path="/raise/boom" route="GET /raise/{what}"' in lines[begin]
    assert lines[begin + 1] == "  | Traceback (most recent call last):"
    assert "  | ValueError: boom" in lines


def test_a_record_is_shortened_and_never_torn(server: Server) -> None:
    server.get("/log/30?text=" + "%01" * 9_000)
    record = found(server, lambda record: record.get("logger") == "shop")
    assert len(record["message"]) >= 4_000
    server.get("/raise/" + "y" * 20_000)
    record = found(server, lambda record: "exception" in record)
    assert record["level"] == "ERROR"
    assert record["route"] == "GET /raise/{what}"
