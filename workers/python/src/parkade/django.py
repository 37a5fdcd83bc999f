"""Django 6 Tasks that are jobs of Parkade: `TASKS = {"default": {"BACKEND": "parkade.django.Tasks"}}`."""

from __future__ import annotations

import os
import socket
import time
from base64 import b64decode
from datetime import datetime, timezone
from functools import partial
from traceback import format_exception
from typing import Any

import msgspec

try:
    from django.tasks import DEFAULT_TASK_QUEUE_NAME, Task, TaskContext, TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ModuleNotFoundError as error:
    raise ImportError("parkade.django needs Django 6 or newer, which has Tasks") from error

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils.json import normalize_json
from django.utils.module_loading import import_string

from ._django_store import connect_to, store_within
from ._hosting.origin import begin_job
from ._job import Job, new_id, text_of_id
from ._limits import JOB_ERROR_MAX
from ._link import port
from ._unicode import encoded
from ._wire import payloads as p
from .errors import JobError, Retry
from .jobs._arguments import encode_arguments
from .jobs._client import Connection
from .jobs._jobs import Jobs
from .jobs._values import decode_result

__all__ = ["Tasks"]


def __dir__() -> list[str]:
    return __all__


class Tasks(BaseTaskBackend):  # type: ignore[misc]
    """The backend. Tasks run in the server's workers, and survive crashes.

    ```python
    TASKS = {"default": {"BACKEND": "parkade.django.Tasks", "QUEUES": ["default", "mail"], "OPTIONS": {"retries": 5}}}
    ```

    `OPTIONS`: `retries` (0 by default: a task that raises has failed), `deadline` (seconds for one attempt; None for
    the server's), `on_commit` (True by default: a task that is enqueued in `atomic` is enqueued when that commits, and
    not at all if it does not: by the same transaction if the jobs are in its database), `in_database` (False by
    default; True: the jobs are in Django's database, so processes that are not workers store tasks there whether or not
    a server runs), `server` (the admin address of the server, for processes that are not its workers; by default as
    `parkade.connect` finds it).
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if unknown := sorted(set(self.options) - _OPTIONS):
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: OPTIONS may have {', '.join(sorted(_OPTIONS))}, not {', '.join(unknown)}"
            )
        self._retries: int = self.options.get("retries", 0)
        self._on_commit: bool = self.options.get("on_commit", True)
        self._in_database: bool = self.options.get("in_database", False)
        if self._in_database and not self._on_commit:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: in_database and on_commit=False exclude each other")
        self._name = _NAME if alias == "default" else f"{_NAME} {alias}"
        if self._name not in _jobs.jobs:  # every thread makes a backend of its own
            run = partial(_run, alias)
            job = _jobs.job(name=self._name, retries=self._retries, deadline=self.options.get("deadline"), public=False)
            job(_named(run))

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Enqueues the task. Its result is durable when this returns, or before the response that a worker answers; in
        `atomic`, with the commit if the jobs are in the same PostgreSQL database, otherwise after it.
        """
        self.validate_task(task)
        id = new_id()
        result = self._result(text_of_id(id), task, list(args), dict(kwargs), enqueued=time.time())
        told = p.EnqueueOptions(
            at=None if task.run_after is None else task.run_after.timestamp(),
            priority=int(task.priority) or None,
            queue=task.queue_name,
        )
        about = (task.module_path, result.args, result.kwargs, result.enqueued_at.timestamp(), told.at)
        job = (id, self._name, encode_arguments(self._name, about, {}), told)
        waits = self._on_commit and transaction.get_connection().in_atomic_block
        is_trusted = self._in_database and not port.is_connected()
        is_stored = (waits or is_trusted) and self._store(is_trusted, *job)
        then = partial(self._tell, result) if is_stored else partial(self._send, *job, result)
        if waits:
            transaction.on_commit(then)
        else:
            then()
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """The result of a task, asked of the server. Raises `TaskResultDoesNotExist`."""
        with self._connect() as server:
            found = server._stored(str(result_id))
        if found is None or found["name"] != self._name:
            raise TaskResultDoesNotExist(result_id)
        _, (path, args, kwargs, enqueued, at), _ = msgspec.msgpack.decode(b64decode(found["arguments"]))
        task = self._task(path, found["priority"], found["queue"], at)
        status = _STATUS[found["state"]]
        kept = decode_result(b64decode(found["result"])) if found.get("result") else {}
        # The server's clock counts milliseconds, this process's clock microseconds.
        started = found["started"] and max(found["started"], enqueued)
        ended = max(found["ended"], started or enqueued) if status in _ENDED else None
        workers = [kept.get("worker", "")] * found["attempt"]
        result = self._result(found["id"], task, args, kwargs, status, enqueued, started, ended, workers)
        if status == TaskResultStatus.FAILED:
            result.errors.append(_error_of(found["error"] or found["state"]))
        object.__setattr__(result, "_return_value", kept.get("value"))
        return result

    def _connect(self) -> Connection:
        return connect_to(self.options.get("server"))

    def _store(self, is_trusted: bool, *job: Any) -> bool:
        """Stores it through Django's own connection, in its transaction; returns whether that is possible."""
        connection = transaction.get_connection()
        is_stored = store_within(connection, self.options.get("server"), is_trusted, *job)
        if is_trusted and not is_stored:
            raise ImproperlyConfigured(
                f"TASKS[{self.alias!r}]: in_database is true, but a task cannot be stored through the connection "
                f"{connection.alias!r}: it needs the schema that `parkade serve --jobs postgresql://…` makes, the "
                "rights to select and insert there, and a transaction that may write"
            )
        return is_stored

    def _send(self, id: bytes, name: str, arguments: bytes, told: p.EnqueueOptions, result: TaskResult) -> None:
        if port.is_connected():
            _jobs.jobs[name]._send(id, arguments, told)
        else:
            with self._connect() as server:
                server._store(id, name, arguments, told)
        self._tell(result)

    def _tell(self, result: TaskResult) -> None:
        task_enqueued.send(type(self), task_result=result)

    def _task(self, path: str, priority: int | None, queue: str | None, at: float | None) -> Task:
        found = import_string(path)
        run_after = _moment(at)
        if isinstance(found, Task):
            return found.using(priority=priority, queue_name=queue, run_after=run_after, backend=self.alias)
        return self.task_class(
            func=found,
            priority=priority or 0,
            queue_name=queue or DEFAULT_TASK_QUEUE_NAME,
            run_after=run_after,
            backend=self.alias,
        )

    def _result(
        self,
        id: str,
        task: Task,
        args: list[Any],
        kwargs: dict[str, Any],
        status: TaskResultStatus = TaskResultStatus.READY,
        enqueued: float | None = None,
        started: float | None = None,
        ended: float | None = None,
        workers: list[str] | None = None,
    ) -> TaskResult:
        return TaskResult(
            task=task,
            id=id,
            status=status,
            enqueued_at=_moment(enqueued),
            started_at=_moment(started),
            last_attempted_at=_moment(started),
            finished_at=_moment(ended),
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=workers or [],
        )


