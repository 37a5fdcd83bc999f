"""A Django project with Tasks: `application` is served, `python site_of_tasks.py TESTS` runs Django's own tests."""

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

SHOP = urlsplit(os.environ.get("SHOP", ""))
"""A database in PostgreSQL; without one it is a file."""

NOW: dict[str, Any] = {"BACKEND": "parkade.django.Tasks", "QUEUES": []}
if "IN_DATABASE" in os.environ:
    NOW["OPTIONS"] = {"in_database": True}

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": SHOP.path[1:],
            "HOST": SHOP.hostname,
            "PORT": SHOP.port,
            "USER": SHOP.username,
        }
        if SHOP.path
        else {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": Path(os.environ.get("GATES", ".")) / "db.sqlite3",
            "TEST": {"NAME": ":memory:"},
        }
    },
    INSTALLED_APPS=[],
    LOGGING={"version": 1, "loggers": {"django.tasks": {"level": "DEBUG"}}},
    MIDDLEWARE=[],
    ROOT_URLCONF="urls_of_tasks",
    SECRET_KEY="of a test",
    TASKS={"default": NOW, "immediate": NOW, "retried": {**NOW, "OPTIONS": {"retries": 2}}},
    USE_TZ=True,
)

if __name__ == "__main__":
    from django.test.runner import DiscoverRunner

    django.setup()
    sys.exit(bool(DiscoverRunner(verbosity=2, exclude_tags=["left out"]).run_tests(sys.argv[1:])))

application: Any = get_asgi_application() if "ASGI" in os.environ else get_wsgi_application()
