"""Something of everything that the admin page shows."""

from __future__ import annotations

from gates import hold

from parkade import App, Discard, Wait, after, channel, query

app = App()


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/wait/{seconds:float}")
def wait(seconds: float) -> Wait:
    return after(seconds, "over")


@app.get("/next/{room}")
def wait_for_next(room: str) -> Wait:
    return channel(f"room/{room}").next(timeout=60)


@app.get("/hold/{gate}")
def wait_at_gate(gate: str) -> str:
    hold(gate)
    return "through"


@app.get("/slow")
def slow() -> Wait:
    return query(
        "with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000000000) "
        "select count(*) as n, '<script>document.title=1</script>' as script from c"
    )


@app.get("/boom")
def boom() -> str:
    raise ValueError("boom")


@app.job(retries=0)
def deliver(to: str, *, copies: int = 1) -> str:
    if copies > 9:
        raise Discard(f"{copies} copies are too many for {to}")
    return to


@app.job
def hold_at(gate: str) -> str:
    hold(gate)
    return gate