_NAME = "django task"
_OPTIONS = {"deadline", "in_database", "on_commit", "retries", "server"}
_jobs = Jobs()

_STATUS = {
    "ready": TaskResultStatus.READY,
    "scheduled": TaskResultStatus.READY,
    "unknown": TaskResultStatus.READY,
    "running": TaskResultStatus.RUNNING,
    "completed": TaskResultStatus.SUCCESSFUL,
    "dead": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}
_ENDED = (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED)


def _named(run: Any) -> Any:
    def run_task(
        job: Job, path: str, args: list[Any], kwargs: dict[str, Any], enqueued: float, at: float | None
    ) -> dict[str, Any]:
        """Runs a task of Django."""
        result: dict[str, Any] = run(job, path, args, kwargs, enqueued, at)
        return result

    return run_task


def _run(
    alias: str, job: Job, path: str, args: list[Any], kwargs: dict[str, Any], enqueued: float, at: float | None
) -> dict[str, Any]:
    from django.tasks import task_backends

    begin_job(job.request_id or job.id.replace("-", ""), job.traceparent)
    backend: Tasks = task_backends[alias]
    worker = f"{socket.gethostname()}:{os.getpid()}"
    task = backend._task(path, None, None, at)
    started = time.time()
    workers = [""] * (job.attempt - 1) + [worker]
    result = backend._result(job.id, task, args, kwargs, TaskResultStatus.RUNNING, enqueued, started, workers=workers)
    task_started.send(type(backend), task_result=result)
    try:
        context = (TaskContext(task_result=result),) if task.takes_context else ()
        value = normalize_json(task.call(*context, *result.args, **result.kwargs))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        told = _in_words(error)
        result.errors.append(_error_of(told))
        object.__setattr__(result, "finished_at", _moment(time.time()))
        object.__setattr__(result, "status", TaskResultStatus.FAILED)
        task_finished.send(type(backend), task_result=result)
        raise Retry(text=told) from error
    object.__setattr__(result, "finished_at", _moment(time.time()))
    object.__setattr__(result, "status", TaskResultStatus.SUCCESSFUL)
    object.__setattr__(result, "_return_value", value)
    task_finished.send(type(backend), task_result=result)
    return {"value": value, "worker": worker}


def _in_words(error: BaseException) -> str:
    """What is stored of an exception: its class, and as much of the end of its traceback as there is room for."""
    head = f"{type(error).__module__}.{type(error).__qualname__}\n"
    inside = error.__traceback__ and error.__traceback__.tb_next  # without the line here that called the task
    told = encoded("".join(format_exception(type(error), error, inside)))
    room = JOB_ERROR_MAX - len(head.encode())
    return head + told[-room:].decode(errors="ignore")


def _error_of(told: str) -> TaskError:
    """The exception that was stored; for what is none, such as a worker that died, the text as a `JobError`."""
    path, _, traceback = told.partition("\n")
    if traceback and path.replace(".", "_").isidentifier():
        return TaskError(exception_class_path=path, traceback=traceback.rstrip("\n") + "\n")
    return TaskError(exception_class_path=f"{JobError.__module__}.{JobError.__qualname__}", traceback=told)


def _moment(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment if settings.USE_TZ else moment.astimezone().replace(tzinfo=None)
