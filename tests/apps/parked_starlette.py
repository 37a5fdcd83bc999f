"""Starlette endpoints that park, behind middleware of both kinds."""

from parked_waits import WAITS, write_after, write_async, write_log
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from parkade import Message, after, channel, park


class Marking(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers["x-marked"] = "yes"
        if "replaced" in request.query_params:
            return PlainTextResponse("instead", 403)
        if "etag" in request.query_params:
            response.headers["etag"] = '"of nothing"'
        return response


async def hola(request: Request) -> Response:
    return PlainTextResponse(f"Hola {request.path_params['name']}")


def wait(request: Request) -> Response:
    """In a thread."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    return park(WAITS[request.path_params["name"]]())  # type: ignore[no-any-return]


async def wait_in_loop(request: Request) -> Response:
    return wait(request)


async def awaited(request: Request) -> Response:
    message = await channel("news").next(timeout=20)
    return PlainTextResponse(message.text if message is not None else "nothing")


async def visits(request: Request) -> Response:
    return PlainTextResponse(str(request.session.get("visits", 0)))


kept: list[Response] = []


async def keep(request: Request) -> Response:
    """A response of an earlier request."""
    if not kept:
        kept.append(park(channel("news").next(timeout=20)))
    return kept[0]


async def own(request: Request) -> Response:
    response = Response(status_code=201, headers={"x-own": "yes"})
    return park(channel("news").next(timeout=20), response)  # type: ignore[no-any-return]


async def foreign(request: Request) -> Response:
    return park(channel("news").next(timeout=20).then(own_response))  # type: ignore[no-any-return]


async def own_response(message: Message | None) -> Response:
    response = PlainTextResponse(f"mine {message.text if message else ''}", 203, {"x-mine": "yes"})
    response.set_cookie("mine", "1")
    return response


async def background(request: Request) -> Response:
    return park(after(0.01).then(with_background))  # type: ignore[no-any-return]


async def with_background(outcome: None) -> Response:
    return PlainTextResponse("", background=BackgroundTask(print, "never"))


async def streamed(request: Request) -> Response:
    return park(channel("news").next(timeout=20).then(streamed_response))  # type: ignore[no-any-return]


async def streamed_response(message: Message | None) -> Response:
    return StreamingResponse(f"{number}\n" for number in range(50_000))


async def publish(request: Request) -> Response:
    channel(request.path_params["name"]).publish((await request.body()).decode())
    return PlainTextResponse("published")


async def publish_later(request: Request) -> Response:
    text = (await request.body()).decode()
    publish = BackgroundTask(lambda: channel(request.path_params["name"]).publish(text))
    return PlainTextResponse("published soon", background=publish)


async def enqueue(request: Request) -> Response:
    job = {"plain": write_log, "async": write_async, "after": write_after}[request.path_params["kind"]]
    return JSONResponse({"id": job.enqueue((await request.body()).decode()).id})


app = Starlette(
    routes=[
        Route("/hola/{name}", hola),
        Route("/wait/{name}", wait),
        Route("/wait_in_loop/{name}", wait_in_loop),
        Route("/awaited", awaited),
        Route("/visits", visits),
        Route("/own", own),
        Route("/kept", keep),
        Route("/foreign", foreign),
        Route("/streamed", streamed),
        Route("/background", background),
        Route("/publish/{name}", publish, methods=["POST"]),
        Route("/publish_in_thread/{name}", publish_later, methods=["POST"]),
        Route("/enqueue/{kind}", enqueue, methods=["POST"]),
    ],
    middleware=[
        Middleware(GZipMiddleware, minimum_size=500),
        Middleware(SessionMiddleware, secret_key="of a test"),
        Middleware(Marking),
    ],
)
