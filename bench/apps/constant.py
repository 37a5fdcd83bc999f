"""A route that is a constant: the core answers by itself."""

from parkade import App

app = App()

app.get("/constant", "Hola")
