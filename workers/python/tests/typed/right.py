"""Correct uses: neither mypy nor pyright, both strict, finds anything here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta
from typing_extensions import assert_type

from parkade import (
    BEGINNING,
    App,
    Cookie,
    Cors,
    File,
    First,
    Header,
    History,
    Job,
    Message,
    Query,
    Request,
    Response,
    Router,
    Row,
    Rows,
    Status,
    StoredJob,
    Upload,
    Wait,
    after,
    all_of,
    channel,
    first_of,
    query,
    redirect,
    transaction,
)
from parkade import Handle as ParkadeHandle
from parkade.jobs import Handle, JobFunction, JobWithOptions, connect
from parkade.testing import Client

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
    assert_type(await all_of(after(1, "x"), query("a").value(int)), tuple[str, int | None])
    assert_type(await all_of(*(query("a") for _ in range(9))), tuple[Rows, ...])
    won = await first_of(channel("c").next(), after(1))
    assert_type(won, First[Message | None])
    assert_type((won.index, won.value), tuple[int, Message | None])
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


def show_all(found: tuple[Rows, int | None], title: str) -> str:
    return f"{title} {found}"


def show_first(first: First[Rows | int | None]) -> str:
    return f"{first.index} {first.value}"


def all_of_several() -> Wait:
    return all_of(query("a"), query("b").value(int)).then(show_all, title="x")


def first_of_several() -> Wait:
    return first_of(query("a"), query("b").value(int)).then(show_first)


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


# Several waits


async def several() -> None:
    found, sale = await asyncio.gather(query("a"), query("b").one(Sale))
    assert_type(found, Rows)
    assert_type(sale, Sale | None)
    done: Wait[Message | None] = channel("c").next()
    found_later: Query[list[Sale]] = query("a").rows(Sale)
    print(await done, await found_later)


# Routers, hooks, error handlers

orders = Router("/orders", name="orders")


@orders.before
def only_known(request: Request) -> Response | None:
    return None if "authorization" in request.headers else Status(401)


@orders.after
async def counted(request: Request, response: Response) -> None:
    response.headers["x-path"] = request.path


@orders.error(KeyError)
def missing(request: Request, error: KeyError) -> Response:
    return Response(str(error), 404)


@orders.on_start
async def begin() -> None: ...


@orders.get("/{id:int}")
async def order(id: int) -> Response | Wait[Row | None]:
    return redirect(orders.path("order", id=id)) if id < 0 else query("a", id).one()


@orders.get("/lines")
def lines() -> Iterator[str]:
    yield "one"


@orders.get("/more-lines")
async def more_lines() -> AsyncIterator[bytes]:
    yield b"two"


@orders.post("/files")
def upload(file: Upload, sheets: list[Upload]) -> dict[str, int]:
    return {file.filename: len(sheets)}


@orders.get("/file")
def one_file() -> File:
    return File("a.txt", filename="b.txt")


app.include(orders, prefix="/v1")


def may_see(request: Request, job: StoredJob) -> bool:
    return bool(job.arguments["file"] == request.cookies.get("file"))


@app.job(access=may_see)
def rendered(file: str) -> Wait[str]:
    return query("a").value().then(text_of, file=file)


def text_of(value: Any, file: str) -> str:
    return f"{value} {file}"


app.files("/static", "static", max_age=60)
later_job: JobWithOptions[[str], str] = rendered.options(delay=1)
every_job: list[JobFunction[..., Any]] = [rendered, sweep]
assert_type(rendered.enqueue("a"), ParkadeHandle[str])


# Tests


def tested() -> None:
    with Client(app) as client:
        response = client.get("/then", params={"n": "1"}, headers={"x-a": "1"})
        assert_type(response.status, int)
        assert_type(response.text, str)
        client.post("/x", json={"a": 1}, files={"a": ("a.txt", b"")}, client="127.0.0.2")
        client.advance(2)
