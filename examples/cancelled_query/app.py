"""A query that nobody waits for any more: start one in a tab, close the tab, and watch it leave the database."""

from pathlib import Path

from parkade import App, HTTPError, Response, Row, Wait, html, query

SECONDS_MAX = 3_600.0  # then: 422, and the database never hears of it

RUNNING = """
    select pid, query, round(extract(epoch from clock_timestamp() - query_start)::numeric, 1) as seconds
      from pg_stat_activity
     where application_name = 'parkade' and state = 'active' and pid <> pg_backend_pid()
     order by query_start
"""

FOLDER = Path(__file__).parent

app = App()
app.get("/", html((FOLDER / "page.html").read_text()))
app.get("/style.css", Response((FOLDER.parent / "style.css").read_text(), headers={"content-type": "text/css"}))

# What runs inside PostgreSQL, as it says itself. The route is only a query: no worker ever sees it.
app.get("/running", query(RUNNING))


@app.get("/slow")
def slow(seconds: float = 60.0) -> Wait:
    if not 0 <= seconds <= SECONDS_MAX:
        raise HTTPError(422, f"seconds: 0 to {SECONDS_MAX:.0f}")
    return query("select pg_sleep($1)::text as slept, now() as began", seconds, deadline=SECONDS_MAX)


@app.get("/report")
def report(seconds: float = 2.0) -> Wait:
    """The same, and then a function that any worker runs with the rows."""
    return query("select pg_sleep($1)::text as slept, clock_timestamp() as ended", seconds).one().then(page)


def page(row: Row | None) -> object:
    assert row is not None, "a select without a table has one row"
    return html(f"<!doctype html><title>Report</title><p>It ended at {row['ended']}.</p>")


@app.get("/shared")
def shared(seconds: float = 5.0) -> Wait:
    """However many ask at a time: the database does it once, and stops when the last of them has gone."""
    return query("select pg_sleep($1)::text as slept, clock_timestamp() as ended", seconds).shared(f"slept/{seconds}")
