"""Requests that concern many clients, or are large, while other clients ask for `/constant`."""

from parkade import App, Request, Status, channel, query

app = App()
app.channel("brief/*", age=3)

app.get("/constant", "Hola")
app.get("/next", channel("bench").next(timeout=60))
app.get("/rows", query("select * from wide"))
app.get("/connect", query("select 1 from pg_sleep(0.5)").value())


@app.job
def large(kib: int) -> list[dict[str, object]]:
    return [{"number": number, "text": "x" * 96} for number in range(kib * 8)]


@app.post("/large")
def enqueue(kib: int) -> str:
    return large.enqueue(kib).id


@app.post("/fill")
def fill(first: int, count: int) -> Status:
    for number in range(first, first + count):
        channel(f"brief/{number}").publish("x")
    return Status(202)


@app.post("/body")
def body(request: Request) -> str:
    return str(len(request.body))
