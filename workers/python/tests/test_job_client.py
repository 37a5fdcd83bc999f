"""Scripts that enqueue jobs, against an admin address that does what the test says."""

from __future__ import annotations

import json
import os
import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from parkade import ConnectError, JobError, jobs

ID = "0192f3a4-5b6c-7d8e-9f01-23456789abcd"
Answers = list[tuple[int, Any]]


class Admin:
    """Gives one answer after the other, and remembers what it was asked. An answer of None ends the connection."""

    def __init__(self) -> None:
        self.answers: Answers = []
        self.asked: list[tuple[str, str, Any]] = []
        self.server: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        admin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                admin.asked.append((self.command, self.path, json.loads(body) if body else None))
                status, told = admin.answers.pop(0)
                if told is None:
                    self.close_connection = True
                    return
                data = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *arguments: Any) -> None:
                pass

            def address_string(self) -> str:
                return "test"

        return Handler


class UnixServer(HTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[Any, Any]:
        return self.socket.accept()[0], ("", 0)


@pytest.fixture
def serve() -> Iterator[Callable[..., Admin]]:
    running: list[HTTPServer] = []

    def start(*answers: tuple[int, Any], path: Path | None = None) -> Admin:
        admin = Admin()
        admin.answers = list(answers)
        kind: Any = HTTPServer if path is None else UnixServer
        admin.server = kind(("127.0.0.1", 0) if path is None else str(path), admin.handler())
        threading.Thread(target=admin.server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(admin.server)
        return admin

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_script_enqueues_and_learns_the_id_that_the_job_has(serve: Callable[..., Admin]) -> None:
    admin = serve((201, {"id": ID, "state": "ready"}), (201, {"id": ID, "state": "scheduled"}))
    with jobs.connect(admin.url) as connection:
        assert connection.options(key="k").enqueue("write_log", "x", flag=True) == ID
        assert connection.options(delay=2, priority=-1, queue="mail").enqueue("write_log") == ID
    (method, path, first), (_, _, second) = admin.asked
    assert (method, path) == ("POST", "/jobs")
    assert msgspec.msgpack.decode(b64decode(first.pop("arguments"))) == [1, ["x"], {"flag": True}]
    assert UUID(first.pop("id")).version == 7
    assert first == {"name": "write_log", "key": "k"}
    assert {key: second[key] for key in second if key not in ("id", "arguments")} == {
        "name": "write_log",
        "delay": 2,
        "priority": -1,
        "queue": "mail",
    }


def completed(value: Any) -> tuple[int, Any]:
    return 200, {"id": ID, "state": "completed", "result": b64encode(msgspec.msgpack.encode(value)).decode()}


def test_a_result_is_asked_for_until_it_is_there(serve: Callable[..., Admin]) -> None:
    admin = serve((200, {"state": "running", "result": None}), completed({"pages": 3}))
    with jobs.connect(admin.url) as connection:
        assert connection.result(ID) == {"pages": 3}
    assert [path for _, path, _ in admin.asked] == [f"/jobs/{ID}?wait=20"] * 2


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        ((200, {"state": "dead", "error": "ValueError: no"}), "dead", "ValueError: no"),
        ((200, {"state": "cancelled", "error": None}), "cancelled", "the job was cancelled"),
        ((404, {"error": "no such job"}), "missing", "no such job"),
    ],
)
def test_a_job_without_a_result_is_an_error(
    serve: Callable[..., Admin], answer: tuple[int, Any], reason: str, text: str
) -> None:
    with jobs.connect(serve(answer).url) as connection, pytest.raises(JobError) as caught:
        connection.result(ID)
    assert (caught.value.reason, caught.value.id, str(caught.value)) == (reason, ID, text)


def test_a_result_that_does_not_come_in_time_is_an_error(serve: Callable[..., Admin]) -> None:
    admin = serve((200, {"state": "ready"}))
    with jobs.connect(admin.url) as connection, pytest.raises(TimeoutError, match="after 0 seconds"):
        connection.result(ID, timeout=0)
    assert admin.asked[0][1] == f"/jobs/{ID}?wait=0"


