"""An application that prints, reads, forks, starts programs and closes descriptors in every way."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

from gates import hold

from parkade import App, after

app = App(concurrent="CONCURRENT" in os.environ)

FRAME = bytes([0, 0, 0, 0, 0x34, 0, 0, 0, 0, 0, 0, 0])
"""A GOODBYE, if it is taken for one."""

os.write(1, FRAME + b"\nwritten while it loads\n")
print("printed while it loads")
subprocess.run(["echo", "told by a program while it loads"], check=True)


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/after/{seconds:float}")
def after_seconds(seconds: float) -> object:
    return after(seconds, "after")


# Printing


@app.get("/print")
def to_print() -> str:
    print("printed by the handler")
    return "done"


@app.get("/write")
def to_write() -> str:
    os.write(1, FRAME + b"\nwritten by the handler\n")
    return "done"


@app.get("/buffer")
def to_buffer() -> str:
    sys.stdout.buffer.write(FRAME + b"\nbuffered by the handler\n")
    sys.stdout.buffer.flush()
    return "done"


@app.get("/program")
def program() -> str:
    subprocess.run(["sh", "-c", "echo told by a program"], check=True)
    return "done"


@app.get("/inheriting-program")
def inheriting_program() -> str:
    subprocess.run(["sh", "-c", "echo told by a program that inherits"], check=True, close_fds=False)
    return "done"


@app.get("/shell")
def shell() -> str:
    os.system("echo told by a shell")
    return "done"


@app.get("/fork")
def fork() -> str:
    if (child := os.fork()) == 0:
        os.write(1, b"told by a child\n")
        os._exit(0)
    os.waitpid(child, 0)
    return "done"


@app.get("/multiprocessing/{how}")
def multi_processing(how: str) -> str:
    context = multiprocessing.get_context(how)
    process = context.Process(target=print, args=[f"told by a process of {how}"], kwargs={"flush": True})  # type: ignore[attr-defined]
    process.start()
    process.join(20)
    assert process.exitcode == 0, process.exitcode
    return "done"


# Reading


@app.get("/read")
def read() -> list[str]:
    told = subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout
    return [os.read(0, 100).decode(), sys.stdin.read(), told.decode()]


# Child processes that stay


@app.get("/hold/{gate}")
def hold_at(gate: str) -> str:
    print(f"holds at {gate}", flush=True)
    hold(gate)
    return "held"


@app.get("/forked/{gate}")
def forked(gate: str) -> str:
    """A daemon that keeps all its inherited descriptors, until the gate is opened."""
    if (child := os.fork()) == 0:
        os.setsid()
        hold(gate)
        os._exit(0)
    return str(child)


@app.get("/started/{gate}")
def started(gate: str) -> str:
    """The same as a separate program."""
    script = f"while ! test -e {Path(os.environ['GATES']) / gate}; do sleep 0.01; done"
    return str(subprocess.Popen(["sh", "-c", script], start_new_session=True, close_fds=False).pid)


@app.get("/helped", deadline=0.5)
def helped() -> str:
    """Starts a program, returns its process id, and waits for ever."""
    helper = subprocess.Popen(["sleep", "600"])
    print(f"helper {helper.pid}.")
    helper.wait()
    return "not reached"


# Closing


@app.get("/close-standard-streams")
def close_standard_streams() -> str:
    for descriptor in (0, 1):
        os.close(descriptor)
    return "closed"


@app.get("/close-everything")
def close_everything() -> str:
    os.closerange(3, 1_024)
    return "closed"
