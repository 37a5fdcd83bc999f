"""The same greeting from a coroutine."""

from parkade import App

app = App()


@app.get("/hola/{name}")
async def hola(name: str) -> str:
    return f"Hola {name}"
