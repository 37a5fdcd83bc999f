"""An application whose behaviour is compared: served, and in `parkade.testing.Client` (`test_testing_client`)."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from parkade import (
    BEGINNING,
    App,
    Cors,
    File,
    History,
    HTTPError,
    Message,
    Request,
    Response,
    Router,
    Upload,
    Wait,
    after,
    channel,
    html,
    query,
    redirect,
)
from parkade._wire.payloads import UntilPublished

_folder = TemporaryDirectory()
STATIC = _folder.name
for _name, _content in {"a.txt": "0123456789", "a.txt.gz": "gzip", "docs/index.html": "<p>docs", ".env": "no"}.items():
    _path = Path(STATIC, _name)
    _path.parent.mkdir(exist_ok=True)
    _path.write_text(_content)
    os.utime(_path, (10**9, 10**9))


@dataclass
class Note:
    title: str
    stars: int = 1


def build(concurrent: bool) -> App:
    app = App(concurrent=concurrent)
    app.get("/constant", "constant")
    app.get("/page", html("<p>page"))
    app.get("/text", lambda: "text")
    app.get("/bytes", lambda: b"\x00\xff")
    app.get("/nothing", lambda: None)
    app.get("/json", lambda: {"a": [1, None, "ü"]})
    app.get("/long", lambda: "x" * 200_000)
    app.get("/pieces", pieces)
    app.route("/echo", echo, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    app.query("/search", search)
    app.route("/options", lambda: "allowed", methods=["OPTIONS"])
    app.post("/note", note)
    app.get("/number/{n:int}", number)
    app.post("/form", form)
    app.post("/files", files)
    app.get("/cookies/set", cookies_set)
    app.get("/cookies", cookies)
    app.get("/redirect", redirect("/text"))
    app.files("/static", STATIC, max_age=60)
    app.get("/download", lambda: File(f"{STATIC}/a.txt", filename="ä.txt"))
    app.get("/file", lambda name: File(f"{STATIC}/{name}"))
    app.get("/within", lambda name: File.within(STATIC, name))
    app.get("/gone", gone)
    app.get("/broken", broken)
    app.get("/after/{seconds:float}", soon)
    app.get("/after-constant", after(0, "at once"))
    app.get("/then", then)
    app.get("/next", following)
    app.get("/next/constant", channel("constant").next(timeout=0))
    app.get("/next/then", following_then)
    app.get("/first", channel("news").next(timeout=0, since=BEGINNING))
    app.post("/publish", publish)
    app.get("/held", channel("news").history())
    app.get("/held/newest", lambda: channel("news").history(count=1).headers({"x-why": "w"}, status=201))
    app.get("/held/then", lambda: channel("news").history().then(told_all))
    app.post("/publish/event", publish_event)
    app.channel("short*", count=5)
    app.channel("short", count=2)
    app.channel("small*", bytes=700)
    app.get("/sent/{what}", sent)
    app.post("/many/{name}", publish_many)
    app.get("/many/{name}", lambda name: channel(name).history())
    app.get("/many/{name}/next", next_of)
    app.post("/publish/returned", publish_returned)
    app.post("/publish/then", publish_then)
    app.get("/publish/unknown", lambda: Wait(UntilPublished(0)))
    app.get("/row", lambda: query("select 1 as one").one())
    app.get("/no-row", lambda: query("select 1 as one where 1 = 0").one())
    app.get("/bad-query", lambda: query("select from"))
    if concurrent:
        app.get("/ticks", ticks)
        app.get("/history", history)
        app.post("/publish/awaited", publish_awaited)
        app.get("/held/awaited", held)
    part = Router("/part")
    part.get("/", lambda: "part")
    part.get("/error", gone, name="part_gone")
    part.after(part_label)
    part.error(410)(part_gone)
    part.get("/next", channel("constant").next(timeout=0))
    part.get("/timer", lambda: after(0, "late"))
    part.get("/row", lambda: query("select 1 as one").one().headers({"x-why": "w"}))
    part.get("/replaced", lambda: query("select 1 as replaced"))
    app.include(part)
    app.include(added())
    app.headers({"x-usual": "yes", "x-why": "usual"})
    return app


def added() -> Router:
    """Waits with headers of their own, and pages of other origins."""
    router = Router("/added")
    router.cors(origins=["https://a.example", "https://*.b.example"], credentials=True, expose=["ETag"], max_age=60)
    given = {"x-why": "w", "cache-control": "max-age=60"}
    router.get("/timer", after(0, "late").headers(given, status=201))
    router.get("/timer/handler", lambda: after(0, "late").headers(given, status=201))
    router.get("/next", channel("constant").next(timeout=0).headers(given, status=201))
    router.get("/row", query("select 1 as one").one().headers(given, status=201))
    router.get("/row/handler", lambda: query("select 1 as one").headers(given, status=201).one())
    router.get("/no-row", lambda: query("select 1 as one where 1 = 0").one().headers(given, status=201))
    router.get("/cookie", lambda: Response(query("select 1 as one"), 202).set_cookie("a", "1"))
    router.get("/own", lambda: Response("own", headers={"access-control-allow-origin": "https://own.example"}))
    router.query("/search", search)
    router.get("/anybody", "anybody", cors=Cors(origins="*", methods=["GET"], headers=["X-A"]))
    router.get("/nobody", "nobody", cors=False)
    return router


def pieces() -> Iterator[str]:
    yield "one, "
    yield "two"


async def ticks() -> AsyncIterator[bytes]:
    """Waits before its answer begins, and in the middle of it."""
    await after(0)
    yield b"tick "
    first, _ = await asyncio.gather(channel("news").next(since=BEGINNING), after(0))
    yield first.body if first is not None else b"nothing"


async def history() -> list[str]:
    """Everything that is held, message by message."""
    found: list[str] = []
    cursor: str | None = BEGINNING
    while (message := await channel("news").next(timeout=0, since=cursor)) is not None:
        found.append(message.text)
        cursor = message.cursor
    return found


def echo(request: Request) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.path,
        "query": request.query.items_all(),
        "text": request.text,
        "type": request.content_type,
        "x": request.headers.getlist("x-given"),
    }


def note(body: Note) -> Note:
    return body


def number(n: int, limit: int = 5, tag: list[str] = []) -> list[object]:  # noqa: B006 (it is not changed)
    return [n, limit, tag]


def form(name: str, age: int | None = None) -> list[object]:
    return [name, age]


def files(file: Upload, title: str = "") -> list[object]:
    return [file.filename, file.content_type, file.body.decode(), title]


def search(body: dict[str, str], limit: int = 5) -> dict[str, object]:
    return {"found": body, "limit": limit}


def cookies_set() -> Response:
    return Response("set").set_cookie("a", "ü; b", secure=False).set_cookie("b", "2").delete_cookie("c")


def cookies(request: Request) -> dict[str, str]:
    return dict(request.cookies)


def gone() -> None:
    raise HTTPError(410, "it is gone", {"x-why": "age"})


def broken() -> None:
    raise RuntimeError("a secret")


def soon(seconds: float) -> Wait:
    return after(seconds, {"waited": seconds})


def then(request: Request) -> Wait:
    return after(0).then(resumed, word="word")


def resumed(outcome: None, word: str, request: Request) -> str:
    return f"{word} {request.path}"


def following(timeout: float = 0) -> Wait:
    return channel("news").next(timeout=timeout)


def following_then(timeout: float = 0) -> Wait:
    return channel("news").next(timeout=timeout).then(told)


def told(message: Message | None) -> str:
    return "nothing" if message is None else message.text


def publish(body: str) -> None:
    channel("news").publish(body)


def publish_event(body: str) -> None:
    channel("news").publish(body, event="typing")


def sent(what: str, request: Request) -> Response:
    match what:
        case "length":
            return Response("body", headers={"content-length": "5"})
        case "control":
            return Response("body", headers={"x-why": "a\x01"})
        case "fields":
            return Response([name for name, _ in request.headers.pairs() if name.startswith("x")])
        case _:
            return Response("body", int(what))


def publish_many(name: str, count: int, size: int = 1) -> None:
    for number in range(count):
        channel(name).publish(str(number) * size)


def next_of(name: str, since: str) -> Wait:
    return channel(name).next(timeout=0, since=since).then(told_with_gap)


def told_with_gap(message: Message | None) -> list[object] | None:
    return None if message is None else [message.text, message.gap]


def publish_returned(body: dict[str, int]) -> Wait:
    return channel("news").publish(body)


def publish_then(body: str) -> Wait:
    first = channel("news").publish(body)
    channel("news").publish("another")
    return first.then(follow)


def follow(cursor: str) -> Wait:
    return channel("news").next(timeout=0, since=cursor)


async def publish_awaited(body: dict[str, int]) -> list[object]:
    """Its own message is the next one after the cursor before it."""
    before = await channel("news").publish("before")
    first, second = channel("news").publish(body, event="typing"), channel("news").publish(b"\xff")
    cursors = [await second, await first]
    message = await channel("news").next(timeout=0, since=before)
    assert message is not None
    return [cursors[1] == message.cursor, cursors[0] != cursors[1], message.value, message.event, message.gap]


async def held() -> dict[str, object]:
    history = await channel("news").history(count=2)
    after_it = await channel("news").next(timeout=0, since=history.cursor)
    return {"held": history[:], "last": history[-1].event, "more": after_it is not None}


def told_all(history: History, request: Request) -> list[object]:
    return [request.path, *(message.text for message in history)]


def part_label(request: Request, response: Response) -> Response | None:
    response.headers["x-part"] = "yes"
    if request.path == "/part/replaced" and isinstance(response.body, Wait):
        return Response("instead of the wait", 203, {"x-part": "another"})
    return None


def part_gone(error: HTTPError) -> str:
    return f"part: {error.detail}"


app = build(bool(os.environ.get("CONCURRENT")))
