"""A headless Chromium, controlled in its own protocol over a pipe: no driver, no port."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from .until import SECONDS, until

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"

WORDS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
    "about:blank",
]

LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium reads commands from descriptor 3 and writes events to descriptor 4."""


class Browser:
    """As a context manager: it runs inside the block."""

    def __enter__(self) -> Browser:
        self._folder = tempfile.TemporaryDirectory(prefix="pk-", ignore_cleanup_errors=True)
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # High numbers, so that 3 and 4 are free in the child.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out)]
        words = [
            sys.executable,
            "-c",
            LAUNCH,
            *map(str, ends),
            CHROMIUM,
            f"--user-data-dir={self._folder.name}",
            *WORDS,
        ]
        self._process = subprocess.Popen(words, pass_fds=ends, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._numbers = itertools.count(1)
        self._answers: dict[int, Any] = {}
        self._read = b""
        self._targets: list[str] = []
        self._sessions: set[str] = set()
        self.problems: list[str] = []
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self.ask("Browser.close")
        os.close(self._to)
        os.close(self._from)
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(SECONDS)
        self._folder.cleanup()

    def open(self, url: str) -> Page:
        """A new window."""
        target = self.ask("Target.createTarget", {"url": url, "newWindow": True})["targetId"]
        self._targets.append(target)
        session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._sessions.add(session)
        page = Page(self, session, target)
        for domain in ("Runtime", "Log"):
            page.ask(f"{domain}.enable")
        return page

    def close(self, page: Page) -> None:
        """Closes one window, as a user does."""
        self._targets.remove(page.target)
        self.ask("Target.closeTarget", {"targetId": page.target})

    def close_all(self) -> None:
        """Closes all windows, and forgets their errors, also those that it is told of later."""
        while self._targets:
            self.ask("Target.closeTarget", {"targetId": self._targets.pop()})
        self._sessions.clear()
        self.problems.clear()

    def ask(self, method: str, parameters: Mapping[str, Any] | None = None, session: str | None = None) -> Any:
        """Sends a command and returns its result."""
        number = next(self._numbers)
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters or {}}
        if session is not None:
            command["sessionId"] = session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while number not in self._answers:
            self._hear()
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def _hear(self) -> None:
        data = os.read(self._from, 1 << 20)
        assert data, "the browser has ended"
        *whole, self._read = (self._read + data).split(b"\0")
        for message in map(json.loads, whole):
            if "id" in message:
                self._answers[message["id"]] = message
            elif message.get("sessionId") not in self._sessions:
                pass
            elif message["method"] == "Runtime.exceptionThrown":
                self.problems.append(str(message["params"]["exceptionDetails"]))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.problems.append(str(message["params"]["entry"]))


class Page:
    """One window."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self.target = target

    def ask(self, method: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Sends a command to this window."""
        return self._browser.ask(method, parameters, self._session)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        told = self.ask("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script: str, seconds: float = SECONDS) -> Any:
        """Waits until an expression is true in the page.

        While the window loads another page there is no document for a moment, and the expression cannot be evaluated.
        """
        refused = []

        def reached() -> Any:
            try:
                return self.run(script)
            except AssertionError as error:
                refused[:] = [str(error)]
                return None

        return until(script, reached, seconds, told=lambda: (*refused, self.run("document.body?.innerText")))
