"""The shortest application: a greeting, given in three ways."""

from parkade import App

app = App()

app.get("/hola", "Hola")  # a constant: the core answers, no worker sees the request


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


# Its own application, because one async def makes every worker of an application run an event loop:
# parkade serve examples/hola/app.py:coroutines
coroutines = App()


@coroutines.get("/hola/{name}")
async def hola_async(name: str) -> str:
    return f"Hola {name}"
