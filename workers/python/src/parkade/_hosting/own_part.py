"""What a hosted application has of Parkade: jobs, histories of channels, functions after waits."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Literal

import msgspec

from .._app import App
from .._handling.adoption import adopt
from .._handling.handling import Handling
from .._log import format_error
from .._wire.ready import Application as ReadyApplication
from ..errors import LoadError
from ..jobs._jobs import all_jobs
from .framework import Framework


def own_part(dev: bool, framework: Framework) -> Handling:
    """An `App` without routes of its own, which has what the hosted application has declared. Raises `LoadError`."""
    _import_urls()
    paths = [jobs._jobs_pattern for jobs in all_jobs() if jobs._jobs_pattern is not None]
    if len({path.path for path in paths}) > 1:
        raise LoadError("jobs have one path: give it to one Jobs() alone")
    app = App(jobs_path=None)
    app._jobs_pattern = paths[0] if paths else None
    adopt(app)
    return Handling(app, dev, concurrent=True, calling=framework)


def ready(
    own: Handling, interface: str, concurrent: bool, kind: Literal["sync", "async"] = "async"
) -> ReadyApplication:
    """For READY. Requests that match none of its routes go to the application, which has routes of its own."""
    told = own.ready()
    jobs = told.jobs if concurrent else [msgspec.structs.replace(job, kind="sync") for job in told.jobs]
    return msgspec.structs.replace(
        told,
        interface=interface,
        concurrent=concurrent,
        fallback=True,
        fallback_kind=kind if concurrent else "async",
        stream=True,
        jobs=jobs,
    )


def _import_urls() -> None:
    """Django imports its URLs, and with them views and their jobs, with the first request, and makes backends of Tasks
    when it needs them: too late for READY.
    """
    if "django.core.handlers.base" not in sys.modules:
        return
    apps = import_module("django.apps").apps
    settings = import_module("django.conf").settings
    if not (settings.configured and apps.ready and getattr(settings, "ROOT_URLCONF", None)):
        return
    try:
        import_module("django.urls").get_resolver().url_patterns  # noqa: B018
        if hasattr(settings, "TASKS"):  # Django 6
            import_module("django.tasks").task_backends.all()
    except BaseException as error:
        raise LoadError(format_error(error, loading=True)) from error
