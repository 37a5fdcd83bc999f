"""The catalogue."""

from parkade import Response, Router, Rows, Wait

from . import store
from .pages import pages

router = Router("/books", name="books")


@router.get("/")
def list_books() -> Wait:
    return store.books().then(page)


def page(rows: Rows) -> Response:
    return pages.render("books.html", books=rows)


@router.get("/{id:int}")
def show(id: int) -> Wait:
    """As JSON, from the database straight to the client."""
    return store.book(id)
