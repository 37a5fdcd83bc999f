"""Thumbnails as jobs: upload pictures, follow them, get the small ones. Pictures are PPM (P6), to need no library."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from uuid import UUID, uuid4

from msgspec import Meta

from parkade import App, Discard, File, HTTPError, Job, Response, Retry, Upload, Wait

FOLDER = Path(os.environ.get("THUMBNAILS", "thumbnails"))
ROW_SECONDS = float(os.environ.get("ROW_SECONDS", "0"))  # stands for the work of larger pictures
AGE_MAX = 7 * 86_400  # seconds; older files are removed at night
HEAD = re.compile(rb"P6\s+(\d+)\s+(\d+)\s+255\s")

Width = Annotated[int, Meta(ge=1, le=512)]


@dataclass(frozen=True)
class Thumb:
    id: str
    title: str
    width: int
    height: int


app = App()
app.queue("pictures", concurrency=2)


@app.on_start
def make_folder() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)


def path_of(id: UUID, kind: str) -> Path:
    """Names are ours: what a client calls its file is never a path."""
    return FOLDER / f"{id}.{kind}.ppm"


@app.job(queue="pictures", retries=2, deadline=60)
def thumbnail(job: Job, id: UUID, title: str, width: int) -> Thumb | None:
    data = path_of(id, "original").read_bytes()
    found = HEAD.match(data)
    if found is None:
        raise Discard("not a picture")  # to try again would not help
    if title == "flaky" and job.attempt == 1:
        raise Retry(after=0.05)
    columns, rows, pixels = int(found[1]), int(found[2]), data[found.end() :]
    if not columns or not rows or len(pixels) < 3 * columns * rows:
        raise Discard("the picture is not whole")
    width = min(width, columns)
    height = max(1, rows * width // columns)
    made = bytearray(b"P6 %d %d 255\n" % (width, height))
    for row in range(height):
        if job.cancelled:
            return None
        job.progress(row / height, f"row {row + 1} of {height}")
        time.sleep(ROW_SECONDS)
        line = row * rows // height * columns
        for column in range(width):
            at = 3 * (line + column * columns // width)
            made += pixels[at : at + 3]
    part = path_of(id, f"part-{job.id}")
    part.write_bytes(made)
    part.rename(path_of(id, "small"))  # whole, or not there: a job may run twice
    return Thumb(str(id), title, width, height)


@app.post("/pictures")
def upload(pictures: list[Upload], width: Width = 64) -> Response:
    """202, and where each of them will be."""
    jobs: list[str] = []
    for picture in pictures:
        id = uuid4()
        path_of(id, "original").write_bytes(picture.body)
        jobs.append(f"/jobs/{thumbnail.enqueue(id, picture.filename.rpartition('.')[0], width).id}")
    return Response(jobs, 202)


@app.post("/picture")
def upload_and_wait(picture: Upload, width: Width = 64) -> Wait:
    """The thumbnail, if it is made in time."""
    id = uuid4()
    path_of(id, "original").write_bytes(picture.body)
    return thumbnail.enqueue(id, "one", width).result(timeout=20).then(show)


def show(thumb: Thumb | None) -> Response:
    if thumb is None:
        raise HTTPError(503, "not made yet", {"retry-after": "5"})
    return Response(thumb, 201, {"location": f"/pictures/{thumb.id}"})


@app.get("/pictures/{id:uuid}")
def picture(id: UUID) -> File:
    return File.within(FOLDER, path_of(id, "small").name, content_type="image/x-portable-pixmap")


@app.cron("30 3 * * *", timezone="Europe/Madrid")
@app.job
def tidy() -> int:
    """Removes old files; how many."""
    old = [path for path in FOLDER.glob("*.ppm") if time.time() - path.stat().st_mtime > AGE_MAX]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


@app.post("/tidy")
async def tidy_now() -> dict[str, int | None]:
    return {"removed": await tidy.enqueue().result(timeout=20)}
