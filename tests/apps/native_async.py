"""Coroutines that read bodies while they arrive, and answer as `raw_asgi` does."""

from collections.abc import AsyncIterator

from parkade import App, Request

app = App()


@app.route("/hola/{name}", methods=["GET", "POST"], stream=True)
async def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/count", stream=True)
async def count(request: Request) -> str:
    return str(sum([len(piece) async for piece in request.stream()]))


@app.post("/large", stream=True, body_limit="150MiB")
async def large(request: Request) -> str:
    return await count(request)


@app.post("/back", stream=True)
async def back(request: Request) -> AsyncIterator[bytes]:
    async for piece in request.stream():
        yield piece


@app.get("/down/{pieces:int}")
async def down(pieces: int) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        yield b"x" * 65_536
