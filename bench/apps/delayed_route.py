"""A route that is a wait: no worker takes part."""

from parkade import App, after

app = App()

app.get("/delayed", after(2, "done"))
