"""A dashboard on PostgreSQL: figures that many tabs share, a slow analysis that ends with its tab, a transfer."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape
from typing import Annotated

from msgspec import Meta

from parkade import (
    App,
    HTTPError,
    QueryError,
    Request,
    Response,
    Rows,
    Status,
    Wait,
    all_of,
    channel,
    html,
    query,
    transaction,
)

BY_PRODUCT = """
    select product, count(*) as orders, sum(amount) as revenue from sales
     where sold >= $1 group by product order by revenue desc
"""

SLOW = """
    select s.product, avg(s.amount) as average, pg_sleep($1)::text as waited from sales s group by s.product
"""

Name = Annotated[str, Meta(min_length=1, max_length=40)]


@dataclass(frozen=True)
class Transfer:
    payer: Name
    payee: Name
    amount: Decimal


@dataclass(frozen=True)
class Product:
    product: str
    orders: int
    revenue: Decimal


@dataclass(frozen=True)
class Overview:
    best: Product | None
    sales: int
    balance: Decimal


app = App()

# Rows as JSON; no worker sees these requests.
app.get("/accounts", query("select name, balance from accounts order by name"))


@app.get("/products")
def products(since: date = date(2000, 1, 1)) -> Wait:
    """However many tabs ask within a second, the database is asked once."""
    return query(BY_PRODUCT, since).shared(f"products/{since}", ttl=1)


@app.get("/products/{name}")
def product(name: Name) -> Wait:
    """404 if it was never sold."""
    return query("select product, sum(amount) as revenue from sales where product = $1 group by product", name).one()


@app.get("/overview")
async def overview() -> Overview:
    """The three statements run at the same time, so it takes as long as the slowest."""
    best, sales, balance = await all_of(
        query(f"{BY_PRODUCT} limit 1", date(2000, 1, 1)).one(Product),
        query("select count(*) from sales").value(int),
        query("select sum(balance) from accounts").value(Decimal),
    )
    return Overview(best, sales or 0, balance or Decimal())


@app.get("/analysis")
def analysis(seconds: Annotated[float, Meta(ge=0, le=60)] = 30) -> Wait:
    """Takes its time. A tab that is closed cancels it in the database."""
    return query(SLOW, seconds, deadline=90)


@app.get("/")
def page() -> Wait:
    return query(BY_PRODUCT, date(2000, 1, 1)).rows(Product).then(render, title="Sales")


def render(found: list[Product], title: str) -> Response:
    rows = "".join(f"<tr><td>{escape(p.product)}<td>{p.orders}<td>{p.revenue:,.2f}" for p in found)
    total = sum((p.revenue for p in found), Decimal())
    head = f"<!doctype html><title>{escape(title)}</title><h1>{escape(title)}</h1>"
    return html(f"{head}<table>{rows}<tfoot><tr><td>total<td><td>{total:,.2f}</table>")


@app.post("/sales")
async def sell(product: Name, amount: Decimal) -> Response:
    if amount <= 0:
        raise HTTPError(422, "amount: more than nothing")
    id = await query("insert into sales (product, amount) values ($1, $2) returning id", product, amount).value(int)
    channel("sales").publish({"product": product, "amount": amount})
    return Response({"id": id}, 201)


@app.get("/sales/stream")
def sales() -> Wait:
    return channel("sales").stream()


@app.post("/transfers")
async def transfer(body: Transfer) -> Status:
    """Both accounts, or neither: the check on the balance is in the database."""
    try:
        async with transaction() as t:
            for name, amount in ((body.payer, -body.amount), (body.payee, body.amount)):
                changed = await t.query("update accounts set balance = balance + $2 where name = $1", name, amount)
                if changed.count != 1:
                    raise HTTPError(404, f"no account {name}")
    except QueryError as error:
        if error.sqlstate == "23514":  # check_violation
            raise HTTPError(409, f"{body.payer} has not that much") from error
        raise
    return Status(204)


@app.get("/export.csv")
async def export() -> Response:
    rows: Rows = await query("select product, amount, sold from sales order by id")
    lines = (f"{row['product']},{row['amount']},{row['sold']:%Y-%m-%d}\n" for row in rows)
    return Response(lines, headers={"content-type": "text/csv; charset=utf-8"})


@app.after
def label(request: Request, response: Response) -> None:
    response.headers["cache-control"] = "no-store"
