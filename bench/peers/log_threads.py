"""A thread for each connection, the work in a pool of threads: `log_threads.py PORT`. Just enough HTTP for it."""

import os
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

FILE = os.open(os.environ["LOG_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
WORKERS = 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nDoobie Doo"

pool = ThreadPoolExecutor(WORKERS)


def main() -> None:
    # As a program that says nothing of it: SIGTERM ends it at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=4096) as listener:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    pending = b""
    with connection:
        while True:
            while b"\r\n\r\n" not in pending:
                if not (piece := connection.recv(65536)):
                    return
                pending += piece
            head, _, pending = pending.partition(b"\r\n\r\n")
            size = length(head)
            while len(pending) < size:
                pending += connection.recv(65536)
            body, pending = pending[:size], pending[size:]
            if head.startswith(b"POST"):
                pool.submit(write_log, body, 1 if head.startswith(b"POST /later") else 0)
            connection.sendall(ANSWER)


def length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def write_log(line: bytes, seconds: float) -> None:
    if seconds:
        time.sleep(seconds)
    os.write(FILE, line + b"\n")


if __name__ == "__main__":
    main()
