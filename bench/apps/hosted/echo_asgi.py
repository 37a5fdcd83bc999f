"""The smallest echo over a WebSocket of ASGI."""


async def app(scope, receive, send):
    match scope["type"]:
        case "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})
        case "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                await send({"type": "websocket.send", "text": message["text"]})
        case other:
            raise ValueError(other)
