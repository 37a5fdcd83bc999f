"""Fast requests next to slow ones that wait (/after) or block their worker (/slow)."""

import time

from parkade import App, after

app = App()


@app.get("/fast")
def fast() -> str:
    return "Hola"


@app.get("/after")
def waits() -> object:
    return after(1, "done")


@app.get("/slow")
def blocks() -> str:
    time.sleep(1)
    return "done"
