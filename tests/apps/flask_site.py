"""An ordinary Flask application."""

from collections.abc import Iterator

from flask import Flask, Response, request, session, stream_with_context

app = Flask(__name__)
app.secret_key = "of a test"


@app.get("/hola/<name>")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.post("/login")
def login() -> str:
    session["name"] = request.form["name"]
    return "welcome"


@app.get("/whoami")
def whoami() -> str:
    return str(session.get("name"))


@app.post("/upload")
def upload() -> dict[str, object]:
    file = request.files["file"]
    return {"name": file.filename, "bytes": len(file.read())}


@app.get("/count/<int:end>")
def count(end: int) -> Response:
    def numbers() -> Iterator[str]:
        for number in range(end):
            yield f"{request.path} {number}\n"

    return Response(stream_with_context(numbers()), mimetype="text/plain")


@app.get("/broken")
def broken() -> str:
    raise ValueError("a mistake")
