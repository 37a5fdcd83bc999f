"""Runs a server, and sends its processes what is posted to a port: `bus.py PORT COMMAND…`. They need something of the
kind for a message to all (usually Redis), and a server whose workers all wait could not take the POST.

Each process connects to the port in the variable BUS, sends a byte for each request that begins to wait, and receives
the messages. A GET says how many began to wait since the last message.
"""

import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

processes: list[socket.socket] = []
waiting = 0
lock = threading.Lock()


class Bus(BaseHTTPRequestHandler):
    """Where messages are posted."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(f"waiting: {waiting}\n".encode())

    def do_POST(self) -> None:
        global waiting
        text, waiting = self.rfile.read(int(self.headers["Content-Length"])), 0
        for process in processes:
            process.sendall(text)
        self._answer(b"")

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, text: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def accept(listener: socket.socket) -> None:
    while True:
        process, _ = listener.accept()
        processes.append(process)
        threading.Thread(target=count, args=(process,), daemon=True).start()


def count(process: socket.socket) -> None:
    global waiting
    while begun := process.recv(4096):
        with lock:
            waiting += len(begun)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Bus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = os.environ | {"BUS": str(listener.getsockname()[1])}
    sys.exit(subprocess.run(sys.argv[2:], env=environment).returncode)


if __name__ == "__main__":
    main()
