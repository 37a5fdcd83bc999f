"""Which framework a hosted application is of, also one that is within others."""

from __future__ import annotations

import sys
from typing import Any

from . import park
from .django_views import DjangoViews
from .flask_applications import FlaskApplications
from .framework import Framework
from .root_path import RootPath
from .search import within


def framework_of(application: Any, root_path: RootPath) -> Framework:
    """The framework of the application. `park` knows it from now on."""
    found = _found(application, root_path)
    park.place = found.place
    return found


def _found(application: Any, root_path: RootPath) -> Framework:
    if (flask := sys.modules.get("flask")) is not None and (applications := within(application, flask.Flask)):
        return FlaskApplications(applications, root_path)
    return DjangoViews(root_path) if "django.core.handlers.base" in sys.modules else Framework()
