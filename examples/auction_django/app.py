"""The auction as an application of Django, in one file: views that wait, and occupy no worker meanwhile."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from parkade import BEGINNING, File, channel, limit_history, park

EXAMPLES = Path(__file__).parents[1]

settings.configure(
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.clickjacking.XFrameOptionsMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of an example",
)
limit_history("auction/*", count=1_000, age=3_600)  # an hour of bids for those who come late


@csrf_exempt
@require_POST
def bid(request: HttpRequest, lot: str) -> HttpResponse:
    try:
        body = json.loads(request.body)
    except ValueError:
        return HttpResponse("the body is not JSON", status=400, content_type="text/plain")
    match body:
        case {"bidder": str(bidder), "amount": int(amount)} if 1 <= len(bidder) <= 40 and 1 <= amount <= 1_000_000:
            channel(f"auction/{lot}").publish({"bidder": bidder, "amount": amount})
            return HttpResponse(status=202)
        case _:
            return HttpResponse("a bid has a bidder and an amount", status=422, content_type="text/plain")


def next_bid(request: HttpRequest, lot: str) -> Any:
    return park(channel(f"auction/{lot}").next(timeout=30))


def bids(request: HttpRequest, lot: str) -> Any:
    return park(channel(f"auction/{lot}").stream(since=BEGINNING))


def page(request: HttpRequest) -> Any:
    return park(File(EXAMPLES / "auction/page/index.html"))


def script(request: HttpRequest) -> Any:
    return park(File(EXAMPLES / "auction/page/auction.js"))


def style(request: HttpRequest) -> Any:
    return park(File(EXAMPLES / "style.css"))


urlpatterns = [
    path("", page),
    path("auction.js", script),
    path("style.css", style),
    path("auction/<lot>", bid),
    path("auction/<lot>/next", next_bid),
    path("auction/<lot>/bids", bids),
]
application = get_wsgi_application()
