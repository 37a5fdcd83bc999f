"""A small answer from Django, in one file."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="of a benchmark", MIDDLEWARE=[])


def hello(request):
    return HttpResponse("Hello world\n", content_type="text/plain")


urlpatterns = [path("", hello)]
app = get_wsgi_application()
