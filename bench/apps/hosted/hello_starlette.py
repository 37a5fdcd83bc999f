"""A small answer from Starlette."""

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def hello(request):
    return PlainTextResponse("Hello world\n")


app = Starlette(routes=[Route("/", hello)])
