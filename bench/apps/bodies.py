"""The same as `hosted/bodies.py` in Parkade's own interface."""

from collections.abc import AsyncIterator, Iterator

from parkade import App, Request

PIECE = bytes(65_536)
COUNT = 1_600

app = App()


@app.post("/up", stream=True)
async def up(request: Request) -> str:
    taken = 0
    async for piece in request.stream():
        taken += len(piece)
    return str(taken)


@app.get("/down")
async def down() -> AsyncIterator[bytes]:
    for _ in range(COUNT):
        yield PIECE


@app.post("/def/up", stream=True)
def up_def(request: Request) -> str:
    body, taken = request.stream(), 0
    while piece := body.read1():
        taken += len(piece)
    return str(taken)


@app.get("/def/down")
def down_def() -> Iterator[bytes]:
    return (PIECE for _ in range(COUNT))
