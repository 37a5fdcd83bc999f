"""Files as answers. The folder comes from the environment."""

import os
from pathlib import Path

from parkade import App, File, Request, Response, Wait, after

FOLDER = Path(os.environ["FILES"])

app = App()
app.files("/static", FOLDER / "static", name="static")
app.files("/aged", FOLDER / "static", max_age=60, index=None, precompressed=False, hidden_files=True)
app.get("/hola/{name}", lambda name: f"Hola {name}")
app.get("/constant", File(FOLDER / "static" / "a.txt"))


@app.get("/file")
def file(name: str) -> File:
    return File(FOLDER / name)


@app.get("/named")
def named(name: str, inline: bool = False) -> File:
    return File(
        FOLDER / "static" / "a.txt", filename=name, inline=inline, content_type="text/x", headers={"x-more": "yes"}
    )


@app.get("/within")
def within(name: str) -> File:
    return File.within(FOLDER / "static", name)


@app.get("/then")
def then() -> Wait:
    return after(0.01).then(afterwards)


def afterwards() -> File:
    return File(FOLDER / "static" / "a.txt")


@app.get("/cookie")
def cookie() -> Response:
    return Response(File(FOLDER / "static" / "a.txt")).set_cookie("a", "b")


@app.post("/posted")
def posted() -> File:
    return File(FOLDER / "static" / "a.txt")


if os.environ.get("CONCURRENT"):

    @app.get("/awaited")
    async def awaited() -> File:
        await after(0.01)
        return File(FOLDER / "static" / "a.txt")


if os.environ.get("HOOKED"):

    @app.before
    def check(request: Request) -> Response | None:
        if request.headers.get("authorization") != "yes":
            return Response("who are you?", 401)
        return Response("not for you", 403) if request.path.startswith("/static/private") else None
