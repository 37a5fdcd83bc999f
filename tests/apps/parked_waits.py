"""What the views of every framework in the tests of parked responses wait for, and their jobs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parkade
from parkade import Message, Response, Wait, after, all_of, channel, first_of, html
from parkade.jobs import Jobs

parkade.limit_history("short*", count=2)

jobs = Jobs(path="/jobs")
jobs.queue("single", concurrency=1)


def note(line: str) -> None:
    with (Path(os.environ["GATES"]) / "noted").open("a") as file:
        file.write(f"{line}\n")


@jobs.job(retries=5)
def write_log(line: str) -> str:
    note(line)
    return f"wrote {line}"


@jobs.job(queue="single")
async def write_async(line: str) -> str:
    note(line)
    return f"wrote {line} in a coroutine"


@jobs.job
def write_after(line: str) -> Wait[Any]:
    return after(0.05).then(written, line=line)


def written(line: str) -> str:
    note(line)
    return f"wrote {line} after a wait"


@jobs.every("1 second")
def sweep() -> None:
    note("swept")


def render(message: Message | None, title: str) -> Response:
    return html(f"<h1>{title}</h1>{message.text if message else 'nothing'}", headers={"x-rendered": "yes"})


def fails(message: Message | None) -> str:
    raise ValueError("a mistake after the wait")


def again(message: Message | None) -> Wait[Any]:
    return channel("second").next(timeout=20).then(render, title=message.text if message else "")


def parks_again(message: Message | None) -> Any:
    """A response of `park` stands for its wait here, too."""
    return parkade.park(channel("second").next(timeout=20))


def parks_and_fails(message: Message | None) -> Any:
    parkade.park(channel("second").next(timeout=20))
    raise ValueError("a mistake after park")


@dataclass
class Told:
    text: str


def number(message: Message | None) -> int:
    return 7


def truth(message: Message | None) -> bool:
    return True


def record(message: Message | None) -> Told:
    return Told(message.text if message else "")


@jobs.job
def die(line: str) -> None:
    raise ValueError("a mistake in a job")


def of_result(result: str) -> str:
    return f"it is {result}"


WAITS = {
    "first": lambda: first_of(channel("news").next(timeout=20), after(60)),
    "all": lambda: all_of(channel("news").next(timeout=20), after(0.05)),
    "number": lambda: channel("news").next(timeout=20).then(number),
    "truth": lambda: channel("news").next(timeout=20).then(truth),
    "record": lambda: channel("news").next(timeout=20).then(record),
    "dead": lambda: die.enqueue("").result(timeout=20).then(of_result),
    "parks_again": lambda: channel("news").next(timeout=20).then(parks_again),
    "parks_and_fails": lambda: channel("news").next(timeout=20).then(parks_and_fails),
    "next": lambda: channel("news").next(timeout=20),
    "short": lambda: channel("news").next(timeout=0.05),
    "stream": lambda: channel("news").stream(),
    "then": lambda: channel("news").next(timeout=20).then(render, title="News"),
    "again": lambda: channel("news").next(timeout=20).then(again),
    "fails": lambda: channel("news").next(timeout=20).then(fails),
    "history": lambda: channel("short").history(),
    "timer": lambda: after(0.05, "time is up"),
    "query": lambda: parkade.query("select 7 as number"),
    "file": lambda: parkade.File(__file__, content_type="text/plain"),
    "result": lambda: write_log.enqueue("for a result").result(timeout=20),
}
