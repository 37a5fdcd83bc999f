"""The payloads of READY and PARK, which contain waits. A wait that the reader does not accept is not a violation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from .._limits import BRANCH_FIRST, CREDIT_MAX, THREADS_MAX
from .jobs import Access, UntilResult, UntilStored
from .jobs import Job as Job
from .jobs import Queue as Queue
from .jobs import QueueOptions as QueueOptions
from .jobs import Recurring as Recurring
from .payloads import (
    AllOf,
    Answer,
    Await,
    Branch,
    Call,
    File,
    Files,
    FirstOf,
    History,
    Next,
    Response,
    Socket,
    Stream,
    Then,
    Timer,
    UntilBranches,
    UntilPublished,
    Wait,
    Watched,
    check_headers,
)
from .queries import Begin, Commit, Query, Rollback
from .values import Count, Seconds

Kind = Literal["sync", "async", "wait", "constant", "job"]


class Park(Struct, array_like=True, frozen=True):
    """`wait` is not decoded, see `read_wait`."""

    wait: list[Any]
    then: Then

    def __post_init__(self) -> None:
        check_wait(self.wait, self.then)


def check_branch(stream: int, park: Park) -> None:
    """Raises `ValueError` for a branch with a number of the core's."""
    if isinstance(park.then, Branch) and stream < BRANCH_FIRST:
        raise ValueError("a branch has a stream of 2,147,483,648 or more")


class Route(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A route, for READY. `name`, `handler` and `source` are for people (`parkade routes`)."""

    methods: list[str]
    path: str
    kind: Kind
    deadline: Seconds | None = None
    answer: Response | None = None
    wait: list[Any] | None = None
    then: Then | None = None
    cors: Count | None = None
    stream: bool = False  # its requests may come before their bodies
    body_limit: Count | None = None
    websocket: bool = False  # its requests may ask for a WebSocket
    name: str | None = None
    handler: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "constant" and self.answer is None:
            raise ValueError("answer is missing")
        if self.kind == "wait":
            if self.wait is None or self.then is None:
                raise ValueError("wait and then go with a route that waits")
            if isinstance(self.then, Await | Branch):
                raise ValueError("then of a route is answer or call")
            check_wait(self.wait, self.then)


class ChannelOptions(Struct, frozen=True, omit_defaults=True):
    """The bounds of a channel's history: messages, bytes, seconds. None is the core's default."""

    count: Count | None = None
    bytes: Count | None = None
    age: Seconds | None = None


class ChannelPattern(Struct, array_like=True, frozen=True):
    pattern: str
    options: ChannelOptions


class CorsPolicy(Struct, frozen=True, omit_defaults=True):
    """Which requests of other origins browsers are told to permit. None: whatever the client asks for."""

    origins: list[str] = []
    methods: list[str] | None = None
    headers: list[str] | None = None
    expose: list[str] = []
    credentials: bool = False
    max_age: Count | None = None

    def __post_init__(self) -> None:
        if self.credentials and "*" in self.origins:
            raise ValueError("credentials are not for any origin")


class Application(Struct, frozen=True, omit_defaults=True, kw_only=True):
    interface: str
    concurrent: bool = False
    threads: Annotated[int, Meta(ge=1, le=THREADS_MAX)] = 1
    fallback: bool = False
    fallback_kind: Literal["sync", "async"] = "async"  # in a concurrent worker
    stream: bool = False  # requests that match no route may come before their bodies
    websocket: bool = False
    routes: list[Route] = []
    channels: list[ChannelPattern] = []
    jobs: list[Job] = []
    queues: list[Queue] = []
    recurring: list[Recurring] = []
    headers: list[Any] = []
    cors: list[CorsPolicy] = []
    unmatched_cors: Count | None = None
    watch: Watched = []

    def __post_init__(self) -> None:
        check_headers(self.headers)
        numbers = (*(route.cors for route in self.routes), self.unmatched_cors)
        if any(number is not None and number >= len(self.cors) for number in numbers):
            raise ValueError("there is no such policy")
        for named in (self.jobs, self.recurring):
            names = [one.name for one in named]
            if len(set(names)) != len(names):
                raise ValueError("each name once")
        if self.threads > 1 and not self.concurrent:
            raise ValueError("more than one thread is a concurrent worker's")


class Ready(Struct, array_like=True, frozen=True):
    credit: Annotated[int, Meta(ge=0, le=CREDIT_MAX)]
    application: Application


def read_wait(wait: list[Any]) -> Wait | list[Any]:
    """The wait in a PARK or a route: typed if this version knows it, otherwise undecoded.

    Raises `ValueError` if it is not a wait at all.
    """
    if not wait or not isinstance(wait[0], str):
        raise ValueError("a wait is an array that begins with its name")
    try:
        typed: Wait = msgspec.convert(wait, Wait)
    except msgspec.ValidationError:
        return wait
    return typed


def check_wait(wait: list[Any], then: Then) -> None:
    """Raises `ValueError` if the wait and its `then` do not fit together."""
    match read_wait(wait), then:
        case (Timer(), Answer(response=None)) | (["timer", *_], Answer(response=None)):
            raise ValueError("a timer's answer is a response")
        case (Next() | Stream() | History() | UntilPublished(), Answer(response=Response())):
            raise ValueError("a channel's answer is nil")
        case (Stream(), Call() | Await() | Branch()):
            raise ValueError("a stream has only answer nil")
        case (Socket(), Answer() | Await() | Branch()):
            raise ValueError("what a client says is given to a function")
        case (Query(), Answer(response=Response())):
            raise ValueError("a query's answer is nil")
        case (UntilResult(), Answer(response=Response())):
            raise ValueError("a job's answer is nil")
        case (Access(), Answer(response=Response()) | Call() | Await() | Branch()):
            raise ValueError("access has only answer nil")
        case (File() | Files() | ["file" | "files", *_], Answer(response=Response()) | Call() | Await() | Branch()):
            raise ValueError("a file has only answer nil")
        case (["part", *_], Answer(response=None) | Call() | Await() | Branch()):
            raise ValueError("a part of a file has only a response")
        case (UntilStored(), Answer() | Call() | Branch()):
            raise ValueError("that jobs are stored is only awaited")
        case (AllOf() | FirstOf(), Answer() | Await() | Branch()):
            raise ValueError("after several waits a function is called")
        case (UntilBranches(), Answer() | Call() | Branch()):
            raise ValueError("that branches end is only awaited")
        case (Begin() | Commit() | Rollback(), Answer() | Call()):
            raise ValueError("a transaction is only awaited")
        case _:
            pass
