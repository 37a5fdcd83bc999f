"""Correct uses: neither mypy nor pyright, both strict, finds anything here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta
from typing_extensions import assert_type

from parkade import (
    BEGINNING,
    App,
    Cookie,
    Cors,
    Header,
    History,
    Job,
    Message,
    Query,
    Request,
    Response,
    Row,
    Rows,
    Status,
    Wait,
    after,
    channel,
    query,
    transaction,
)
from parkade.jobs import Handle, connect

app = App()


@dataclass
class Sale:
    id: int
    amount: float


# Waits


async def waits() -> None:
    assert_type(await after(1), None)
    assert_type(await after(1, "x"), str)
    assert_type(await channel("c").next(timeout=1), Message | None)
    assert_type(await channel("c").next(type=Sale), Sale | None)
    assert_type(await channel("c").history(count=2), History)
    assert_type((await channel("c").history()).json(Sale), list[Sale])
    assert_type(await channel("c").publish(1, event="typing"), str)
    message = await channel("c").next()
    if message is not None:
        assert_type(message.json(Sale), Sale)


async def queries() -> None:
    assert_type(await query("a"), Rows)
    assert_type(await query("a").rows(), Rows)
    assert_type(await query("a").rows(Sale), list[Sale])
    assert_type(await query("a").one(), Row | None)
    assert_type(await query("a").one(Sale), Sale | None)
    assert_type(await query("a").value(int), int | None)
    assert_type(await query("a").one(Sale).shared("key", ttl=1), Sale | None)
    async with transaction() as t:
        assert_type(await t.query("a").one(Sale), Sale | None)


def render(message: Message | None, title: str, size: int = 1) -> Response:
    return Response(f"{message} {title} {size}")


def with_request(message: Message | None, request: Request, title: str) -> Wait:
    return after(1, f"{message} {request} {title}")


def request_first(request: Request, rows: Rows) -> object:
    return [request.path, rows]


def without_outcome(title: str) -> str:
    return title


async def sales(found: list[Sale], title: str) -> object:
    return [found, title]


def value(found: int | None) -> object:
    return found


@app.get("/then")
def then() -> Wait[Message | None]:
    return channel("c").next(timeout=1).then(render, title="x")


@app.get("/then/{n:int}")
def then_more(n: Annotated[int, Meta(ge=1)]) -> Wait:
    channel("c").next().then(render, title="x", size=2)
    channel("c").next().then(with_request, title="x")
    query("a").then(request_first)
    after(1).then(without_outcome, title="x")
    query("a").rows(Sale).then(sales, title="x")
    query("a").value(int).then(value)
    return query("a").one().shared("key")


# Jobs


@app.job
def thumbnail(job: Job, file: str, size: int = 100) -> Sale:
    job.progress(0.5)
    return Sale(size, len(file))


@app.job(retries=5)
async def receipt(sale: Sale, *, copies: int = 1) -> str:
    await after(copies)
    return str(sale)


@app.job
def waiting(n: int) -> Wait[Sale | None]:
    return query("a", n).one(Sale)


@app.job
def anything(value: object) -> None: ...


@app.every("5 minutes")
@app.job
def sweep(older: float = 1) -> int:
    return round(older)


@app.cron("0 0 * * *")
async def nightly(job: Job) -> None: ...


def shown(result: Sale | None, title: str) -> object:
    return [result, title]


async def jobs() -> None:
    handle = thumbnail.enqueue("a.png", size=2)
    assert_type(handle, Handle[Sale])
    assert_type(await handle, Handle[Sale])
    assert_type(await handle.result(timeout=1), Sale | None)
    handle.result().then(shown, title="x")
    assert_type(await receipt.options(delay=60, key="k").enqueue(Sale(1, 2), copies=2).result(), str | None)
    assert_type(await waiting.enqueue(1).result(), Sale | None)
    assert_type(await receipt(Sale(1, 2)), str)
    assert_type(sweep(), int)
    anything.enqueue(1)
    anything.options(priority=1).enqueue("x")
    sweep.enqueue()
    nightly.enqueue()
    assert_type(await Handle.of("x").result(), Any | None)
    with connect() as connection:
        assert_type(connection.options(delay=1).enqueue("thumbnail", "a.png"), str)


# Routes


@app.post("/sales")
def sell(
    body: Sale, agent: Annotated[str, Header("user-agent")], sid: Annotated[str | None, Cookie()] = None
) -> Status:
    return Status(202)


@app.get("/bare")
def bare() -> Query:
    return query("a").one()


app.get("/wait", after(2, "Here"))
app.post("/function", sell)
app.route("/both", methods=["GET", "POST"])(sell)
assert_type(sell(Sale(1, 2), "me"), Status)


# Headers of answers that the server gives


@app.get("/later")
def later() -> Wait[None]:
    return after(2).headers({"cache-control": "no-store"}, status=202)


assert_type(query("a").one().headers([("x-a", "1")]), Query[Row | None])
assert_type(channel("news").next(since=BEGINNING).headers({"x-a": "1"}), Wait[Message | None])
app.get("/seen", Response(channel("news").stream(since=BEGINNING)).set_cookie("seen", "yes"), cors=False)
app.get("/open", "open", cors=Cors(origins="*", methods=["GET"]))
app.cors(origins=["https://a.example"], credentials=True, max_age=60)
app.headers({"x-frame-options": "DENY"})
