"""Jobs: functions that run later, in any worker, and survive crashes. Make them with `App.job`, or with
`Jobs` in applications of Flask, Django, FastAPI and others.

`connect` enqueues from a script.
"""

from ._client import Connection, ConnectionWithOptions, connect
from ._function import JobFunction, JobWithOptions
from ._handle import Handle
from ._jobs import Jobs

__all__ = ["Connection", "ConnectionWithOptions", "Handle", "JobFunction", "JobWithOptions", "Jobs", "connect"]


def __dir__() -> list[str]:
    return __all__
