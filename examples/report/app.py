"""Submit and hold: a report that takes a while. Who waits gets it; who cannot wait comes back for it."""

import calendar
import os
import time
from pathlib import Path

from parkade import App, HTTPError, Job, Response, Wait, html

SECONDS = float(os.environ.get("REPORT_SECONDS", "6"))  # for a whole report
HOLD_MAX = 300.0  # seconds that a client is held at most, whatever it asks for
YEARS = range(1900, 2101)  # others: 422
MONTHS = calendar.month_name[1:]
FOLDER = Path(__file__).parent

app = App()
app.get("/", html((FOLDER / "page.html").read_text()))
app.get("/style.css", Response((FOLDER.parent / "style.css").read_text(), headers={"content-type": "text/css"}))

# Two reports at a time, however many workers there are: others wait in the store.
app.queue("reports", concurrency=2)


@app.job(queue="reports", retries=2, deadline=60)
def write_report(job: Job, year: int) -> dict[str, object] | None:
    """A plain function. That somebody wants it to end is for it to ask."""
    sales: list[tuple[str, int]] = []
    for number, month in enumerate(MONTHS):
        job.progress(number / len(MONTHS), f"{month} {year}")
        time.sleep(SECONDS / len(MONTHS))  # stands for the work
        if job.cancelled:
            return None
        sales.append((month, (year * 37 + number * 101) % 900 + 100))
    return {"year": year, "sales": sales, "total": sum(amount for _, amount in sales)}


@app.post("/reports/{year}")
def report(year: int, timeout: float = 20.0) -> Wait:
    """The report, if it is there in time; else 202 and where it will be. `Prefer: wait=0` asks not to wait at all."""
    if year not in YEARS:
        raise HTTPError(422, f"year: {YEARS[0]} to {YEARS[-1]}")
    return write_report.enqueue(year).result(timeout=min(max(0.0, timeout), HOLD_MAX))
