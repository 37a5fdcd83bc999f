"""A route that is a constant: the core answers alone."""

from parkade import App

app = App()

app.get("/constant", "Hola")
