"""A shop in five modules. This file only puts the parts together: nothing in `shop` imports it."""

from pathlib import Path

from shop import accounts, books, orders
from shop.pages import pages

from parkade import App, Request, Response, redirect

FOLDER = Path(__file__).parent

app = App(redirect_slashes=True)
app.get("/", redirect("/books"))
app.get("/style.css", Response((FOLDER.parent / "style.css").read_text(), headers={"content-type": "text/css"}))
app.include(accounts.router)
app.include(books.router)
app.include(orders.router)


@app.error(404)
def not_found(request: Request) -> Response:
    return pages.render("message.html", title="Not found", text=f"Nothing is at {request.path}.")


@app.after
def label(request: Request, response: Response) -> None:
    response.headers.setdefault("x-frame-options", "DENY")
