"""Signals that other servers understand end and stop nothing, and a renamed access log is opened again."""

from __future__ import annotations

import os
import pty
import signal
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.until import until

ADVICE = {
    signal.SIGUSR1: "SIGUSR1 was ignored: there is no --access-log-file to reopen, and the log goes to standard error",
    signal.SIGUSR2: "SIGUSR2 was ignored: `parkade reload`, or SIGHUP, loads new code",
    signal.SIGTTIN: "SIGTTIN was ignored: the number of workers changes with --workers and a restart",
    signal.SIGTTOU: "SIGTTOU was ignored: the number of workers changes with --workers and a restart",
}


@pytest.mark.parametrize("number", ADVICE, ids=lambda number: number.name)
def test_a_signal_of_gunicorn_is_ignored_with_advice(serve: Serve, number: signal.Signals) -> None:
    server = serve("basic")
    try:
        for times in (1, 2):
            server.signal(number)
            server.until_logged(ADVICE[number], times=times)
        assert server.get("/hola/you").text == "Hola you"
    finally:
        if server.process.poll() is None:
            server.signal(signal.SIGCONT)


def test_an_access_log_that_was_renamed_is_opened_again(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    server = serve("basic", access_log="text", access_log_file=file)
    server.get("/hola/first")
    until("the first line", lambda: "first" in file.read_text())
    old = file.rename(tmp_path / "access.log.1")
    server.signal(signal.SIGUSR1)  # as in a `postrotate` for Gunicorn
    server.until_logged(f"reopened the access log {file}")
    assert file.read_text() == "", "opened at once, not with the next line"
    server.get("/hola/second")
    until("the second line", lambda: "second" in file.read_text())
    assert "first" not in file.read_text()
    assert "second" not in old.read_text()


def test_an_access_log_that_cannot_be_opened_again_goes_on_where_it_is(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    server = serve("basic", access_log="text", access_log_file=file)
    file.rename(tmp_path / "old")
    file.mkdir()
    server.signal(signal.SIGUSR1)
    server.until_logged("cannot open the access log .*; until then its lines go to the file that was open")
    server.get("/hola/you")
    until("the line", lambda: "/hola/you" in (tmp_path / "old").read_text())
    file.rmdir()
    server.signal(signal.SIGUSR1)
    server.until_logged("reopened the access log")
    server.get("/hola/next")
    until("the next line", lambda: "/hola/next" in file.read_text())


def test_an_access_log_on_standard_output_is_not_reopened(serve: Serve) -> None:
    server = serve("basic", access_log="text")
    server.signal(signal.SIGUSR1)
    server.until_logged(ADVICE[signal.SIGUSR1])


def signals(pid: int, mask: str) -> set[int]:
    """Those in `SigCgt` (caught) or `SigIgn` (ignored) of a process."""
    told = Path(f"/proc/{pid}/status").read_text()
    bits = int(told.split(f"{mask}:")[1].split()[0], 16)
    return {number for number in range(1, 65) if bits >> (number - 1) & 1}


def test_workers_inherit_nothing_of_it(serve: Serve) -> None:
    """The programs that an application starts may be stopped as usual."""
    (worker,) = serve("basic").worker_pids()
    assert not signals(worker, "SigIgn") & set(ADVICE)


def test_a_terminal_may_stop_a_server_that_writes_to_it(serve: Serve) -> None:
    """With `stty tostop`, the kernel would try each line of a background process without end."""
    assert signal.SIGTTOU in signals(serve("basic").pid, "SigCgt")
    ours, terminal = pty.openpty()
    try:
        server = serve("basic", stdout=terminal)
        assert set(ADVICE) - signals(server.pid, "SigCgt") == {signal.SIGTTOU}
    finally:
        os.close(terminal)
        os.close(ours)
