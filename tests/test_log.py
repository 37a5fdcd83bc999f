"""Whatever happens to the logs, the server continues; lines that could not be written are counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Application, Serve
from .harness.client import Client
from .harness.ports import free_port
from .harness.server import Server
from .harness.until import Stopwatch, until

LONG = "/hola/" + "x" * 1_000
LIMITED = ["prlimit", f"--fsize={64 << 10}"]


def ask(server: Server, count: int) -> None:
    """Requests with long lines in the access log, none of them slow."""
    with Client(server.address) as client:
        watch = Stopwatch()
        for _ in range(count):
            assert client.get(LONG).status == 200
        assert watch.seconds < 10


def until_dropped(server: Server) -> None:
    server.until(lambda status: status["log"]["lines_dropped"] > 0)
    assert "parkade_log_lines_dropped_total 0\n" not in server.metrics()


@pytest.fixture
def full_disk() -> Iterator[Path]:
    """A file system of 64 KiB, if this machine allows one."""
    folder = Path(f"/tmp/pk-full-{os.getpid()}")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    try:
        if mounted.returncode != 0:
            pytest.skip("only root may mount a small file system; /dev/full and RLIMIT_FSIZE stand in for it elsewhere")
        yield folder
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def test_a_full_disk_under_the_access_log_costs_lines_and_nothing_else(serve: Serve, full_disk: Path) -> None:
    file = full_disk / "access.log"
    server = serve("basic", access_log="text", access_log_file=file)
    ask(server, 300)
    until_dropped(server)
    assert file.stat().st_size > 30_000, "what fitted was written"
    file.write_bytes(b"")  # the operator frees space
    ask(server, 1)
    until("a line again", lambda: b"/hola/xxx" in file.read_bytes())
    server.still_serves()


def test_a_device_that_is_always_full_does_too(serve: Serve) -> None:
    server = serve("basic", access_log="json", access_log_file="/dev/full")
    ask(server, 20)
    server.until(lambda status: status["log"]["lines_dropped"] >= 20)
    server.still_serves()


@pytest.mark.skipif(not Path("/usr/bin/prlimit").exists(), reason="there is no prlimit")
def test_a_file_at_its_size_limit_does_too_and_ends_no_process(serve: Serve, tmp_path: Path) -> None:
    server = serve("basic", access_log="text", access_log_file=tmp_path / "access.log", prefix=LIMITED)
    ask(server, 200)
    until_dropped(server)
    server.still_serves()


def test_an_access_log_that_nobody_reads_never_blocks(serve: Serve) -> None:
    reader, writer = os.pipe()
    try:
        server = serve("basic", access_log="text", stdout=writer)
        ask(server, 4_000)
        until_dropped(server)
        assert server.resident_bytes < 64 << 20
        server.still_serves()
        assert server.stop() == 0, "not even the end"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.also_in_perl
def test_a_log_that_nobody_reads_never_blocks(serve: Serve) -> None:
    port = free_port()
    reader, writer = os.pipe()
    try:
        server = serve("faulty", stderr=writer, bind=f"127.0.0.1:{port}")
        with Client(("127.0.0.1", port)) as client:
            while server.status()["log"]["lines_dropped"] == 0:
                for _ in range(100):
                    assert client.get("/raise").status == 500
            assert client.get("/hola/x").status == 200
        assert server.stop() == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_a_reader_of_the_log_that_goes_away_ends_nothing(serve: Serve) -> None:
    reader, writer = os.pipe()
    server = serve("basic", access_log="text", stdout=writer)
    os.close(writer)
    ask(server, 1)
    os.close(reader)
    ask(server, 50)
    until_dropped(server)
    server.still_serves()


def test_an_access_log_that_cannot_be_opened_is_said_at_the_start(serve: Serve, tmp_path: Path) -> None:
    server = serve("basic", access_log="text", access_log_file=tmp_path / "no folder" / "access.log", is_ready=False)
    assert server.fails() == 1
    assert "access.log" in server.log()


def test_the_access_log_counts_the_bytes_of_the_body_that_was_sent(serve: Serve) -> None:
    server = serve("basic", access_log="json", body_limit="1KiB")
    client = server.connect()

    def logged(status: int, count: int) -> int:
        def lines() -> list[str]:
            return server.printed().splitlines()

        until("the line", lambda: len(lines()) == count)
        line = json.loads(lines()[-1])
        assert line["status"] == status
        bytes_sent: int = line["bytes"]
        return bytes_sent

    asked = [
        ("GET", "/hola/you", 200, 8),
        ("HEAD", "/hola/you", 200, 0),
        ("HEAD", "/stream/3/100", 200, 0),
        ("GET", "/stream/3/100", 200, 300),
        ("GET", "/status/204", 204, 0),
        ("GET", "/bodiless/304", 304, 0),
        ("GET", "/bodiless/205", 205, 0),
    ]
    for count, (method, target, status, sent) in enumerate(asked, 1):
        client.ask(method, target).answer(head=method == "HEAD")
        assert (target, logged(status, count)) == (target, sent)
    missing = client.get("/nowhere")
    assert logged(404, len(asked) + 1) == len(missing.body) > 0
    refused = server.connect().send(b"nonsense\r\n\r\n").answer()
    assert logged(400, len(asked) + 2) == len(refused.body) > 0
    client2 = server.connect2()
    refused = client2.answer(client2.ask("POST", "/digest", ("content-length", "2000"), end=False))
    assert logged(413, len(asked) + 3) == len(refused.body) > 0


@pytest.mark.also_in_perl
def test_an_application_that_does_not_load_is_told_with_its_reason_and_no_killing(
    serve: Serve, application: Application, language: str
) -> None:
    server = serve(
        application(python="import no_such_module\n", perl="use no_such_module;\n"), workers=3, is_ready=False
    )
    assert server.fails() == 1
    assert "killing a worker" not in server.log()
    assert "SIGKILL" not in server.log(), "the others are ended because of the first"
    for words in MISSING[language]:
        assert words in server.log()


MISSING = {
    "python": [
        "ERROR the application does not load: ModuleNotFoundError: No module named 'no_such_module' worker=",
        "\n  | Traceback (most recent call last):\n",
    ],
    "perl": [
        "ERROR the application does not load: Can't locate no_such_module.pm in @INC ",
        "\n  | Can't locate no_such_module.pm in @INC ",
    ],
}


CHATTY = {
    "python": """
