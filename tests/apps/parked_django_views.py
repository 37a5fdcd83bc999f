"""The views, and through them the jobs, are imported with the URLs."""

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.dispatch import receiver
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.cache import cache_page
from parked_waits import WAITS, write_after, write_async, write_log

from parkade import Message, after, channel, park


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


def foreign(request: HttpRequest) -> HttpResponse:
    return park(channel("news").next(timeout=20).then(own_response))  # type: ignore[no-any-return]


def own_response(message: Message | None) -> HttpResponse:
    response = HttpResponse(f"mine {message.text if message else ''}", status=203, headers={"x-mine": "yes"})
    response.set_cookie("mine", "1")
    return response


def streamed(request: HttpRequest) -> HttpResponse:
    return park(channel("news").next(timeout=20).then(streamed_response))  # type: ignore[no-any-return]


def streamed_response(message: Message | None) -> StreamingHttpResponse:
    return StreamingHttpResponse(f"{number}\n" for number in range(50_000))


def publish(request: HttpRequest, name: str) -> HttpResponse:
    channel(name).publish(request.body.decode())
    return HttpResponse("published")


def enqueue(request: HttpRequest, kind: str) -> HttpResponse:
    job = {"plain": write_log, "async": write_async, "after": write_after}[kind]
    return JsonResponse({"id": job.enqueue(request.body.decode()).id})


def raises(request: HttpRequest, name: str) -> HttpResponse:
    return park(after(0.01).then(fail, name=name))  # type: ignore[no-any-return]


def fail(outcome: None, name: str) -> None:
    raise {"missing": Http404("nothing"), "forbidden": PermissionDenied(), "mistake": LookupError("a mistake")}[name]


@receiver(got_request_exception)
def note(request: HttpRequest, **told: object) -> None:
    print(f"a signal of Django about {request.path}", flush=True)


urlpatterns = [
    path("raises/<str:name>", raises),
    path("hola/<str:name>", hola),
    path("wait/<str:name>", wait),
    path("cached/<str:name>", cache_page(60)(wait)),
    path("wait_in_loop/<str:name>", wait_in_loop),
    path("awaited", awaited),
    path("visits", visits),
    path("own", own),
    path("foreign", foreign),
    path("streamed", streamed),
    path("publish/<str:name>", publish),
    path("publish_in_thread/<str:name>", publish),
    path("enqueue/<str:kind>", enqueue),
]
