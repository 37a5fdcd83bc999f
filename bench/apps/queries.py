"""Queries as routes, which no worker sees, and one from a plain function."""

from parkade import App, query

app = App()

app.get("/constant", "Hola")
app.get("/one", query("select 1").value())
app.get("/50ms", query("select 1 from pg_sleep(0.05)").value())
app.get("/200ms", query("select 1 from pg_sleep(0.2)").value())
app.get("/rows", query("select * from wide"))
app.get("/queued", query("select 1 from pg_sleep(25)").value())
app.get("/shared", query("select nextval('executions') from pg_sleep(2)").value().shared("slow"))
app.get("/slow", query("select 1 from pg_sleep(10) /* bench */").value())
app.get("/late", query("select 1 from pg_sleep(10) /* bench */", deadline=0.05).value())


@app.get("/def")
def one() -> object:
    return query("select 1").value()
