"""The application of a Django project, found by its `manage.py`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from ..errors import LoadError

SETTINGS = "DJANGO_SETTINGS_MODULE"


def application(manage_file: Path, *, wants_asgi: bool) -> tuple[str, Any]:
    """The project's application of WSGI or of ASGI, and how an error calls it. Its folder is on `sys.path` already.

    The settings are those of the environment, otherwise those that `manage.py` names. Raises `LoadError`, and whatever
    the project's modules raise.
    """
    if not os.environ.get(SETTINGS):
        os.environ[SETTINGS] = _settings_module(manage_file)
    settings: Any = importlib.import_module("django.conf").settings
    # Both are paths with dots, such as "mysite.wsgi.application", or nil.
    wsgi: str | None = settings.WSGI_APPLICATION
    path = getattr(settings, "ASGI_APPLICATION", None) or _asgi_beside(wsgi) if wants_asgi else wsgi
    if path is None:
        return _made_by_django(wants_asgi=wants_asgi)
    module, _, name = path.rpartition(".")
    if not module:
        raise LoadError(
            f"{path!r}, which the settings name as the application, is not a path such as 'mysite.wsgi.app'"
        )
    found = importlib.import_module(module)
    if not hasattr(found, name):
        raise LoadError(f"{module} has no {name!r}; the settings ({os.environ[SETTINGS]}) name it as the application")
    return path, getattr(found, name)


def _settings_module(manage_file: Path) -> str:
    """What `manage.py` sets, by `os.environ.setdefault("DJANGO_SETTINGS_MODULE", …)` or by an assignment."""
    tree = ast.parse(manage_file.read_bytes(), str(manage_file))
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=[ast.Constant(value=key), ast.Constant(value=str(module))]) if key == SETTINGS:
                return module
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value=key))], value=ast.Constant(value=str(module))
            ) if key == SETTINGS:
                return module
    raise LoadError(
        f"{manage_file} does not say which settings the project has: set {SETTINGS}, or name the application, such as "
        "mysite.wsgi:application"
    )


def _asgi_beside(wsgi: str | None) -> str | None:
    """`mysite.asgi.application`, if there is a module `mysite.asgi` next to `mysite.wsgi`."""
    package = (wsgi or "").rpartition(".")[0].rpartition(".")[0]
    if not package or importlib.util.find_spec(f"{package}.asgi") is None:
        return None
    return f"{package}.asgi.application"


def _made_by_django(*, wants_asgi: bool) -> tuple[str, Any]:
    interface = "asgi" if wants_asgi else "wsgi"
    made = getattr(importlib.import_module(f"django.core.{interface}"), f"get_{interface}_application")
    return f"django.core.{interface}.get_{interface}_application()", made()
