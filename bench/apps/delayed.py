"""A function that returns a wait: its worker is free during the two seconds."""

from parkade import App, after

app = App()


@app.get("/delayed")
def delayed() -> object:
    return after(2, "done")
