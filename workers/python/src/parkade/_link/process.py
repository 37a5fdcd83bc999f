"""Turns a process into a worker: its link, its end when the core ends, its signals."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import select
import signal
import stat
import sys
from collections.abc import Callable

from .link import Link

_PR_SET_PDEATHSIG = 1  # prctl(2)


def take_link() -> Link:
    """The link, which the core left as standard input and output.

    /dev/null and the standard error replace them: the application must not read frames as its input, nor mix its
    output with them.

    Raises `OSError` if they are not pipes.
    """
    if not all(stat.S_ISFIFO(os.fstat(descriptor).st_mode) for descriptor in (0, 1)):
        raise OSError("no pipe")
    # Not inheritable (PEP 446): a program that the application starts must not keep the link open.
    link = Link(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return link


def die_with_the_core(link: Link) -> None:
    """Lets the kernel end this process when the core ends, even if it is stuck. Ends it now if the core has gone
    already.

    The link shows whether the core has gone, not getppid(): in a container the core may be process 1.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # without prctl, the end of the link must suffice
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    poll = select.poll()
    poll.register(link.reader, select.POLLHUP)
    if any(happened & (select.POLLHUP | select.POLLERR) for _, happened in poll.poll(0)):
        leave(0)


def leave_signals_to_the_core() -> None:
    """SIGUSR1 dumps the stacks to stderr, even in an endless loop. A terminal's signals are for the core, which
    informs its workers.

    The handlers are empty functions instead of SIG_IGN, which every program that the application starts would
    inherit.
    """
    if sys.stderr is not None:
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda number, frame: None)


def tell_more(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    """After the stacks of SIGUSR1, lets the loop print what else it knows, as soon as it turns."""
    faulthandler.unregister(signal.SIGUSR1)
    loop.add_signal_handler(signal.SIGUSR1, tell)
    if sys.stderr is not None:
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True, chain=True)


def write_lines_at_once() -> None:
    """Output appears when it is written, though it goes to a pipe, and survives a killed process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def leave(code: int) -> None:
    """Ends the process at once, without waiting for the application's threads and exit handlers."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
