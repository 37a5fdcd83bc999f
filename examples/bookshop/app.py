"""A shop in five modules. This file only puts the parts together: nothing in `shop` imports it."""

from shop import accounts, books, orders
from shop.pages import pages

from parkade import App, Request, Response, redirect

app = App(redirect_slashes=True)
app.get("/", redirect("/books"))
app.include(accounts.router)
app.include(books.router)
app.include(orders.router)


@app.error(404)
def not_found(request: Request) -> Response:
    return pages.render("message.html", title="Not found", text=f"Nothing is at {request.path}.")


@app.after
def label(request: Request, response: Response) -> None:
    response.headers.setdefault("x-frame-options", "DENY")
