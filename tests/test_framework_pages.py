"""The pages on frameworks and Perl work when they are pasted: files are written, commands print what is shown."""

from __future__ import annotations

import importlib.util
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from .conftest import Serve
from .harness import perl
from .harness.ports import free_port
from .harness.server import PARKADE, ROOT, Server, clean_environment
from .harness.until import until

PAGES = ["django", "fastapi", "flask", "litestar", "quart", "starlette"]
BLOCK = re.compile(r"^```(?:(?:python|perl|text) (?P<file>\S+)|(?P<console>console))\n(?P<text>.*?)^```$", re.M | re.S)
SECTIONS = ["Start", "Static files", "Behind a proxy"]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def commands(console: str) -> Iterator[tuple[str, str]]:
    """The command after each `$`, and its output below it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Reader:
    """Someone who follows a page in an empty folder, in one terminal."""

    def __init__(self, folder: Path, serve: Serve, stack: ExitStack) -> None:
        self._folder = folder
        self._serve = serve
        self._stack = stack
        self._bind = f"127.0.0.1:{free_port()}"
        self._waiting: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        self._numbers = itertools.count()
        self._server: Server | None = None

    def write(self, file: str, text: str) -> None:
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def type(self, command: str, expected: str) -> None:
        words = shlex.split(command)
        if words[:2] == ["parkade", "serve"]:
            self._start(words[2:])
        elif words[-1] == "&":
            self._leave_waiting(command)
        else:
            self._run(command, expected)

    def _start(self, words: list[str]) -> None:
        target, *flags, background = words
        assert background == "&"
        if self._server is not None:
            for client, _ in self._waiting:
                self._end(client)
            self._waiting.clear()
            self._server.stop()
        named = zip(flags[::2], flags[1::2], strict=True)  # each flag of a page has a value
        settings = {flag.removeprefix("--").replace("-", "_"): value for flag, value in named}
        whole = target if "/" in target or ":" in target else f"./{target}"
        self._server = self._serve(whole, folder=self._folder, bind=self._bind, **settings)

    def _leave_waiting(self, command: str) -> None:
        """A client that stays: the next command finds it parked."""
        assert self._server is not None, "the page starts the server first"
        path = self._folder / f"printed-{next(self._numbers)}"
        with path.open("wb") as printed:
            client = self._begin(f"exec {command.removesuffix('&')}", printed)
        self._stack.callback(self._end, client)
        self._waiting.append((client, self._stack.enter_context(path.open("rb"))))
        # Counted each time: a client that was answered may take a moment to end.
        self._server.until(
            lambda status: status["lives"]["parked"] == sum(client.poll() is None for client, _ in self._waiting)
        )

    def _run(self, command: str, expected: str) -> None:
        """What a terminal would show: what the command prints, and what it makes the waiting clients print."""
        pattern = re.compile(".*".join(map(re.escape, expected.strip().split("…"))), re.DOTALL)
        shown = [self._begin(command, subprocess.PIPE).communicate(timeout=60)[0].decode()]

        def is_shown() -> bool:
            shown.extend(output.read().decode() for _, output in self._waiting)
            return pattern.fullmatch("".join(shown).strip()) is not None

        until(f"{command!r} shows {expected!r}", is_shown, told=lambda: "".join(shown))

    def _begin(self, command: str, printed: int | IO[bytes]) -> subprocess.Popen[bytes]:
        command = command.replace("curl ", "curl --silent ").replace("localhost:8000", self._bind)
        environment = clean_environment(PATH=f"{PARKADE.parent}:{clean_environment()['PATH']}")
        return subprocess.Popen(["sh", "-c", command], cwd=self._folder, stdout=printed, env=environment)

    @staticmethod
    def _end(client: subprocess.Popen[bytes]) -> None:
        if client.poll() is None:
            client.terminate()
        client.wait(10)


PERL_MODULES = ("AnyEvent", "Future::AsyncAwait", "Mojolicious::Lite", "Dancer2", "Web::Simple")


def is_installed(name: str) -> bool:
    return perl.has(*PERL_MODULES) if name == "perl" else importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("name", [*PAGES, "perl"])
def test_a_page_works_when_it_is_pasted(name: str, serve: Serve, tmp_path: Path) -> None:
    if not is_installed(name):
        pytest.skip(f"what {name}.md needs is not installed")
    with ExitStack() as stack:
        reader = Reader(tmp_path, serve, stack)
        typed = 0
        for block in BLOCK.finditer(page(name)):
            if block["file"]:
                reader.write(block["file"], block["text"])
            for command, expected in commands(block["text"] if block["console"] else ""):
                reader.type(command, expected)
                typed += 1
    assert typed > 8


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_the_others_have(name: str) -> None:
    text = page(name)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS
    assert headings[-1].startswith("Coming from ")
    for shown in (
        "channel(",
        ".stream()",
        "query(",
        ".job(retries=",
        ".result(",
        "--trust",
        "--root-path",
        "parkade dev",
    ):
        assert shown in text, shown
    assert len(text.splitlines()) <= 160, "five minutes"
    assert f"({name}.md)" in (ROOT / "docs" / "migrate.md").read_text()
    assert f"(docs/{name}.md)" in (ROOT / "README.md").read_text()
