"""Everything that the shop asks its database. No other module contains SQL."""

from parkade import Query, query


def books() -> Query:
    return query("select id, title, price from books order by title")


def book(id: int) -> Query:
    return query("select id, title, price from books where id = $1", id).one()


def add_order(book: int, buyer: str) -> Query:
    return query("insert into orders (book, buyer) values ($1, $2) returning id", book, buyer).value()


def orders_of(buyer: str) -> Query:
    return query(
        "select orders.id, title, state from orders join books on books.id = book where buyer = $1 order by orders.id",
        buyer,
    )


def mark_sent(order: int) -> Query:
    return query("update orders set state = 'sent' where id = $1", order)
