"""Work after a response: it may end within the grace when its worker has to go, and not later."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Serve
from .harness import perl, processes
from .harness.server import Server
from .harness.until import Stopwatch, until

HOOKS_SECONDS = 2
"""What every worker has in any case, for its hooks."""

KINDS: dict[str, dict[str, Any]] = {
    "asgi": {},
    "psgi": {"language": "perl"},
    "psgi pure": {"language": "perl", "environment": {"PARKADE_ACCELERATOR": "0"}},
}

Start = Callable[..., Server]


@pytest.fixture(params=KINDS)
def start(request: pytest.FixtureRequest, serve: Serve) -> Start:
    """Starts a server with that kind of worker."""
    kind = KINDS[request.param]
    is_perl = kind.get("language") == "perl"
    if is_perl and not perl.has("JSON::PP"):
        pytest.skip("there is no Perl")
    target = perl.app("after_response.psgi") if is_perl else "after_response"
    return lambda **settings: serve(target, **{"workers": 1} | kind | settings)


def occupied(server: Server) -> tuple[str, int]:
    """A gate for which the worker waits, after its response has come; and that worker."""
    gate = server.new_gate()
    assert server.get(f"/{gate}").text == "done"
    server.until_logged("works in")
    return gate, server.worker_pids()[0]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=["reload", "stop"])
def test_work_after_a_response_ends_before_its_worker_does(start: Start, number: signal.Signals) -> None:
    server = start(grace="10m")
    gate, worker = occupied(server)
    server.signal(number)
    server.until_logged("reload complete" if number == signal.SIGHUP else "shutting down")
    watch = Stopwatch()
    until("it has had more time than for its hooks", lambda: watch.seconds > HOOKS_SECONDS + 1)
    assert processes.is_alive(worker)
    server.open_gate(gate)
    server.until_logged("has worked")
    until("it has ended", lambda: not processes.is_alive(worker))
    assert server.stop() == 0 if number == signal.SIGHUP else server.ended() == 0
    assert "killing a worker" not in server.log()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=["reload", "stop"])
def test_work_after_a_response_ends_with_the_grace(start: Start, number: signal.Signals) -> None:
    """A coroutine is cancelled shortly before; nothing but its worker can be ended in Perl."""
    server = start(grace="500ms")
    _, worker = occupied(server)
    server.signal(number)
    server.until_logged(
        "1 requests that were still running were cancelled|killing a worker: the grace period has expired"
    )
    until("it has ended", lambda: not processes.is_alive(worker))
    assert "has worked" not in server.log()
    assert server.stop() == 0 if number == signal.SIGHUP else server.ended() == 0
