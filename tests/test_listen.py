"""Where connections come from: TCP, Unix sockets, systemd; and which peers the server trusts."""

from __future__ import annotations

import grp
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.client import Client, request
from .harness.ports import free_port
from .harness.server import APPS, run
from .harness.until import until

ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_FDS"] = "1"
os.environ["LISTEN_PID"] = str(os.getpid() + int(os.environ.get("BESIDE", "0")))
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Does what systemd does: the socket is descriptor 3, announced by two variables."""


def test_it_listens_at_several_addresses_at_once(serve: Serve) -> None:
    server = serve("basic", bind=["127.0.0.1:0", "127.0.0.2:0"])
    assert len(server.addresses) == 2
    for address in server.addresses:
        with Client(address) as client:
            assert client.get("/hola/x").text == "Hola x"


@pytest.mark.also_in_perl
def test_it_listens_at_ipv6(serve: Serve) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback address")
    server = serve("basic", bind="[::1]:0")
    with Client(server.address) as client:
        assert client.get("/echo").json()["client"] == "::1"


# Unix sockets


@pytest.mark.also_in_perl
def test_it_serves_at_a_unix_socket_and_removes_the_file_at_its_end(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    server = serve("basic", bind=f"unix:{path}")
    with Client(str(path)) as client:
        told = client.get("/echo").json()
        assert (told["client"], told["scheme"]) == ("", "http")
        client.ask("GET", "/next/unix")
        server.until_parked(1)
        server.publish("unix", b"message")
        assert client.answer().body == b"message"
    assert server.stop() == 0
    assert not path.exists()


MODES = [
    # mode, group, environment, settings file
    (None, None, {}, 0o600),
    ("660", None, {}, 0o660),
    ("0666", None, {}, 0o666),
    (None, None, {"PARKADE_SOCKET_MODE": "660"}, 0o660),
]


@pytest.mark.parametrize(("mode", "group", "environment", "had"), MODES)
def test_a_socket_file_has_the_mode_of_the_setting_whatever_the_umask_is(
    serve: Serve, short_folder: Path, mode: str | None, group: str | None, environment: dict[str, str], had: int
) -> None:
    path = short_folder / "p.sock"
    prefix = [sys.executable, "-c", "import os, sys; os.umask(0); os.execv(sys.argv[1], sys.argv[1:])"]
    serve("basic", bind=f"unix:{path}", socket_mode=mode, environment=environment, prefix=prefix)
    assert stat.S_IMODE(path.stat().st_mode) == had
    with Client(str(path)) as client:
        assert client.get("/hola/x").status == 200


def test_a_socket_file_is_given_to_a_group(serve: Serve, short_folder: Path) -> None:
    groups = [group for group in grp.getgrall() if os.geteuid() == 0 or group.gr_gid in os.getgroups()]
    group = next((group for group in groups if group.gr_gid != os.getegid()), groups[0])
    path = short_folder / "p.sock"
    serve("basic", bind=f"unix:{path}", socket_mode="660", socket_group=group.gr_name)
    told = path.stat()
    assert (told.st_gid, stat.S_IMODE(told.st_mode)) == (group.gr_gid, 0o660)


def test_tcp_and_unix_may_be_bound_together(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    server = serve("basic", bind=["127.0.0.1:0", f"unix:{path}"])
    with Client(str(path)) as client:
        assert client.get("/hola/x").status == 200
    server.still_serves()


def test_a_client_that_leaves_a_unix_socket_is_noticed(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    server = serve("basic", bind=f"unix:{path}")
    client = Client(str(path)).ask("GET", "/next/unix")
    server.until_parked(1)
    client.close()
    server.until_zero()


def test_a_socket_file_that_a_dead_server_left_is_replaced(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    serve("basic", bind=f"unix:{path}").kill()
    assert path.exists()
    serve("basic", bind=f"unix:{path}")
    with Client(str(path)) as client:
        assert client.get("/hola/x").status == 200


def test_a_socket_file_of_a_living_server_is_left_to_it(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    serve("basic", bind=f"unix:{path}")
    second = serve("basic", bind=f"unix:{path}", is_ready=False)
    assert second.fails() == 1
    assert "another server uses it" in second.log()
    with Client(str(path)) as client:
        assert client.get("/hola/x").status == 200


def test_a_file_that_is_no_socket_is_never_removed(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "precious"
    path.write_text("data")
    assert serve("basic", bind=f"unix:{path}", is_ready=False).fails() == 1
    assert path.read_text() == "data"


# Other users


def test_a_port_in_use_ends_it_with_a_clear_message(serve: Serve) -> None:
    first = serve("basic")
    port = first.address[1]
    second = serve("basic", bind=f"127.0.0.1:{port}", is_ready=False)
    assert second.fails() == 1
    assert f"127.0.0.1:{port}" in second.log()
    assert "another server uses it" in second.log()
    first.still_serves()


def test_an_admin_port_in_use_does_too(serve: Serve) -> None:
    port = serve("basic").address[1]
    second = serve("basic", admin=f"127.0.0.1:{port}", is_ready=False)
    assert second.fails() == 1
    assert f"127.0.0.1:{port}" in second.log()


def test_a_restart_takes_the_port_at_once(serve: Serve) -> None:
    port = free_port()
    for _ in range(3):
        server = serve("basic", bind=f"127.0.0.1:{port}")
        client = server.connect()
        assert client.get("/hola/x").status == 200
        server.stop()
        assert client.ends()


def test_the_private_socket_is_for_its_user_alone(serve: Serve) -> None:
    server = serve("basic")
    assert stat.S_IMODE(server.private.parent.stat().st_mode) == 0o700
    server.stop()
    assert not server.private.exists()


# Socket activation


def activated(serve: Serve, listener: socket.socket, **settings: object) -> object:
    descriptor = listener.fileno()
    return serve("basic", prefix=[sys.executable, "-c", ACTIVATE, str(descriptor)], pass_fds=[descriptor], **settings)


@pytest.mark.also_in_perl
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_it_serves_the_socket_that_systemd_passes(serve: Serve, short_folder: Path, family: int) -> None:
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(short_folder / "s.sock"))
        listener.listen()
        server = activated(serve, listener, bind=f"127.0.0.1:{free_port()}")
        with Client(listener.getsockname()) as client:
            assert client.get("/hola/x").text == "Hola x"
            environment = Path(f"/proc/{server.worker_pids()[0]}/environ").read_bytes()  # type: ignore[attr-defined]
        assert b"LISTEN_FDS" not in environment, "workers must not believe that they were activated"


def test_a_socket_that_is_passed_to_another_process_is_left_alone(serve: Serve) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = activated(serve, listener, environment={"BESIDE": "1"})
        server.still_serves()  # type: ignore[attr-defined]
        assert server.address != listener.getsockname()  # type: ignore[attr-defined]


def test_a_socket_of_systemd_loses_nobody_over_a_restart(serve: Serve) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        first = activated(serve, listener)
        with Client(listener.getsockname()) as client:
            assert client.get("/hola/x").status == 200
        first.stop()  # type: ignore[attr-defined]
        between = Client(listener.getsockname()).ask("GET", "/hola/between")
        activated(serve, listener)
        assert between.answer().text == "Hola between"


def test_the_sockets_of_start_server_are_not_passed_over(serve: Serve) -> None:
    """They have to be passed as systemd does; otherwise the server would listen somewhere else."""
    told = {"SERVER_STARTER_PORT": "127.0.0.1:8000=3"}
    ended = run("serve", APPS / "basic.py", "--bind", "127.0.0.1:0", **told)
    assert (ended.returncode, "LISTEN_FDS=1" in ended.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        activated(serve, listener, environment=told)
        with Client(listener.getsockname()) as client:
            assert client.get("/hola/x").text == "Hola x"


# Trusted proxies


FORWARDED = [
    # trusted, fields, client, scheme
    (None, ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"], "127.0.0.1", "http"),
    (None, ["Forwarded: for=192.0.2.1;proto=https"], "127.0.0.1", "http"),
    ("10.0.0.0/8", ["X-Forwarded-For: 192.0.2.1"], "127.0.0.1", "http"),
    ("127.0.0.1", ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"], "192.0.2.1", "https"),
    ("127.0.0.0/8", ["Forwarded: for=192.0.2.1;proto=https"], "127.0.0.1", "http"),
    ("*", ["X-Forwarded-For: 192.0.2.1"], "192.0.2.1", "http"),
    ("127.0.0.1", ["X-Forwarded-For: 203.0.113.9, 192.0.2.1"], "192.0.2.1", "http"),
    (["127.0.0.1", "192.0.2.0/24"], ["X-Forwarded-For: 203.0.113.9, 192.0.2.1"], "203.0.113.9", "http"),
    ("127.0.0.1", ["X-Forwarded-For: rubbish"], "127.0.0.1", "http"),
    ("127.0.0.1", ["Forwarded: for=192.0.2.7;proto=https", "X-Forwarded-For: 203.0.113.9"], "203.0.113.9", "http"),
    ("127.0.0.1", ["X_Forwarded_For: 192.0.2.1"], "127.0.0.1", "http"),
]


@pytest.mark.parametrize(("trusted", "fields", "client", "scheme"), FORWARDED)
def test_forwarded_fields_count_only_from_a_trusted_peer(
    serve: Serve, trusted: object, fields: list[str], client: str, scheme: str
) -> None:
    told = serve("basic", trust=trusted).get("/echo", *fields).json()
    assert (told["client"], told["scheme"]) == (client, scheme)


@pytest.mark.parametrize(
    ("fields", "client", "scheme"),
    [
        (['Forwarded: for="[2001:db8::1]:4711";proto=https'], "2001:db8::1", "https"),
        (["Forwarded: for=192.0.2.7", "X-Forwarded-For: 203.0.113.9"], "192.0.2.7", "http"),
        (["X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https"], "127.0.0.1", "http"),
        (['Forwarded: for="', "Forwarded: for=192.0.2.7"], "192.0.2.7", "http"),
        (['Forwarded: for=6.6.6.6;proto=https;host="', "Forwarded: for=192.0.2.7;proto=http"], "192.0.2.7", "http"),
    ],
)
def test_forwarded_is_believed_instead_where_the_operator_says_so(
    serve: Serve, fields: list[str], client: str, scheme: str
) -> None:
    told = serve("basic", trust="127.0.0.1", forwarded="forwarded").get("/echo", *fields).json()
    assert (told["client"], told["scheme"]) == (client, scheme)


@pytest.mark.also_in_perl
def test_the_peer_of_a_unix_socket_can_be_trusted(serve: Serve, short_folder: Path) -> None:
    path = short_folder / "p.sock"
    serve("basic", bind=f"unix:{path}", trust="unix")
    with Client(str(path)) as client:
        told = client.get("/echo", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https").json()
    assert (told["client"], told["scheme"]) == ("192.0.2.1", "https")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--bind", "80000"], "write 8000, 127.0.0.1:8000"),
        (["--bind", "nowhere.invalid:1"], "write 8000, 127.0.0.1:8000"),
        (["--bind", "127.0.0.1:99999"], "between 0 and 65535"),
        (["--bind", "unix:"], "path is missing"),
        (["--admin", ":9000"], "name the interface"),
        (["--trust", "10.0.0.0/99"], "write a network"),
        (["--socket-mode", "432"], "write it in octal as 600"),
        (["--socket-mode", "u=rw"], "write it in octal as 600"),
        (["--socket-group", "no-such-group"], "no such group"),
    ],
)
def test_an_address_that_is_none_is_refused_with_what_to_write(flags: list[str], says: str) -> None:
    ended = run("serve", "app", *flags)
    assert ended.returncode == 2
    assert says in ended.stderr


def test_a_client_in_the_backlog_is_served_after_a_stopped_server_goes_on(serve: Serve) -> None:
    server = serve("basic")
    server.get("/hola/x")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        client = server.connect().send(request("GET", "/hola/late"))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert until("an answer", lambda: client.answer().text) == "Hola late"
