"""The smallest application of ASGI."""

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/plain"), (b"content-length", b"12")],
}
BODY = {"type": "http.response.body", "body": b"Hello world\n"}


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    await send(START)
    await send(BODY)
