"""An ordinary Django application under ASGI, in one file."""

import json
import os
import threading
from pathlib import Path

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import connection
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from event_streams import begun, three

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(os.environ["GATES"]) / "db.sqlite3"}},
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=[
        "django.middleware.common.CommonMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
    ],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a test",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
)
django.setup()


async def hola(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hola {name}")


def query(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"a": request.GET["a"], "b": request.GET.getlist("b")})


async def order(request: HttpRequest) -> HttpResponse:
    told = json.loads(request.body)
    return JsonResponse({"item": told["item"], "count": 2 * told["count"]})


def upload(request: HttpRequest) -> HttpResponse:
    file = request.FILES["file"]
    return JsonResponse({"name": file.name, "bytes": file.size})


def count(request: HttpRequest, end: int) -> HttpResponse:
    return StreamingHttpResponse((f"{number}\n" for number in range(end)), content_type="text/plain")


async def events(request: HttpRequest) -> HttpResponse:
    return StreamingHttpResponse(three(), content_type="text/event-stream")


async def endless(request: HttpRequest) -> HttpResponse:
    return StreamingHttpResponse(begun(), content_type="text/event-stream")


def shared(request: HttpRequest) -> HttpResponse:
    """What the database tells, from a thread."""
    with connection.cursor() as cursor:
        cursor.execute("select 'from the ' || 'start'")
        return HttpResponse(cursor.fetchone()[0])


def thread(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(threading.current_thread() is threading.main_thread()))


def whoami(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.headers["x-name"])


def cookie(request: HttpRequest) -> HttpResponse:
    visits = int(request.COOKIES.get("visits", 0))
    response = JsonResponse({"visits": visits})
    response.set_cookie("visits", str(visits + 1))
    return response


def url(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.build_absolute_uri())


def file(request: HttpRequest) -> FileResponse:
    return FileResponse(Path(__file__).open("rb"), content_type="text/plain")


def broken(request: HttpRequest) -> HttpResponse:
    raise ValueError("a mistake")


urlpatterns = [
    path("hola/<str:name>", hola),
    path("query", query),
    path("orders", order),
    path("upload", upload),
    path("count/<int:end>", count),
    path("events", events),
    path("endless", endless),
    path("shared", shared),
    path("thread", thread),
    path("whoami", whoami),
    path("cookie", cookie),
    path("url", url),
    path("file", file),
    path("broken", broken),
]

application = get_asgi_application()
