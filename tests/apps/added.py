"""An application that adds headers to its answers, and lets pages of other origins use it."""

import os

from gates import hold

from parkade import App, Cors, Request, Response, Wait, after, channel, query

app = App(concurrent="CONCURRENT" in os.environ)
app.headers({"x-frame-options": "DENY", "x-version": os.environ.get("VERSION", "1")})
app.cors(origins=os.environ.get("ORIGINS", "https://a.example https://b.example").split(), credentials=True)

GIVEN = {"x-given": "yes"}

app.get("/constant", "constant")
app.get("/public", "public", cors=Cors(origins="*"))
app.get("/private", "private", cors=False)
app.get("/stream/route", channel("news").stream().headers(GIVEN))


@app.get("/")
def page() -> str:
    return "a page"


@app.get("/hola/{name}")
def hola(name: str) -> str:
    return f"Hola {name}"


@app.get("/hold/{gate}")
def held(gate: str) -> str:
    hold(gate)
    return "held"


@app.get("/ends")
def ends() -> None:
    os._exit(3)


@app.get("/pieces")
def pieces() -> Response:
    return Response(iter(["one, ", "two"]), headers={"x-frame-options": "SAMEORIGIN"})


@app.get("/timer")
def timer() -> Wait:
    return after(0.05, "late").headers(GIVEN)


@app.get("/next")
def following(mark: str = "") -> Wait:
    return channel("news").next().headers(GIVEN | ({"x-mark": mark} if mark else {}), status=203)


@app.get("/stream")
def stream() -> Response:
    return Response(channel("news").stream(), headers=GIVEN).set_cookie("seen", "yes")


@app.get("/many")
def many() -> Wait:
    rows = "with recursive t(n) as (select 1 union all select n + 1 from t where n < 20000) select n from t"
    return query(rows).headers({"cache-control": "max-age=60"}, status=201)


@app.get("/wrong")
def wrong() -> Wait:
    return query("select from").headers(GIVEN | {"cache-control": "max-age=60"}, status=201)


@app.job
def double(number: int, gate: str) -> int:
    if gate:
        hold(gate)
    return 2 * number


@app.post("/double/{number:int}")
def doubled(number: int, gate: str = "", timeout: float = 10) -> Wait:
    return double.enqueue(number, gate).result(timeout=timeout).headers(GIVEN, status=201)


@app.get("/who")
def who(request: Request) -> str:
    return request.cookies.get("seen", "nobody")


@app.get("/set")
def set_cookie() -> Response:
    return Response("set").set_cookie("seen", "yes", secure=False)
