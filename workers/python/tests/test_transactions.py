"""Transactions: committed by the end of their block, rolled back by whatever else ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from parkade import App, HTTPError, QueryError, Status, Transaction, WaitError, after, query, transaction
from parkade.testing import Client


def client_for(handler: Callable[[], Awaitable[Any]], answers: Any = lambda asked: {"n": 1}) -> Client:
    app = App()
    app.get("/", handler)
    client = Client(app)
    client.database(answers)
    return client


def asked_of(client: Client) -> list[str]:
    return [asked.text for asked in client.queries]


def nothing() -> None: ...


def failing(text: str) -> Callable[[Any], Any]:
    def answer(asked: Any) -> Any:
        return QueryError(f"{text} failed", status=503) if asked.text == text else {"n": 1}

    return answer


async def two_statements() -> list[Any]:
    async with transaction() as t:
        first = await t.query("first $1", 1).value()
        return [first, await t.query("second").one(), await t.query("third")]


async def raising() -> None:
    async with transaction() as t:
        await t.query("first")
        raise KeyError("mine")


async def rolled_back() -> str:
    async with transaction() as t:
        await t.query("first")
        await t.rollback()
        await query("outside")
    return "done"


async def twice() -> str:
    for _ in range(2):
        async with transaction() as t:
            await t.query("first")
    return "done"


@pytest.mark.parametrize(
    ("handler", "asked"),
    [
        (two_statements, ["begin", "first $1", "second", "third", "commit"]),
        (raising, ["begin", "first", "rollback"]),
        (rolled_back, ["begin", "first", "rollback", "outside"]),
        (twice, ["begin", "first", "commit", "begin", "first", "commit"]),
    ],
)
def test_a_block_is_committed_or_rolled_back(handler: Callable[[], Awaitable[Any]], asked: list[str]) -> None:
    with client_for(handler) as client:
        client.get("/")
        assert asked_of(client) == asked


def test_its_queries_give_what_queries_give() -> None:
    with client_for(two_statements) as client:
        assert client.get("/").json() == [1, {"n": 1}, [{"n": 1}]]


@pytest.mark.parametrize(
    ("handler", "fails", "status", "asked"),
    [
        (two_statements, "begin", 503, ["begin"]),
        (two_statements, "second", 503, ["begin", "first $1", "second", "rollback"]),
        (two_statements, "commit", 503, ["begin", "first $1", "second", "third", "commit"]),
        (raising, "rollback", 500, ["begin", "first", "rollback"]),
        (rolled_back, "rollback", 503, ["begin", "first", "rollback"]),
    ],
)
def test_what_fails_is_raised_and_the_first_exception_matters(
    handler: Callable[[], Awaitable[Any]],
    fails: str,
    status: int,
    asked: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with client_for(handler, failing(fails)) as client:
        assert client.get("/").status == status
        assert asked_of(client) == asked
    assert ("KeyError: 'mine'" in capsys.readouterr().err) is (handler is raising)


def test_a_client_that_leaves_ends_it_without_a_word_from_the_handler() -> None:
    left: list[str] = []

    async def handler() -> None:
        try:
            async with transaction() as t:
                await t.query("slow")
        except asyncio.CancelledError:
            left.append("left")
            raise

    with client_for(handler, {"slow": after(60, [])}) as client:
        client.leave(client.get("/"))
        assert (left, asked_of(client), client.parked) == (["left"], ["begin", "slow", "rollback"], 0)


def test_a_statement_that_is_given_up_does_not_end_the_request() -> None:
    async def inner() -> None:
        async with transaction() as t:
            await t.query("slow")

    async def handler() -> str:
        task = asyncio.ensure_future(inner())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        async with transaction() as t:
            return str(await t.query("quick").value())

    with client_for(handler, {"slow": after(60, []), "quick": {"n": 1}}) as client:
        assert (client.get("/").text, asked_of(client)) == (
            "1",
            ["begin", "slow", "rollback", "begin", "quick", "commit"],
        )


@pytest.mark.parametrize("isolation", [None, "read committed", "repeatable read", "serializable"])
def test_begin_says_what_kind_of_transaction(isolation: Any) -> None:
    begun: list[Any] = []

    async def handler() -> str:
        t = transaction(database="other", isolation=isolation, read_only=True)
        begun.append(t._begin.options)
        async with t:
            return repr(t.query("a", deadline=1)._wait.options)

    with client_for(handler) as client:
        client.database({}, name="other")
        said = client.get("/").text
    assert (begun[0].database, begun[0].isolation, begun[0].read_only) == ("other", isolation, True)
    assert ("database='other'" in said, "within=True" in said, "deadline=1" in said) == (True, True, True)


async def nested() -> None:
    async with transaction(), transaction():
        pass


async def entered_twice() -> None:
    t = transaction()
    async with t:
        pass
    async with t:
        pass


async def before_its_block() -> None:
    await transaction().query("select 1")


async def after_its_block() -> None:
    async with transaction() as t:
        pass
    await t.query("select 1")


async def after_its_rollback() -> None:
    async with transaction() as t:
        await t.rollback()
        await t.rollback()


async def returned() -> Any:
    async with transaction() as t:
        return t.query("select 1")


async def with_then() -> Any:
    async with transaction() as t:
        return t.query("select 1").then(nothing)


async def shared() -> Any:
    async with transaction() as t:
        await t.query("select 1").one().shared("k")


async def misspelt() -> Any:
    async with transaction(isolation="serialisable"):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (nested, "has an open transaction"),
        (entered_twice, "begins only once"),
        (before_its_block, "begins with its block"),
        (after_its_block, "has ended: begin another"),
        (after_its_rollback, "has ended: begin another"),
        (returned, "await it there"),
        (with_then, "is awaited"),
        (shared, "cannot be shared"),
        (misspelt, "isolation is one of read committed, repeatable read, serializable"),
    ],
)
def test_what_cannot_be_says_what_to_do(
    handler: Callable[[], Awaitable[Any]], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with client_for(handler) as client:
        assert client.get("/").status == 500
        asked = asked_of(client)
    assert said in capsys.readouterr().err
    assert asked.count("begin") == asked.count("commit") + asked.count("rollback") == (asked != [])


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_plain_function_has_one_too(concurrent: bool) -> None:
    app = App(concurrent=concurrent)

    @app.job
    def write(line: str) -> None: ...

    @app.get("/{way}")
    def handler(way: str) -> object:
        with transaction() as t:
            found = list(t.query("select 1 as one"))
            write.enqueue(way)
            if way == "taken-back":
                t.rollback()
            if way == "fails":
                raise HTTPError(418)
        return found

    with Client(app) as client:
        client.database({"select 1 as one": [{"one": 1}]})
        assert [client.get(f"/{way}").status for way in ("kept", "taken-back", "fails")] == [200, 200, 418]
        assert client.get("/again").json() == [{"one": 1}]
        ends = [asked for asked in asked_of(client) if asked in ("commit", "rollback")]
        assert [job.args for job in client.jobs] == [("kept",), ("again",)]
    assert ends == ["commit", "rollback", "rollback", "commit"]


def test_a_plain_function_has_one_at_a_time() -> None:
    app = App()

    @app.get("/")
    def handler() -> object:
        with transaction() as t, pytest.raises(WaitError, match="already has an open"), transaction():
            pass
        with pytest.raises(WaitError, match="has ended"):
            t.query("select 1")
        again = transaction()
        with again, pytest.raises(WaitError, match="begins only once"), again:
            pass
        return "as it should"

    with Client(app) as client:
        client.database({})
        assert client.get("/").text == "as it should"


def test_there_is_none_without_a_request() -> None:
    with pytest.raises(WaitError, match="there is no core here"), transaction():
        pass

    async def begin() -> None:
        with transaction():
            pass

    app = App()
    app.get("/", begin)
    with Client(app) as client:
        assert client.get("/").status == 500
        with pytest.raises(WaitError, match="there is none here"), transaction():
            pass


def test_it_is_its_requests_own() -> None:
    kept: list[Transaction] = []

    async def handler() -> str:
        if kept:
            with pytest.raises(WaitError, match="belongs to another request"):
                await kept[0].query("select 1")
            return "refused"
        async with transaction() as t:
            kept.append(t)
            await t.query("slow")
        return "done"

    with client_for(handler, {"slow": after(1, [])}) as client:
        first, second = client.get("/"), client.get("/")
        client.advance(1)
        assert (first.text, second.text) == ("done", "refused")


def test_sqlite_carries_it_out() -> None:
    async def handler(fail: bool) -> Status:
        async with transaction() as t:
            await t.query("insert into lots values ($1)", 1)
            if fail:
                raise KeyError
        return Status(201)

    app = App()
    app.get("/{fail}", handler)
    app.get("/count", query("select count(*) from lots").value())
    with Client(app) as client:
        client.database().execute("create table lots (id)")
        counts = [(client.get(path).status, client.get("/count").text) for path in ("/true", "/false")]
    assert counts == [(500, "0"), (201, "1")]


def test_what_sqlite_does_not_commit_is_rolled_back() -> None:
    async def handler() -> str:
        try:
            async with transaction() as t:
                await t.query("insert into bids values (7)")
        except QueryError as error:
            return f"{error.status} {error}"
        return "committed"

    with client_for(handler) as client:
        lots = client.database()
        lots.executescript(
            "create table lots (id integer primary key);"
            "create table bids (lot references lots deferrable initially deferred)"
        )
        assert (client.get("/").text, lots.in_transaction) == ("409 FOREIGN KEY constraint failed", False)


@pytest.mark.parametrize(("end", "enqueued"), [("commit", ["kept"]), ("raise", []), ("rollback", []), ("refuse", [])])
def test_a_job_is_enqueued_when_it_commits(end: str, enqueued: list[str]) -> None:
    """And `options` of a test's job say that it belonged to one."""

    async def handler() -> str:
        try:
            async with transaction() as t:
                handle = job.enqueue("kept")
                with pytest.raises(WaitError, match="after the block"):
                    await handle
                if end == "raise":
                    raise KeyError
                if end == "rollback":
                    await t.rollback()
        except (KeyError, QueryError):
            pass
        if end == "commit":
            return (await handle).id
        with pytest.raises(WaitError, match="rolled back"):
            await handle
        return (await job.enqueue("behind")).id

    app = App()
    app.get("/", handler)
    job = app.job(nothing_of)
    with Client(app) as client:
        client.database(failing("commit") if end == "refuse" else lambda asked: None)
        answer = client.get("/")
        behind = [] if end == "commit" else ["behind"]
        assert [one.args[0] for one in client.jobs] == [*enqueued, *behind]
        assert answer.text == client.jobs[-1].id
        assert [one.options.get("within", False) for one in client.jobs] == [bool(enqueued)]


def nothing_of(line: str) -> None: ...
