"""Under `parkade dev`, a wait that is neither returned nor awaited is reported in the log."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from parkade import App, Message, Wait, after, channel, query
from parkade._waits.unused import unwatch, watch
from parkade.testing import Client


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    gc.collect()  # waits of other tests that still hang in tracebacks are not meant
    watch()
    yield
    unwatch()


def shown(message: Message | None) -> object:
    return [message]


def test_a_wait_that_is_thrown_away_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()

    @app.get("/")
    def handler() -> str:
        after(5)
        query("select 1").one()
        channel("c").next().then(shown)
        return "at once"

    assert Client(app).get("/").text == "at once"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("ERROR: a wait was neither returned nor awaited") for line in lines)
    assert "select 1" in lines[1]
    first = handler.__code__.co_firstlineno + 2
    assert [f"({__file__}:{first + number})" in line for number, line in enumerate(lines)] == [True] * 3


def test_one_that_is_used_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()

    @app.get("/plain")
    def plain() -> Wait:
        return channel("c").next(timeout=1).then(shown)

    @app.get("/query")
    def asked() -> Wait:
        return query("select 1").one().shared("key")

    @app.get("/async")
    async def coroutine() -> object:
        await after(1)
        return await query("select 1").value(int)

    @app.job
    def job() -> Wait:
        return after(1, "x")

    app.get("/constant", after(1, "x"))
    with Client(app) as client:
        client.database(lambda asked: [{"n": 1}])
        answers = [client.get(path) for path in ("/plain", "/query", "/async", "/constant")]
        job.enqueue()
        client.run_jobs()
        client.advance(3)
        assert [answer.status for answer in answers] == [200, 200, 200, 200]
        assert client.jobs[0].result == "x"
    assert capsys.readouterr().err == ""
