"""A greeting from a plain function."""

from parkade import App

app = App()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"
