"""What `make demo` serves: one page to try a delayed echo, an auction, a car wash and a slow query that ends with its
tab, with the core's own numbers.
"""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from parkade import BEGINNING, App, Cors, HTTPError, Job, Request, Response, Status, Wait, after, channel, html, query

ADMIN = os.environ.get("DEMO_ADMIN", "127.0.0.1:8001")  # where --admin listens
ADMIN_SECONDS_MAX = 1.0  # then: 503, and the page says that it has no numbers
WORD_LENGTH_MAX = 100  # then: 422
CARS_MAX = 100  # that one click sends; then: 422
# The page is opened as 127.0.0.1 and sends its echoes to e1.localhost and so on, which are other origins.
ANY_ORIGIN = Cors("*")
NO_STORE = {"cache-control": "no-store"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' http://*.localhost:*; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

app = App()

# Delayed echo


@app.get("/echo", cors=ANY_ORIGIN)
def echo(word: str = "hola") -> Wait:
    if len(word) > WORD_LENGTH_MAX:
        raise HTTPError(422, f"word: at most {WORD_LENGTH_MAX} characters")
    return after(2, Response(f"You said: {word}", headers=NO_STORE))


# Asked under another name before echoes are sent there.
app.get("/here", Response(None, 204, NO_STORE), cors=ANY_ORIGIN)

# Auction


@dataclass(frozen=True)
class Bid:
    bidder: Annotated[str, Meta(min_length=1, max_length=24)]
    amount: Annotated[int, Meta(ge=1, le=1_000_000)]


app.channel("auction", count=500, age=3_600)


@app.post("/auction")
def bid(body: Bid) -> Status:
    channel("auction").publish(body)
    return Status(202)


@app.get("/auction")
def bids(request: Request, since: str = BEGINNING) -> Wait:
    # After a lost connection the browser sends Last-Event-ID; a page that left on purpose comes back with `since`.
    return channel("auction").stream(since=request.cursor or since)


# Car wash: jobs, which wait too

PROGRAMME = ["soaped", "brushed", "rinsed", "waxed", "dried"]
STEP_SECONDS = 0.6

app.queue("wash", concurrency=3)  # bays; the other cars wait in the store


@app.job(queue="wash")
def wash(job: Job, number: int) -> Wait:
    """No worker is busy while the brushes turn: each step is a wait, and any worker does what comes after it."""
    return wash_on(None, job, number, 0)


def wash_on(_: object, job: Job, number: int, done: int) -> Wait:
    job.progress(done / len(PROGRAMME), f"being {PROGRAMME[done]}")
    rest = after(STEP_SECONDS)
    if done + 1 == len(PROGRAMME):
        return rest.then(drive_out, number=number)
    return rest.then(wash_on, number=number, done=done + 1)


def drive_out(_: object, number: int) -> str:
    return f"Car {number} is clean."


@app.post("/wash")
def arrive(cars: int = 1) -> dict[str, list[str]]:
    """The answer leaves when all of them are stored."""
    if not 1 <= cars <= CARS_MAX:
        raise HTTPError(422, f"cars: 1 to {CARS_MAX}")
    return {"jobs": [wash.enqueue(number).id for number in range(1, cars + 1)]}


# A slow query: half a minute of work for the database, unless its client leaves

COUNT = """
    with recursive numbers(number) as (select 1 union all select number + 1 from numbers where number < 100000000)
    select count(*) as counted from numbers
"""
COUNT_SECONDS_MAX = 120.0  # then: 503

app.get("/count", query(COUNT, deadline=COUNT_SECONDS_MAX).one())


@app.get("/counting")
def counting() -> Response:
    """The counts that the database is at, by the numbers of their queries."""
    running = _status()["databases"]["default"]["running"]
    return Response([one["id"] for one in running], headers=NO_STORE)


# The core's numbers


JOB_STATES = ["ready", "running", "completed", "cancelled", "dead"]


@app.get("/numbers")
def numbers() -> Response:
    """From the core's status, without this request itself, which is running while it asks."""
    status = _status()
    workers = [
        {"id": worker["id"], "busy": worker["held"] > (worker["pid"] == os.getpid())} for worker in status["workers"]
    ]
    jobs: dict[str, Any] = status.get("jobs") or {}  # there are none before the first was enqueued
    told: dict[str, Any] = {
        "parked": status["lives"]["parked"] + jobs.get("parked", 0),
        "queued": status["lives"]["queued"],
        "running": max(0, status["lives"]["running"] - 1),
        "connections": status["connections"]["http1"] + status["connections"]["http2"],
        "resident_bytes": status["memory"]["resident_bytes"],
        "queries": {
            "running": len(status["databases"]["default"]["running"]),
            "cancelled": status["counts"]["queries_cancelled"],
        },
        "jobs": {state: jobs.get(state, 0) for state in JOB_STATES},
        "workers": workers,
    }
    return Response(told, headers={"cache-control": "no-store"})


def _status() -> Any:
    connection = HTTPConnection(ADMIN, timeout=ADMIN_SECONDS_MAX)
    try:
        connection.request("GET", "/status")
        return json.load(connection.getresponse())
    except (OSError, HTTPException, ValueError) as error:
        raise HTTPError(503, f"no numbers: start parkade with --admin {ADMIN}") from error
    finally:
        connection.close()


# The page: constants, so no worker ever sees these requests


def _text(name: str) -> str:
    folder = Path(__file__).parent
    return ((folder.parent if name == "style.css" else folder) / name).read_text(encoding="utf-8")


def _asset(name: str, content_type: str) -> str:
    """The path of a file, which changes with its content, so that it may be cached for ever."""
    text = _text(name)
    path = f"/{sha256(text.encode()).hexdigest()[:12]}/{name}"
    headers = {"content-type": content_type, "cache-control": "public, max-age=31536000, immutable"}
    app.get(path, Response(text, headers=headers | {"x-content-type-options": "nosniff"}))
    return path


page = _text("page.html")
page = page.replace("style.css", _asset("style.css", "text/css; charset=utf-8"))
page = page.replace("page.css", _asset("page.css", "text/css; charset=utf-8"))
page = page.replace("page.js", _asset("page.js", "text/javascript; charset=utf-8"))
app.get("/", html(page, headers={"cache-control": "no-cache", "content-security-policy": POLICY}))
