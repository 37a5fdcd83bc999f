"""The fixtures: a scripted core, and workers under it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from parkade._compiled import NAMES, VARIABLE, accelerator, state
from parkade._session.hello import MESSAGES
from parkade._wire import frames as f
from parkade._wire.codec import FROM_WORKER, read

PACKAGE = Path(__file__).parents[1] / "src"
ID = bytes.fromhex("0192f3a45b6c7d8e9f0123456789abcd")  # of a job that the core runs
SECONDS = 20  # a worker that says nothing for so long is broken


class Link:
    """The core's ends of the two pipes."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0)

    def sendall(self, data: bytes) -> None:
        while data:
            data = data[self._writer.write(data) :]

    def recv(self, count: int) -> bytes:
        if not select.select([self._reader], [], [], SECONDS)[0]:
            raise TimeoutError("the worker says nothing")
        return self._reader.read(count)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class Core:
    """A core that does what the test says. Frames of the worker are told as (name, stream, payload)."""

    def __init__(self, target: str, folder: Path, info: dict[str, Any], features: int = 0) -> None:
        requests, to_worker = os.pipe()
        from_worker, answers = os.pipe()
        self.link = Link(from_worker, to_worker)
        self._decoder = f.Decoder()
        self._frames: list[tuple[str, int, Any]] = []
        self._stream = 0
        self.said: list[str] = []  # what came so far, BEGAN included, which `next` reads over
        self.process = subprocess.Popen(
            [sys.executable, "-m", "parkade", target],
            stdin=requests,
            stdout=answers,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
            env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        )
        os.close(requests)
        os.close(answers)
        self.send(f.HELLO, 0, [1, 1, MESSAGES | features, {"core": "test", "target": target} | info])

    def send(self, kind: int, stream: int, payload: Any, flags: int = 0) -> None:
        data = payload if isinstance(payload, bytes) else msgspec.msgpack.encode(payload)
        self.link.sendall(f.frame(kind, stream, data, flags))

    def next(self) -> tuple[str, int, Any]:
        """The worker's next frame; ("END", 0, None) at the end of the link."""
        while not self._frames:
            data = self.link.recv(65_536)
            if not data:
                return "END", 0, None
            for kind, flags, stream, payload in self._decoder.feed(data):
                name = f.NAMES[kind] + ("+" if flags & f.MORE else "")
                self.said.append(f"{name} {stream}" if stream else name)
                value = read(FROM_WORKER, kind, stream, payload)
                if kind != f.BEGAN:
                    self._frames.append((name, stream, value))
        return self._frames.pop(0)

    def names(self, count: int) -> list[str]:
        """The next frames, told shortly: `RESPONSE 1`."""
        return [f"{name} {stream}" for name, stream, _ in (self.next() for _ in range(count))]

    def ready(self) -> Any:
        """What READY tells."""
        assert self.next()[0] == "HELLO"
        name, _, ready = self.next()
        assert name == "READY", ready
        return ready

    def requests(self, *routes: int) -> list[int]:
        """Opens streams with requests in one write, so that the worker reads them together; gives their numbers."""
        streams = [self.number() for _ in routes]
        requests = [[route, [], None, b"", ["GET", "/", "", [], "", "http", "1.1"]] for route in routes]
        frames = [
            f.frame(f.REQUEST, stream, msgspec.msgpack.encode(request))
            for stream, request in zip(streams, requests, strict=True)
        ]
        self.link.sendall(b"".join(frames))
        return streams

    def bodies(self, *routes: int) -> list[Any]:
        """The bodies of the RESPONSEs to requests that are read together, in their order."""
        streams = self.requests(*routes)
        told = {stream: (name, payload) for name, stream, payload in (self.next() for _ in routes)}
        assert [told[stream][0] for stream in streams] == ["RESPONSE"] * len(routes), told
        return [told[stream][1].body for stream in streams]

    def request(self, route: int | None, *parameters: str, **more: Any) -> int:
        """Opens a stream with a request; gives its number."""
        stream = self.number()
        headers = [text for pair in more.get("headers", {}).items() for text in (pair[0], pair[1].encode())]
        target = [more.get("method", "GET"), more.get("path", "/"), more.get("query", "")]
        head = [*target, headers, "127.0.0.1", more.get("scheme", "http"), "1.1"]
        payload = [route, list(parameters), None, more.get("body", b""), head]
        self.send(f.REQUEST, stream, payload, more.get("flags", 0))
        return stream

    def run(self, name: str, *args: Any, attempt: int = 1, deadline: float | None = None, **kwargs: Any) -> int:
        """Opens a stream with a job; gives its number."""
        stream = self.number()
        arguments = msgspec.msgpack.encode([1, args, kwargs])
        self.send(f.RUN, stream, [ID, name, attempt, deadline, arguments])
        return stream

    def result(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What a job gives; its ERROR when it fails."""
        stream = self.run(name, *args, **kwargs)
        kind, at, payload = self.next()
        assert at == stream
        return msgspec.msgpack.decode(payload.result) if kind == "RESULT" else payload

    def number(self) -> int:
        self._stream += 1
        return self._stream

    def answer(self, route: int | None, *parameters: str, **more: Any) -> Any:
        """The RESPONSE to a request."""
        stream = self.request(route, *parameters, **more)
        name, at, payload = self.next()
        assert (name, at) == ("RESPONSE", stream), payload
        return payload

    def end(self) -> tuple[int, str]:
        """Says goodbye; gives the worker's exit code and what it printed."""
        self.send(f.GOODBYE, 0, ["stopping", ""])
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, printed = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, printed


StartCore = Callable[..., Core]


@pytest.fixture
def core(tmp_path: Path) -> Iterator[StartCore]:
    """Starts a worker with this source as its application, under a scripted core."""
    started: list[Core] = []

    def start(source: str, target: str = "application", features: int = 0, **info: Any) -> Core:
        (tmp_path / "application.py").write_text(source)
        started.append(Core(target, tmp_path, info, features))
        return started[-1]

    yield start
    for one in started:
        one.link.close()
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.fixture(params=["compiled", "python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs with the accelerator and without it, here and in workers."""
    if request.param == "compiled":
        if state != "used":
            pytest.skip(f"the accelerator is {state}")
        return
    monkeypatch.setenv(VARIABLE, "0")
    for name in NAMES:
        monkeypatch.setattr(accelerator, name, lambda *arguments: None)
