"""Edge cases of HTTP: unusual targets, responses that cannot be sent, lengths in responses to HEAD."""

from __future__ import annotations

from parkade import App, Request, Response, channel

app = App()
app.get("/constant/{what}", "constant")
app.get("/waits/{what}", channel("waits").next(timeout=0.01))


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/named/{name}")
def named(name: str) -> str:
    return name


@app.get("/seen/{rest:path}")
def seen(rest: str, request: Request) -> dict[str, str]:
    return {"path": request.raw_path, "query": request.query_string}


@app.get("/seen")
def seen_query(request: Request) -> dict[str, str]:
    return {"path": request.raw_path, "query": request.query_string}


@app.get("/control/{code:int}")
def control(code: int) -> Response:
    """A control character in a field's value."""
    return Response("x", headers={"x-a": f"a{chr(code)}b"})


@app.get("/announced")
def announced() -> Response:
    return Response(b"", headers={"content-length": "12345"})


@app.get("/announced-stream")
def announced_stream() -> Response:
    return Response(iter([b"12", b"345"]), headers={"content-length": "5"})


@app.get("/seen-headers")
def seen_headers(request: Request) -> dict[str, str]:
    return dict(request.headers.pairs())


@app.get("/who")
def who(request: Request) -> dict[str, str]:
    return {"client": request.client, "scheme": request.scheme, "host": request.headers["host"]}
