"""Orders: for users only, and sent by a job."""

from parkade import HTTPError, Request, Response, Router, Rows, redirect

from . import store
from .accounts import require_user
from .pages import pages

router = Router("/orders", name="orders")
router.before(require_user)


@router.get("/")
async def list_orders(request: Request) -> Response:
    rows: Rows = await store.orders_of(request.state["user"])
    return pages.render("orders.html", orders=rows, user=request.state["user"])


@router.post("/")
async def order(book: int, request: Request) -> Response:
    if await store.book(book) is None:
        raise HTTPError(404, "no such book")
    id = await store.add_order(book, request.state["user"])
    send.enqueue(id)
    return redirect(router.path("list_orders"))


@router.error(401)
def log_in(request: Request) -> Response:
    return pages.render("message.html", title="Log in first", text="Orders belong to somebody.")


@router.job
async def send(order: int) -> None:
    await store.mark_sent(order)
