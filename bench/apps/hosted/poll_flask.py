"""A long poll in Flask: the view says what it waits for, and its worker is free."""

from flask import Flask

from parkade import channel, park

app = Flask(__name__)


@app.get("/next")
def next_message():
    return park(channel("bench").next(timeout=60))
