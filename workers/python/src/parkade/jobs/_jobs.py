"""`Jobs`: the jobs of an application that was not written for Parkade."""

from __future__ import annotations

from ..errors import SignatureError
from ._registry import JobRegistry, pattern_of_jobs


class Jobs(JobRegistry):
    """Jobs without an `App`: for applications of Flask, Django, FastAPI and others.

    ```python
    from parkade.jobs import Jobs

    jobs = Jobs()

    @jobs.job(retries=5)
    def write_log(line: str) -> None: ...

    @app.post("/log")                   # any view of the application
    def log() -> str:
        write_log.enqueue("a line")
        return "written soon"
    ```

    `job`, `queue`, `every` and `cron` are those of `App`. A worker runs the jobs of every `Jobs` that was made while
    its application was imported; nothing else has to name them. With a `path`, clients find jobs at their addresses
    there, followed by the id, as with `App(jobs_path=…)`.

    Raises `SignatureError` for such a path with parameters, and where the worker has told the server its jobs already.
    """

    def __init__(self, *, path: str | None = None) -> None:
        super().__init__()
        self._jobs_pattern = None if path is None else pattern_of_jobs(path)
        self._check_open()
        _made.append(self)

    def _check_open(self) -> None:
        if _is_closed:
            raise SignatureError(
                "these jobs come too late: the server already knows which jobs there are. Import their module when the "
                "application is imported, not in a request"
            )

    def __repr__(self) -> str:
        return f"<Jobs {', '.join(self.jobs)}>"


_made: list[Jobs] = []
_is_closed = False  # as soon as the server has been told


def all_jobs() -> list[Jobs]:
    """Every `Jobs` of this process, in the order they were made."""
    return list(_made)


def close_all() -> None:
    """The server is told now: no job can be added any more."""
    global _is_closed
    _is_closed = True