import threading
from parkade import App

app = App()
app.get("/constant", "constant")

@app.on_start
def start():
    def chat():
        while True:
            print("chatter " * 200)
    threading.Thread(target=chat, daemon=True).start()
""",
    "perl": """
use Parkade;

get '/constant' => 'constant';

# Nobody reads it any more when the server has ended.
if (!fork) {
    1 while print 'chatter ' x 200, "\\n";
    exit;
}
1;
""",
}


@pytest.mark.also_in_perl
def test_a_worker_that_prints_without_end_delays_nobody(serve: Serve, application: Application) -> None:
    port = free_port()
    server = serve(application(**CHATTY), log_level="warn", bind=f"127.0.0.1:{port}")
    with Client(("127.0.0.1", port)) as client:
        times = []
        for _ in range(50):
            watch = Stopwatch()
            assert client.get("/constant").status == 200
            times.append(watch.seconds)
    assert sorted(times)[45] < 0.1
    assert server.resident_bytes < 64 << 20


# Texts of clients in it

EVIL = "a\r\nERROR: forged\n2026-01-01T00:00:00.000000Z ERROR forged\x1b[2J\x85\u2028\u202ez"


def sent(text: str) -> str:
    """In the form of a path or a query."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize(
    ("language", "app"), [("python", "costs"), ("python", "costs_async"), ("perl", "boom")], indirect=["language"]
)
def test_nobody_writes_a_line_of_the_log_but_the_server(serve: Serve, tmp_path: Path, app: str, format: str) -> None:
    access = tmp_path / "access"
    server = serve(app, log_format=format, log_level="debug", access_log=format, access_log_file=access)
    with server.connect() as client:
        raw = f"X-Evil: {EVIL[13:26]}\x1b[2J".replace("\n", " ")
        answer = client.ask("POST", f"/boom/{sent(EVIL)}?{sent(EVIL)}", body=EVIL.encode()).answer()
        assert answer.status == 500
        client.send(f"GET /hola/x HTTP/1.1\r\nHost: test\r\nUser-Agent: {EVIL[-6:]}\r\n{raw}\r\n\r\n".encode())
    server.admin("POST", f"/publish/{sent(EVIL)}", b"x")
    server.admin("POST", f"/jobs/{sent(EVIL)}", b"{}")
    server.until_logged("no a")
    server.until(lambda _: "/boom/" in access.read_text())
    server.stop()
    for log in (server.log(), access.read_text()):
        lines = log.split("\n")[:-1]
        assert [line for line in lines if not line.startswith(("  | ", "20", "{"))] == []
        assert [line for line in lines if re.match(r"\S+Z +ERROR forged|\S+Z +INFO ERROR: forged", line)] == []
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", log)
        if format == "json":
            told = [json.loads(line) for line in lines]
            assert [line for line in told if re.match("(ERROR: )?forged", line.get("message", ""))] == []
