"""Views that enqueue tasks, in transactions and outside."""

import os
import signal
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.tasks import task, task_backends
from django.urls import path
from django.utils import timezone


@task
def add(one: int, two: int) -> int:
    return one + two


@task
async def add_async(one: int, two: int) -> int:
    return one + two


@task(takes_context=True, backend="retried")
def fails_once(context: Any) -> int:
    if context.attempt == 1:
        raise ValueError("the first time")
    return int(context.attempt)


@task
def fails() -> None:
    raise ValueError("always")


SERVED = "BLACK_BOX_SERVER" in os.environ
"""This process is a worker; otherwise a command."""

TASKS = {"add": add, "add_async": add_async, "fails_once": fails_once, "fails": fails}


def enqueue(request: HttpRequest, name: str) -> JsonResponse:
    chosen = TASKS[name]
    if "later" in request.GET:
        chosen = chosen.using(run_after=timezone.now() + timedelta(seconds=float(request.GET["later"])), priority=5)
    arguments = [int(text) for text in request.GET.getlist("n")]
    return JsonResponse({"id": chosen.enqueue(*arguments).id})


async def enqueue_async(request: HttpRequest, name: str) -> JsonResponse:
    result = await TASKS[name].aenqueue(*[int(text) for text in request.GET.getlist("n")])
    return JsonResponse({"id": result.id})


def in_transaction(request: HttpRequest, end: str) -> JsonResponse:
    try:
        with transaction.atomic():
            connection.cursor().execute("select 1")
            id = add.enqueue(1, 1).id
            if end == "rollback":
                raise ValueError("rolled back")
    except ValueError:
        pass
    return JsonResponse({"id": id})


def order(request: HttpRequest, end: str) -> JsonResponse:
    """An order, and a task for it, in one transaction."""
    try:
        with nullcontext() if end == "outside" else transaction.atomic():
            return JsonResponse({"id": _order(end, request.GET.get("later"))})
    except ValueError:
        return JsonResponse({"id": None})


def _order(end: str, later: str | None) -> str | None:
    chosen = add
    if later is not None:
        chosen = add.using(run_after=timezone.now() + timedelta(seconds=float(later)), priority=5, queue_name="mail")
    cursor = connection.cursor()
    if end == "outside":
        return str(chosen.enqueue(1, 1).id)
    if end == "snapshot":
        cursor.execute("set transaction isolation level repeatable read")
        cursor.execute("select pg_sleep(10.5)")
    if end == "reading":
        cursor.execute("set transaction read only")
    else:
        cursor.execute("insert into orders (line) values (%s)", [end])
    if end == "killed":  # in the first moment after the commit
        transaction.on_commit(partial(_kill, os.getppid()))
    if end == "savepoint":
        with suppress(ValueError), transaction.atomic():
            chosen.enqueue(1, 1)
            raise ValueError("rolled back")
        return None
    with transaction.atomic() if end == "inner" else nullcontext():
        id = str(chosen.enqueue(1, 1).id)
    if end == "rollback":
        raise ValueError("rolled back")
    return id


def _kill(server: int) -> None:
    if SERVED:
        os.kill(server, signal.SIGKILL)
    os._exit(9)


def result(request: HttpRequest, alias: str, id: str) -> JsonResponse:
    try:
        found = task_backends[alias].get_result(id)
    except Exception as error:
        return JsonResponse({"missing": type(error).__name__})
    return JsonResponse(
        {
            "status": found.status,
            "value": found._return_value,
            "attempts": found.attempts,
            "errors": [error.exception_class_path for error in found.errors],
            "task": found.task.module_path,
            "priority": found.task.priority,
            "run_after": found.task.run_after,
        }
    )


def hola(request: HttpRequest, name: str) -> Any:
    from django.http import HttpResponse

    return HttpResponse(f"Hola {name}")


urlpatterns = [
    path("hola/<str:name>", hola),
    path("enqueue/<str:name>", enqueue),
    path("enqueue_async/<str:name>", enqueue_async),
    path("in_transaction/<str:end>", in_transaction),
    path("order/<str:end>", order),
    path("result/<str:alias>/<str:id>", result),
]
