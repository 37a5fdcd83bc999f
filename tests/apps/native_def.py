"""Plain functions that read bodies while they arrive, and answer as `raw_wsgi` does."""

from collections.abc import Iterator

from parkade import App, Request

app = App()


@app.route("/hola/{name}", methods=["GET", "POST"], stream=True)
def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/count", stream=True)
def count(request: Request) -> str:
    return str(sum(len(piece) for piece in iter(lambda: request.stream().read(65_536), b"")))


@app.post("/large", stream=True, body_limit="150MiB")
def large(request: Request) -> str:
    return count(request)


@app.post("/back", stream=True)
def back(request: Request) -> Iterator[bytes]:
    return iter(lambda: request.stream().read(65_536), b"")


@app.get("/down/{pieces:int}")
def down(pieces: int) -> Iterator[bytes]:
    return (b"x" * 65_536 for _ in range(pieces))
