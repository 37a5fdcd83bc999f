"""The options of `App.job`: retries, deadline, queue, priority, uniqueness, and access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Raw

from .._hooks import Hook
from .._limits import RETRIES_MAX
from .._waits.wait import check_seconds
from .._wire import payloads as p
from .._wire.codec import encode_payload
from ..errors import SignatureError
from ._options import checked_priority, checked_text

QUEUE_DEFAULT = "default"  # the queue of a job that names none, here and in the core

Unique: TypeAlias = bool | Callable[..., str]
"""True: a job with the same arguments is the same job. A function of the arguments gives the key instead."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The arguments of `App.job`. Raises `SignatureError` for values that no job can have.

    `usual` are the options of an enqueue that gives none of its own, and `encoded` the same for ENQUEUE. The worker
    sends them because the core may not know the function yet: a start-up hook enqueues before READY.
    """

    name: str | None = None
    retries: int = 3
    deadline: float | None = None
    queue: str = QUEUE_DEFAULT
    priority: int = 0
    unique: Unique = False
    public: bool = True
    access: Hook | None = None
    usual: p.EnqueueOptions = field(init=False, repr=False)
    encoded: Raw = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            if not isinstance(self.retries, int) or not 0 <= self.retries <= RETRIES_MAX:
                raise ValueError(f"retries are 0 to {RETRIES_MAX}, not {self.retries!r}")
            if self.deadline is not None:
                check_seconds(self.deadline)
            checked_text("the name of a queue", self.queue)
            checked_priority(self.priority)
            if not isinstance(self.public, bool):
                raise TypeError(f"public is True or False, not {self.public!r}")
            if self.access is not None and not self.public:
                raise ValueError("with public=False a job has no address, so access has no effect")
        except (TypeError, ValueError) as error:
            raise SignatureError(f"invalid options of a job: {error}") from None
        usual = p.EnqueueOptions(
            priority=self.priority or None, queue=None if self.queue == QUEUE_DEFAULT else self.queue
        )
        object.__setattr__(self, "usual", usual)
        object.__setattr__(self, "encoded", Raw(encode_payload(usual)))

    @property
    def access_kind(self) -> Literal["public", "private", "sync", "async"]:
        """Which clients can see the job at its address, for READY."""
        if self.access is not None:
            return "async" if self.access.asynchronous else "sync"
        return "public" if self.public else "private"
