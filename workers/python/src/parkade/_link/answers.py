"""The interface between a link and an application. Answers are encoded as far as possible."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Container, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from msgspec import Struct

from .._wire import payloads as p
from .._wire.ready import Application as ReadyApplication
from ..errors import IncompleteBody

FAULTS = (Exception, SystemExit)
"""The exceptions of the application's code. A handler that calls `sys.exit` ends its request, not the worker."""


class Chunks(Iterator[bytes]):
    """The pieces of a streamed body. `close` ends it before its end, and closes the application's generator."""

    @abstractmethod
    def close(self) -> None: ...


class AsyncChunks(AsyncIterator[bytes]):
    """The same for a coroutine."""

    @abstractmethod
    async def aclose(self) -> None: ...


class Streamed(Struct, frozen=True):
    """A response whose body follows: `head` is a RESPONSE with nil for its body."""

    head: bytes
    chunks: Chunks | AsyncChunks


class Parked(Struct, frozen=True, gc=False):
    """A PARK after which the core answers by itself, or calls a function."""

    park: bytes


class Attempted(Struct, frozen=True, gc=False):
    """How an attempt of a job ended: a RESULT, or an ERROR with one of its reasons. Not for requests."""

    kind: int
    payload: bytes


class Sent(Struct, frozen=True, gc=False):
    """The code of the request has sent its answer itself, except for its end; not `is_whole`: up to a fault. A
    coroutine has sent the end as well.
    """

    is_whole: bool = True


class Handed(Struct, frozen=True, gc=False):
    """The code of the request has closed the stream itself: the core sends a file."""


class ClientLeft(Exception):
    """Nobody wants the rest of an answer."""


class BodyCutOff(ClientLeft, IncompleteBody):
    """The rest of a request's body will not come, and nobody wants an answer."""


Answer: TypeAlias = bytes | Streamed | Parked | Attempted | Sent | Handed
"""Bytes are a complete RESPONSE."""

Coming: TypeAlias = Coroutine[Any, Any, Answer]
"""An answer that a coroutine gives."""


class Plain(Struct, frozen=True):
    """An answer that a plain function gives when it is run. A concurrent link runs it in a thread."""

    run: Callable[[], Answer]


class Deferred(Struct, frozen=True):
    """An answer of a coroutine that begins after BEGAN was sent.

    `occupies` says that a plain function is in it, among hooks that are coroutines: it runs that with `port.in_thread`.
    """

    begin: Callable[[], Coming]
    occupies: bool = False


Run: TypeAlias = Callable[[p.Request], Any]
"""Answers a request: returns an `Answer`, or one that is `Coming` if concurrent."""


class Application(Protocol):
    """The application, for a link. Its methods do not raise: a fault of the application's code is an answer too."""

    @property
    def concurrent(self) -> bool:
        """Whether it needs an event loop."""

    @property
    def opens_early(self) -> Container[int | None]:
        """The routes whose requests begin before their bodies are complete, and read them by the link."""

    def ready(self) -> ReadyApplication:
        """For READY."""

    @property
    def runs(self) -> Mapping[int | None, Run]:
        """The functions that answer requests, by route."""

    @property
    def plain(self) -> frozenset[int | None]:
        """The routes whose run is a plain function, whose answer is never `Coming`."""

    @property
    def deferred(self) -> frozenset[int | None]:
        """The routes whose run is `Deferred.begin`, and occupies."""

    def call(self, stream: int, function: str, state: bytes, outcome: p.Outcome) -> Answer | Coming | Plain | Deferred:
        """Answers after a wait of a request or a job. `Coming` and `Deferred` only if concurrent."""

    def attempt(self, stream: int, run: p.Run) -> Answer | Plain | Deferred:
        """Runs a job. `Deferred` only if concurrent."""

    def failed(self, error: BaseException) -> str:
        """Logs an exception from the middle of a streamed answer; returns one line for ERROR."""

    def start(self) -> None:
        """Runs the start-up hooks, unless concurrent. Raises `LoadError`."""

    def stop(self) -> None:
        """Runs the shut-down hooks, unless concurrent."""

    async def start_concurrent(self) -> None:
        """Runs the start-up hooks in the event loop. Raises `LoadError`."""

    async def stop_concurrent(self) -> None:
        """Runs the shut-down hooks in the event loop."""


def begun(application: Application, request: p.Request) -> Answer | Coming | Plain | Deferred:
    """Begins the answer to a request of a concurrent application."""
    run = partial(application.runs[request.route], request)
    if request.route in application.plain:
        return Plain(run)
    return Deferred(run, occupies=True) if request.route in application.deferred else cast("Answer | Coming", run())


async def at_once(answer: Answer) -> Answer:
    """An answer that is there, for those who await one."""
    return answer
