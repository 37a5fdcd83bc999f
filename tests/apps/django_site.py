"""An ordinary Django application, in one file."""

import os
from pathlib import Path

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(os.environ["GATES"]) / "db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.sessions", "django.contrib.auth", "django.contrib.contenttypes"],
    MIDDLEWARE=[
        "django.middleware.common.CommonMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
    ],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a test",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    FORCE_SCRIPT_NAME=None,
)
django.setup()


def hola(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hola {name}")


def visits(request: HttpRequest) -> JsonResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    return JsonResponse({"visits": request.session["visits"]})


def rows(request: HttpRequest) -> StreamingHttpResponse:
    """Streams what a cursor of the database gives."""
    cursor = connection.cursor()
    cursor.execute(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < %s) select i from n",
        [int(request.GET["count"])],
    )
    return StreamingHttpResponse(f"{row[0]}\n" for row in cursor)


def told(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"url": request.build_absolute_uri(), "secure": request.is_secure(), "body": len(request.body)})


urlpatterns = [
    path("hola/<str:name>", hola),
    path("visits", visits),
    path("rows", rows),
    path("told", told),
]

application = get_wsgi_application()
