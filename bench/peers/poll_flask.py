"""The same long poll as `apps/hosted/poll_flask.py`, for other servers: the view waits for what `bus.py` sends."""

import os
import socket
import threading

from flask import Flask

app = Flask(__name__)


class News:
    """What the requests of this process wait for. With gevent, its threads and events are those of gevent."""

    def __init__(self) -> None:
        self._bus = socket.create_connection(("127.0.0.1", int(os.environ["BUS"])))
        self._told = threading.Event()
        self._text = b""
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, seconds: float) -> bytes | None:
        told = self._told
        self._bus.sendall(b"+")
        return self._text if told.wait(seconds) else None

    def _listen(self) -> None:
        while text := self._bus.recv(4096):
            told, self._told, self._text = self._told, threading.Event(), text
            told.set()


news = News()


@app.get("/")
def ready() -> str:
    return "ready"


@app.get("/next")
def next_message() -> tuple[bytes, int]:
    text = news.wait(60)
    return (b"", 204) if text is None else (text, 200)
