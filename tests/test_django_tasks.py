"""Django 6 Tasks that are jobs of Parkade: Django's own tests of backends, and tasks that views enqueue."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness import django6
from .harness.server import APPS, ROOT, Server, clean_environment
from .harness.until import until

PROJECT = APPS / "django_tasks"


@pytest.fixture(scope="module")
def python() -> Path:
    return django6.required_python()


@pytest.fixture(scope="module")
def start(serve_for_all: Serve, python: Path) -> Serve:
    folders = (ROOT / "workers" / "python" / "src", PROJECT, django6.adapted_tests())

    def serve(**settings: Any) -> Server:
        environment = {"PYTHONPATH": ":".join(map(str, folders))}
        return serve_for_all(PROJECT / "site_of_tasks.py", python=python, environment=environment, **settings)

    return serve


@pytest.fixture(scope="module")
def shared(start: Serve) -> Server:
    return start(workers=1, job_workers=2)


def result(server: Server, id: str, alias: str = "default", status: str = "SUCCESSFUL") -> Any:
    until(f"the task is {status}", lambda: server.get(f"/result/{alias}/{id}").json().get("status") == status)
    return server.get(f"/result/{alias}/{id}").json()


def test_djangos_own_tests_of_backends_pass(python: Path, start: Serve, shared: Server) -> None:
    held = start(workers=1, job_workers=0)
    folders = (ROOT / "workers" / "python" / "src", PROJECT, django6.PLACE / "adapted")
    environment = clean_environment(
        PYTHONPATH=":".join(map(str, folders)),
        HELD_AT=f"unix:{held.private}",
        RUN_AT=f"unix:{shared.private}",
    )
    ran = subprocess.run(
        [python, PROJECT / "site_of_tasks.py", "tasks"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=django6.PLACE / "adapted",
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-8000:]
    assert int(ran.stderr.rpartition("Ran ")[2].partition(" ")[0]) > 60


@pytest.mark.parametrize("way", ["enqueue", "enqueue_async"])
@pytest.mark.parametrize("task", ["add", "add_async"])
def test_a_task_runs_in_a_worker(server: Server, way: str, task: str) -> None:
    id = server.get(f"/{way}/{task}?n=3&n=4").json()["id"]
    told = result(server, id)
    assert (told["value"], told["attempts"], told["task"]) == (7, 1, f"urls_of_tasks.{task}")


def test_a_task_that_fails_says_how(server: Server) -> None:
    id = server.get("/enqueue/fails").json()["id"]
    assert result(server, id, status="FAILED")["errors"] == ["builtins.ValueError"]


def test_a_task_is_retried(server: Server) -> None:
    id = server.get("/enqueue/fails_once").json()["id"]
    told = result(server, id, "retried")
    assert (told["value"], told["attempts"]) == (2, 2)


def test_a_task_runs_later(server: Server) -> None:
    id = server.get("/enqueue/add?n=1&n=1&later=1").json()["id"]
    told = server.get(f"/result/default/{id}").json()
    assert (told["status"], told["priority"], told["run_after"] is not None) == ("READY", 5, True)
    assert result(server, id)["value"] == 2


def test_a_task_is_enqueued_with_the_commit(server: Server) -> None:
    assert result(server, server.get("/in_transaction/commit").json()["id"])["value"] == 2
    id = server.get("/in_transaction/rollback").json()["id"]
    assert server.get(f"/result/default/{id}").json() == {"missing": "TaskResultDoesNotExist"}
