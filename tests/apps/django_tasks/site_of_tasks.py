"""A Django project with Tasks: `application` is served, `python site_of_tasks.py TESTS` runs Django's own tests."""

import os
import sys
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application

NOW: dict[str, Any] = {"BACKEND": "parkade.django.Tasks", "QUEUES": []}

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
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

application = get_wsgi_application()
