"""An application of ASGI that takes and gives 100 MB, in pieces of 64 KiB."""

PIECE = bytes(65_536)
COUNT = 1_600


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    if scope["method"] == "POST":
        taken, more = 0, True
        while more:
            message = await receive()
            taken, more = taken + len(message["body"]), message["more_body"]
        await answer(send, str(taken).encode())
    elif scope["path"] == "/down":
        await start(send, COUNT * len(PIECE))
        for _ in range(COUNT):
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        await send({"type": "http.response.body"})
    else:
        await answer(send, b"ready")


async def start(send, length):
    fields = [(b"content-type", b"application/octet-stream"), (b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": fields})


async def answer(send, body):
    await start(send, len(body))
    await send({"type": "http.response.body", "body": body})
