"""Who may change something at the admin addresses."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.ports import free_port
from .harness.server import APPS, run, whom
from .harness.until import until

TOKEN = "0123456789abcdef-of-the-tests"
CHANGES = ["/publish/a", "/queries/1/cancel", "/requests/1.1/cancel", "/reload", "/jobs"]


def asked(port: int, method: str, path: str, body: bytes = b"", address: str = "127.0.0.1", **headers: str) -> int:
    connection = HTTPConnection(address, port, timeout=20)
    connection.request(method, path, body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address: str = probe.getsockname()[0]
    return address


def test_with_a_token_only_that_opens_tcp(serve: Serve) -> None:
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}", admin_writes="token", environment={"PARKADE_ADMIN_TOKEN": TOKEN})
    right = {"Authorization": f"Bearer {TOKEN}"}
    origin = f"http://127.0.0.1:{port}"
    for path in CHANGES:
        assert asked(port, "POST", path) == 401
        assert asked(port, "POST", path, Authorization="Bearer wrong") == 401
        assert asked(port, "POST", path, Cookie=f"token={TOKEN}") == 401
        assert asked(port, "POST", path, Origin="http://evil.example", **right) == 403
    assert asked(port, "POST", "/publish/a", b"x" * 600_000) == 401, "also while the body is on its way"
    assert asked(port, "POST", "/publish/a", b"x", **right) == 202
    assert asked(port, "POST", "/publish/a", b"x", Origin=origin, **right) == 202
    assert asked(port, "POST", "/access", Origin=origin, **right) == 200
    assert asked(port, "GET", "/status") == 200, "everybody may read"
    assert server.publish("a", b"x"), "the private socket needs no token"


def test_a_preflight_of_another_site_gets_no_permission(serve: Serve) -> None:
    port = free_port()
    serve("basic", admin=f"127.0.0.1:{port}", admin_writes="token", environment={"PARKADE_ADMIN_TOKEN": TOKEN})
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    connection.request("OPTIONS", "/reload", headers=headers | {"Access-Control-Request-Headers": "authorization"})
    answer = connection.getresponse()
    assert answer.status == 403
    assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")]
    connection.close()


def test_by_default_programs_of_this_machine_change_things(serve: Serve) -> None:
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}")
    assert asked(port, "POST", "/publish/a", b"x") == 202
    assert asked(port, "POST", "/publish/a", b"x", Origin=f"http://127.0.0.1:{port}") == 403
    assert run("publish", "a", "x", "--admin", f"127.0.0.1:{port}").returncode == 0
    assert json.loads(server.admin("GET", "/settings")[1])["writes"] == "local"


def test_off_leaves_the_private_socket(serve: Serve) -> None:
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}", admin_writes="off")
    assert asked(port, "POST", "/publish/a", b"x") == 403
    refused = run("reload", "--admin", f"127.0.0.1:{port}")
    assert refused.returncode == 1
    assert "--admin-writes is off" in refused.stderr
    assert run("reload", *whom(server), XDG_RUNTIME_DIR=str(server.folder)).returncode == 0


CONNECTING = """
from parkade import App, connect

app = App()


@app.get("/publish")
def publish():
    with connect() as server:
        return server.publish("a", "x")
