"""A small answer from Flask."""

from flask import Flask, Response

app = Flask(__name__)


@app.get("/")
def hello():
    return Response("Hello world\n", mimetype="text/plain")