def test_a_connection_that_has_ended_meanwhile_is_made_again(serve: Callable[..., Admin]) -> None:
    admin = serve((201, {"id": ID}), (0, None), (201, {"id": ID}))
    with jobs.connect(admin.url) as connection:
        connection.enqueue("write_log")
        assert connection.enqueue("write_log") == ID
    (_, _, second), (_, _, third) = admin.asked[1:]
    assert second["id"] == third["id"], "so that it is one job"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((507, {"error": "storage full"}), r"refused the request \(507\): storage full"),
        ((500, {}), "no reason is given"),
        ((200, b"<html>"), "--admin address"),
        ((200, b"[]"), "--admin address"),
    ],
)
def test_a_server_that_does_not_take_it_is_an_error(
    serve: Callable[..., Admin], answer: tuple[int, Any], reason: str
) -> None:
    with jobs.connect(serve(answer).url) as connection, pytest.raises(ConnectError, match=reason):
        connection.enqueue("write_log")


def test_what_cannot_be_sent_is_refused_before_anybody_is_asked() -> None:
    connection = jobs.connect("127.0.0.1:1")
    with pytest.raises(TypeError, match="argument 1"):
        connection.enqueue("write_log", object())
    with pytest.raises(ValueError, match="priority"):
        connection.options(priority=9_999).enqueue("write_log")
    for name in ("", "a\nb", "x" * 201):
        with pytest.raises(ValueError, match="a job's name must"):
            connection.enqueue(name)
    with pytest.raises(TypeError, match="must be a str"):
        connection.enqueue(7)  # type: ignore[arg-type]
    with pytest.raises(ConnectError, match="is it running"):
        connection.enqueue("write_log")


@pytest.mark.parametrize("url", ["https://x:1", "http://x", "http://x:y", "http://x:1/path", "x", "http://:1", "99999"])
def test_an_address_is_a_host_and_a_port(url: str) -> None:
    with pytest.raises(ConnectError, match="unix:FILE"):
        jobs.connect(url)


# Where the server is


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of private sockets; what else runs on this machine is not seen."""
    monkeypatch.delenv("PARKADE_ADMIN", raising=False)
    folder = tmp_path / "parkade"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr("parkade.jobs._admin._folders", lambda: [folder])
    return folder


def test_the_environment_says_where(serve: Callable[..., Admin], monkeypatch: pytest.MonkeyPatch) -> None:
    admin = serve((201, {"id": ID}))
    monkeypatch.setenv("PARKADE_ADMIN", f"{admin.url.removeprefix('http://')}, 127.0.0.1:1")
    with jobs.connect() as connection:
        assert connection.enqueue("write_log") == ID


@pytest.mark.parametrize("form", ["{port}", "{port},unix:/nowhere", "localhost:{port}", "http://127.0.0.1:{port}/"])
def test_every_form_of_an_admin_address_leads_to_the_server(
    serve: Callable[..., Admin], runtime: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    admin = serve((201, {"id": ID}))
    monkeypatch.setenv("PARKADE_ADMIN", form.format(port=admin.url.rpartition(":")[2]))
    with jobs.connect() as connection:
        assert connection.enqueue("write_log") == ID


def test_a_worker_asks_its_own_server_whatever_the_environment_says(
    serve: Callable[..., Admin], runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARKADE_ADMIN", "unix:/nowhere")
    serve((201, {"id": ID}), path=runtime / f"{os.getppid()}.sock")
    serve(path=runtime / "9.sock")
    with jobs.connect() as connection:
        assert connection.enqueue("write_log") == ID


def test_the_only_private_socket_is_meant(serve: Callable[..., Admin], runtime: Path) -> None:
    with pytest.raises(ConnectError, match="no parkade of this user"):
        jobs.connect()
    serve((201, {"id": ID}), path=runtime / "7.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(runtime / "8.sock"))
    with jobs.connect() as connection:
        assert connection.enqueue("write_log") == ID
    serve(path=runtime / "9.sock")
    with pytest.raises(ConnectError, match=r"several are running.*7\.sock.*9\.sock"):
        jobs.connect()


def test_a_folder_that_others_can_enter_is_not_looked_into(serve: Callable[..., Admin], runtime: Path) -> None:
    serve(path=runtime / "7.sock")
    runtime.chmod(0o755)
    with pytest.raises(ConnectError, match="no parkade of this user"):
        jobs.connect()


def test_folders_are_those_of_parkade_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from parkade.jobs._admin import _folders

    private = f"/tmp/parkade-{os.getuid()}"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert list(map(str, _folders())) == ["/run/user/7/parkade", private]
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert list(map(str, _folders())) == [private]
