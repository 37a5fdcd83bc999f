"""The application of the soak: each statement contains the number of its request, and returns it."""

from parkade import App, Rows, channel, query, transaction

app = App()

app.get("/constant", "Hola")


@app.get("/sleep/{number}/{milliseconds}")
def sleep(number: int, milliseconds: int) -> object:
    return query(f"select {number} as n from pg_sleep({milliseconds / 1000}) /* pk:{number} */")


@app.get("/prepared/{number}/{milliseconds}")
def prepared(number: int, milliseconds: int) -> object:
    """The text is always the same, so it is prepared once; the log shows the number as a parameter."""
    return query("select $1::bigint as n from pg_sleep($2)", number, milliseconds / 1000).one()


@app.get("/series/{number}/{count}")
def series(number: int, count: int) -> object:
    """Busy, not asleep."""
    return query(f"select {number} as n, count(*) from generate_series(1, {count}) /* pk:{number} */").one()


@app.get("/rows/{number}/{count}")
def rows(number: int, count: int) -> object:
    text = f"select {number} as n, i, repeat('x', 100) as x from generate_series(1, {count}) i /* pk:{number} */"
    return query(text)


@app.get("/write/{number}/{milliseconds}")
def write(number: int, milliseconds: int) -> object:
    slow = f"select {number} from pg_sleep({milliseconds / 1000})"
    return query(f"insert into written {slow} returning n /* pk:{number} */").one()


@app.get("/transaction/{number}/{milliseconds}")
async def both(number: int, milliseconds: int) -> object:
    """Writes two rows or none."""
    async with transaction() as t:
        await t.query(f"insert into paired values ({number}) /* pk:{number} */")
        await t.query(f"select 1 from pg_sleep({milliseconds / 1000}) /* pk:{number} */")
        await t.query(f"insert into paired values ({number}) /* pk:{number} */")
    return {"n": number}


@app.get("/then/{number}/{milliseconds}")
def then(number: int, milliseconds: int) -> object:
    text = f"select {number} as n from pg_sleep({milliseconds / 1000}) /* pk:{number} */"
    return query(text).then(told, number=number)


def told(found: Rows, number: int) -> object:
    return {"n": number, "rows": [row["n"] for row in found]}


@app.get("/shared/{number}/{milliseconds}")
def shared(number: int, milliseconds: int) -> object:
    """The same number is requested by several clients."""
    text = f"select {number} as n from pg_sleep({milliseconds / 1000}) /* pk:{number} */"
    return query(text).one().shared(f"soak {number}")


@app.get("/late/{number}/{milliseconds}")
def late(number: int, milliseconds: int) -> object:
    return query(f"select {number} from pg_sleep(10) /* pk:{number} */", deadline=milliseconds / 1000)


@app.get("/wrong/{number}/{nothing}")
def wrong(number: int, nothing: int) -> object:
    return query(f"select {number} / 0 /* pk:{number} */")


class RollBack(Exception):
    """Leaves a transaction so that it is rolled back."""


@app.get("/hold/{number}/{commits}")
async def hold(number: int, commits: int) -> object:
    """A transaction that stays open until it is told to continue; then it commits or rolls back."""
    async with transaction() as t:
        await t.query(f"insert into held values ({number}, {bool(commits)}) /* pk:{number} */")
        await channel(f"held/{commits}").next(timeout=60)
        if not commits:
            raise RollBack(number)
    return {"n": number}


@app.get("/go/{number}/{commits}")
def go(number: int, commits: int) -> object:
    channel(f"held/{commits}").publish(str(number))
    return {"n": number}
