"""A form that says back what was typed, two seconds later. Nobody is busy in these two seconds."""

from html import escape
from pathlib import Path

from parkade import App, HTTPError, Response, Wait, after, html

FIELD_LENGTH_MAX = 1_000  # then: 422. The answer is kept in the core, which takes at most 64 KiB for one

FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Delayed echo</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css">
<main class="card"><h1>Delayed echo</h1>
<form action="/echo">
  <label>Say something <input name="field" maxlength="1000" autofocus></label> <button>Echo</button>
</form>
"""
FOLDER = Path(__file__).parent

app = App()

app.get("/", html(FORM))
app.get("/style.css", Response((FOLDER.parent / "style.css").read_text(), headers={"content-type": "text/css"}))


@app.get("/echo")
def echo(field: str = "") -> Response | Wait:
    if not field:
        return html(FORM)
    if len(field) > FIELD_LENGTH_MAX:
        raise HTTPError(422, f"field: at most {FIELD_LENGTH_MAX} characters")
    return after(2, html(f"{FORM}<p>You said: {escape(field)}"))
