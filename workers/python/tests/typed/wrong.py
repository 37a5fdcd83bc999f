"""Incorrect uses. Each line that ends with `# E` is refused by mypy and by pyright, and no other line is."""

from __future__ import annotations

from dataclasses import dataclass

from parkade import App, Job, Message, Request, Rows, Wait, after, all_of, channel, query
from parkade.jobs import Handle
from parkade.testing import Client

app = App()


@dataclass
class Sale:
    id: int
    amount: float


def render(message: Message | None, title: str, size: int = 1) -> object:
    return [message, title, size]


def rows(found: Rows) -> object:
    return found


def with_request(message: Message | None, request: Request, title: str) -> object:
    return [message, request, title]


def then() -> None:
    channel("c").next().then(render, titel="x")  # E: [call-overload] reportCallIssue
    all_of(channel("c").next(), query("a")).then(render, title="x")  # E: [call-overload] reportCallIssue
    channel("c").next().then(render)  # E: [call-overload] reportCallIssue
    channel("c").next().then(render, title=1)  # E: [call-overload] reportCallIssue
    channel("c").next().then(with_request, size=1)  # E: [call-overload] reportCallIssue
    channel("c").next().then(rows)  # E: [call-overload] reportCallIssue
    query("a").one().then(rows)  # E: [call-overload] reportCallIssue
    after(1).then("render")  # E: [call-overload] reportCallIssue


async def awaited() -> None:
    text: str = await after(1)  # E: [func-returns-value] reportAssignmentType
    number: int = await after(1, "x")  # E: [arg-type] reportAssignmentType
    body = (await channel("c").next()).body  # E: [union-attr] reportOptionalMemberAccess
    amount = (await query("a").one(Sale)).amount  # E: [union-attr] reportOptionalMemberAccess
    found: list[int] = await query("a").rows(Sale)  # E: [arg-type] reportAssignmentType
    print(text, number, body, amount, found)


@app.job
def thumbnail(job: Job, file: str, size: int = 100) -> Sale:
    return Sale(size, len(file))


@app.job(retries=5)
async def receipt(sale: Sale) -> str:
    return str(sale)


def shown(result: str | None) -> object:
    return result


async def jobs() -> None:
    thumbnail.enqueue()  # E: [call-arg] reportCallIssue
    thumbnail.enqueue(5)  # E: [arg-type] reportArgumentType
    thumbnail.enqueue("a", siez=5)  # E: [call-arg] reportCallIssue
    thumbnail.enqueue("a", delay=60)  # E: [call-arg] reportCallIssue
    thumbnail.options(dealy=60)  # E: [call-arg] reportCallIssue
    thumbnail.options(delay="a minute")  # E: [arg-type] reportArgumentType
    thumbnail.options(delay=60).enqueue("a", "b")  # E: [arg-type] reportArgumentType
    receipt.enqueue("x")  # E: [arg-type] reportArgumentType
    name: str | None = await thumbnail.enqueue("a").result()  # E: [assignment] reportAssignmentType
    size = (await thumbnail.enqueue("a").result()).id  # E: [union-attr] reportOptionalMemberAccess
    other: Handle[int] = thumbnail.enqueue("a")  # E: [assignment] reportAssignmentType
    thumbnail.enqueue("a").result().then(shown)  # E: [call-overload] reportCallIssue
    print(name, size, other)


@app.get("/number")
def number() -> Wait[int]:
    return after(1, "x")  # E: [arg-type] reportReturnType


app.get(number)  # E: [arg-type] reportArgumentType
app.get("/x", dealine=5)  # E: [call-arg] reportCallIssue
app.job(retries="5")  # E: [call-overload] reportArgumentType
app.headers({"x-a": 1})  # E: [arg-type] reportArgumentType
app.cors(credentials=True)  # E: [call-arg] reportCallIssue
after(1).headers({"x-a": "1"}, status="201")  # E: [arg-type] reportArgumentType


def tested(client: Client) -> None:
    client.get("/", parms={"a": 1})  # E: [call-arg] reportCallIssue
    client.post("/", content=5)  # E: [arg-type] reportArgumentType