"""


@pytest.mark.python_only("its connect()")
@pytest.mark.parametrize("variable", ["{port}", "{port},unix:/nowhere", "127.0.0.1:1"])
def test_a_worker_connects_to_its_own_server(serve: Serve, tmp_path: Path, variable: str) -> None:
    """Whatever address PARKADE_ADMIN has, and whatever may be done there."""
    port = free_port()
    (tmp_path / "app.py").write_text(CONNECTING)
    environment = {"PARKADE_ADMIN": variable.format(port=port)}
    server = serve(tmp_path / "app.py", admin=f"127.0.0.1:{port}", admin_writes="off", environment=environment)
    assert server.get("/publish").status == 200


@pytest.mark.parametrize("form", ["{port}", "127.0.0.1:{port}, unix:/nowhere", "http://localhost:{port}/"])
def test_the_commands_ask_the_server_that_the_environment_names(serve: Serve, form: str) -> None:
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}")
    named = form.format(port=port)
    assert run("publish", "a", "x", PARKADE_ADMIN=named).returncode == 0
    assert run("publish", "a", "x", "--admin", named.partition(",")[0]).returncode == 0
    assert (
        run(
            "status", "--once", "--pid", str(server.pid), PARKADE_ADMIN="1", XDG_RUNTIME_DIR=str(server.folder)
        ).returncode
        == 0
    )
    refused = run("publish", "a", "x", PARKADE_ADMIN="x")
    assert (refused.returncode, "PARKADE_ADMIN names no server (x): write 9000" in refused.stderr) == (1, True)


def test_an_address_of_the_network_changes_nothing_without_a_token(serve: Serve) -> None:
    address, port = own_address(), free_port()
    serve("basic", admin=f"{address}:{port}")
    assert asked(port, "POST", "/publish/a", b"x", address) == 403
    assert asked(port, "GET", "/health/ready", b"", address) == 200


def test_the_commands_send_the_token(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    serve("basic", admin=f"127.0.0.1:{port}", admin_writes="token", admin_token_file=file)
    there = ["--admin", f"127.0.0.1:{port}"]
    refused = run("reload", *there)
    assert refused.returncode == 1
    assert "Authorization: Bearer" in refused.stderr
    assert run("reload", *there, "--admin-token-file", file).returncode == 0
    assert run("publish", "a", "x", *there, PARKADE_ADMIN_TOKEN=TOKEN).returncode == 0
    assert run("publish", "a", "x", *there, PARKADE_ADMIN_TOKEN_FILE=str(file)).returncode == 0
    assert run("status", "--once", *there).returncode == 0


def test_a_request_is_cancelled_by_its_id(serve: Serve) -> None:
    port = free_port()
    server = serve("basic", admin=f"127.0.0.1:{port}")
    (client,) = server.waiting("/after/60", 1)
    server.until_parked(1)
    events = HTTPConnection("127.0.0.1", port, timeout=20)
    events.request("GET", "/events")
    stream = events.getresponse()
    lines = iter(lambda: stream.readline().decode(), "")
    snapshot = json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))
    events.close()
    (row,) = snapshot["requests"]["timer"]
    assert (row["method"], row["route"]) == ("GET", "/after/{seconds:float}")
    assert server.admin("POST", f"/requests/{row['id']}/cancel")[0] == 202
    answer = client.answer()
    assert (answer.status, answer["x-request-id"]) == (503, row["request_id"])
    assert server.admin("POST", f"/requests/{row['id']}/cancel")[0] == 404


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["--admin-writes", "token"], "needs a token"),
        (["--admin-writes", "token", "--admin-token", "short"], "at least 16 characters"),
        (["--admin-token", TOKEN], "has no effect"),
        (["--admin-writes", "token", "--admin-token-file", "/nowhere/token"], "cannot read the admin token"),
    ],
)
def test_a_token_that_is_no_use_is_refused_at_the_start(settings: list[str], says: str) -> None:
    for words in (["serve"], ["serve", "--check"]):
        ended = run(*words, APPS / "basic.py", "--bind", "127.0.0.1:0", *settings)
        assert ended.returncode == 2, ended.stderr
        assert says in ended.stderr


def test_settings_are_shown_with_their_origin_and_without_secrets(serve: Serve, tmp_path: Path) -> None:
    secret = "s3cr3t-of-the-tests"
    environment = {"PARKADE_ADMIN_TOKEN": TOKEN, "PARKADE_DEADLINE": "7s"}
    database = f"shop=postgres://lee:{secret}@127.0.0.1:1/shop"
    server = serve(
        "basic",
        admin=f"127.0.0.1:{free_port()}",
        admin_writes="token",
        environment=environment,
        database=database,
        is_ready=False,
    )
    until("the private socket", server.private.exists)
    told = server.admin("GET", "/settings")[1].decode()
    assert secret not in told
    assert TOKEN not in told
    settings = {setting["name"]: (setting["value"], setting["origin"]) for setting in json.loads(told)["settings"]}
    assert settings["deadline"] == ("7s", "the environment variable PARKADE_DEADLINE")
    assert settings["admin-writes"] == ("token", "flag")
    assert settings["database"] == ("shop=postgres://lee:***@127.0.0.1:1/shop", "flag")
    assert settings["keep-alive"] == ("75s", "default")
    assert settings["admin-token"][0] == "***"
