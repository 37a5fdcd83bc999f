"""A query that nobody waits for any more: start one in a tab, close the tab, and watch it leave the database."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from parkade import App, Wait, html, query

Seconds = Annotated[float, Meta(ge=0, le=3_600)]
Where = Annotated[str, Meta(min_length=1, max_length=40)]

RUNNING = """
    select pid, query, round(extract(epoch from clock_timestamp() - query_start)::numeric, 1) as seconds
      from pg_stat_activity
     where application_name = 'parkade' and state = 'active' and pid <> pg_backend_pid()
     order by query_start
"""

app = App()
app.get("/", html((Path(__file__).parent / "page.html").read_text()))

# What runs inside PostgreSQL, as it says itself. The route is only a query: no worker ever sees it.
app.get("/running", query(RUNNING))


@app.get("/slow")
def slow(seconds: Seconds = 60.0) -> Wait:
    return query("select pg_sleep($1)::text as slept, now() as began", seconds, deadline=3_600)


@app.get("/report")
def report(seconds: Seconds = 2.0) -> Wait:
    """The same, and then a function that any worker runs with the rows."""
    return query("select pg_sleep($1)::text as slept, clock_timestamp() as ended", seconds).one().then(page)


def page(row: dict[str, object]) -> object:
    return html(f"<!doctype html><title>Report</title><p>It ended at {row['ended']}.</p>")


@app.get("/shared")
def shared(seconds: Seconds = 5.0) -> Wait:
    """However many ask at a time: the database does it once, and stops when the last of them has gone."""
    return query("select pg_sleep($1)::text as slept, clock_timestamp() as ended", seconds).shared(f"slept/{seconds}")
