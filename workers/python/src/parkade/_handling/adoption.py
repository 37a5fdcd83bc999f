"""What an application has of the modules that it imports: jobs of every `Jobs`, and limits of histories."""

from __future__ import annotations

from urllib.parse import quote

from .._app import App
from .._waits.histories import limited_histories
from ..errors import LoadError, SignatureError
from ..jobs._jobs import all_jobs, close_all


def mount(app: App, root_path: str) -> None:
    """Gives the application the prefix of its links."""
    app._mount = quote(root_path, safe="/:@!$&'()*+,;=~")


def adopt(app: App) -> None:
    """Gives the application every `Jobs` that was made while it was imported. Raises `LoadError`."""
    try:
        for jobs in all_jobs():
            app._adopt(jobs)
        app._channels += limited_histories()
    except SignatureError as error:
        raise LoadError(str(error)) from error
    close_all()
