"""Django views that park: `application` under WSGI, `asgi` under ASGI."""

import os
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(os.environ["GATES"]) / "db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.sessions", "django.contrib.auth", "django.contrib.contenttypes"],
    MIDDLEWARE=[
        "django.middleware.gzip.GZipMiddleware",
        "django.middleware.http.ConditionalGetMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "parked_django_views.mark",
    ],
    ROOT_URLCONF="parked_django_views",
    SECRET_KEY="of a test",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
)
django.setup()

application: Any = get_wsgi_application()
asgi: Any = get_asgi_application()
