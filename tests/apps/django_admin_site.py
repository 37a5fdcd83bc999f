"""A Django project with its admin, in one file: books with covers, which are files. `create()` makes its database."""

import os
from pathlib import Path

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

FOLDER = Path(os.environ["SITE"])

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "admin.sqlite3"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        __name__,
    ],
    MEDIA_ROOT=FOLDER / "media",
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # a test need not wait for a good one
    ROOT_URLCONF=__name__,
    SECRET_KEY="of a test",
    STATIC_URL="static/",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)
django.setup()

from django.contrib import admin  # noqa: E402 (it needs the settings)
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.http import FileResponse, HttpRequest, HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402


class Book(models.Model):
    """What the admin edits."""

    title = models.CharField(max_length=100)
    cover = models.FileField(upload_to="covers")

    class Meta:
        app_label = __name__

    def __str__(self) -> str:
        return str(self.title)


admin.site.register(Book)


def cover(request: HttpRequest, number: int) -> FileResponse:
    return FileResponse(Book.objects.get(pk=number).cover.open("rb"))


def hola(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hola {name}")


urlpatterns = [
    path("admin/", admin.site.urls),
    path("covers/<int:number>", cover),
    path("hola/<str:name>", hola),
]


def create() -> None:
    """The database, with somebody who may change everything."""
    call_command("migrate", verbosity=0)
    with connection.schema_editor() as editor:  # a project of one file has no migrations
        editor.create_model(Book)
    User.objects.create_superuser("ana", password="secret")


application = get_wsgi_application()
asgi = get_asgi_application()
