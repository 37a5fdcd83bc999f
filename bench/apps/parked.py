"""Requests that wait long: for a timer, or for a message on a channel."""

from parkade import App, after, channel

app = App()

app.get("/constant", "Hola")
app.get("/later", after(60, "done"))
app.get("/next", channel("bench").next(timeout=60))
