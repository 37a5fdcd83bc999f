"""The views, and through them the jobs, are imported with the URLs."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from parked_waits import WAITS, write_after, write_async, write_log

from parkade import channel, park


def mark(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    def marked(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["x-marked"] = "yes"
        if "replaced" in request.GET:
            return HttpResponse("instead", status=403)
        if "etag" in request.GET:
            response["etag"] = '"of nothing"'
        return response

    return marked


def hola(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(f"Hola {name}")


def wait(request: HttpRequest, name: str) -> HttpResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    return park(WAITS[name]())  # type: ignore[no-any-return]


async def wait_in_loop(request: HttpRequest, name: str) -> HttpResponse:
    return park(WAITS[name]())  # type: ignore[no-any-return]


async def awaited(request: HttpRequest) -> HttpResponse:
    message = await channel("news").next(timeout=20)
    return HttpResponse("" if message is None else message.text)


def visits(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(request.session.get("visits", 0)))


def own(request: HttpRequest) -> HttpResponse:
    return park(channel("news").next(timeout=20), HttpResponse(status=201, headers={"x-own": "yes"}))  # type: ignore[no-any-return]


def publish(request: HttpRequest, name: str) -> HttpResponse:
    channel(name).publish(request.body.decode())
    return HttpResponse("published")


def enqueue(request: HttpRequest, kind: str) -> HttpResponse:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return JsonResponse({"id": job.enqueue(request.body.decode()).id})


urlpatterns = [
    path("hola/<str:name>", hola),
    path("wait/<str:name>", wait),
    path("wait_in_loop/<str:name>", wait_in_loop),
    path("awaited", awaited),
    path("visits", visits),
    path("own", own),
    path("publish/<str:name>", publish),
    path("publish_in_thread/<str:name>", publish),
    path("enqueue/<str:kind>", enqueue),
]
