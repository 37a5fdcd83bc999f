"""Views of Django with transactions: `application` under WSGI, `asgi` under ASGI."""

from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from paying import pay, pay_in_loop, totals, write_within

from parkade import park

settings.configure(ALLOWED_HOSTS=["*"], DATABASES={}, MIDDLEWARE=[], ROOT_URLCONF=__name__, SECRET_KEY="of a test")
django.setup()


def paying(request: HttpRequest) -> HttpResponse:
    return JsonResponse(pay(request.body), safe=False)


async def paying_in_loop(request: HttpRequest) -> HttpResponse:
    return JsonResponse(await pay_in_loop(request.body), safe=False)


async def paying_in_thread(request: HttpRequest) -> HttpResponse:
    return JsonResponse(await sync_to_async(pay)(request.body), safe=False)


def sums(request: HttpRequest) -> HttpResponse:
    return park(totals())  # type: ignore[no-any-return]


def enqueue(request: HttpRequest, line: str) -> HttpResponse:
    return HttpResponse(write_within.enqueue(line).id)


urlpatterns = [
    path("pay", paying),
    path("pay_in_loop", paying_in_loop),
    path("pay_in_thread", paying_in_thread),
    path("totals", sums),
    path("enqueue/<line>", enqueue),
]
application: Any = get_wsgi_application()
asgi: Any = get_asgi_application()
