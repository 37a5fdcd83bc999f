"""Who may have a job at its address: the function that says so, in a worker and in the test client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from parkade import App, HTTPError, Job, Request, Response, SignatureError, StoredJob, after
from parkade._handling.handling import Handling
from parkade._link.answers import Parked
from parkade._wire import payloads as p
from parkade.testing import Client
from parkade.testing import Parked as ParkedResponse

ASKING: tuple[tuple[str, dict[str, str]], ...] = (
    ("GET", {}),
    ("GET", {"Prefer": "wait=20"}),
    ("GET", {"Accept": "text/event-stream"}),
    ("DELETE", {}),
)
NOBODY = "0192f3a4-5b6c-7d8e-9f01-23456789abcd"


def work(owner: str, pages: int = 1) -> str:
    return f"{owner} has {pages}"


def owner_only(request: Request, job: StoredJob) -> bool:
    user = request.headers.get("x-user")
    if user is None:
        raise HTTPError(401, headers={"www-authenticate": "Basic"})
    if user == "bad":
        raise ValueError("a fault")
    return bool(job.arguments["owner"] == user)


async def owner_only_later(request: Request, job: StoredJob) -> bool:
    if request.headers.get("x-user") == "slow":
        await after(5, None)
    return owner_only(request, job)


@pytest.fixture(params=[owner_only, owner_only_later], ids=["plain", "coroutine"])
def app(request: pytest.FixtureRequest) -> App:
    return application(request.param)


def application(access: Callable[..., Any], **options: Any) -> App:
    app = App(**options)
    job = app.job(name="work", access=access)(work)
    app.get("/{owner}", lambda owner: job.enqueue(owner).id)
    return app


@pytest.fixture
def client(app: App) -> Iterator[Client]:
    with Client(app) as client:
        yield client


def ask(
    client: Client, id: str, user: str | None, method: str = "GET", fields: dict[str, str] | None = None
) -> Response:
    headers = (fields or {}) | ({} if user is None else {"X-User": user})
    return client.request(method, f"/jobs/{id}", headers=headers)  # type: ignore[return-value]


# In the test client, as in the core


def test_whoever_may_has_the_job_as_if_it_were_public(client: Client) -> None:
    id = client.get("/ada").text
    pending = ask(client, id, "ada")
    assert (pending.status, pending.headers["location"]) == (202, f"/jobs/{id}")
    waiting, stream = (ask(client, id, "ada", *asking) for asking in ASKING[1:3])
    client.run_jobs()
    assert waiting.text == ask(client, id, "ada").text == "ada has 1"
    assert isinstance(stream, ParkedResponse)
    assert [message.value["state"] for message in stream.messages] == ["ready", "completed"]
    other = client.get("/ada").text
    assert (ask(client, other, "ada", "DELETE").status, client.jobs[1].state) == (200, "cancelled")


def fields_of(response: Response) -> list[tuple[str, str]]:
    """Its header fields, but for the one that differs between any two requests."""
    return [(name, value) for name, value in response.headers.items() if name != "x-request-id"]


def test_to_whoever_may_not_it_is_as_a_job_that_there_is_not(client: Client) -> None:
    id = client.get("/ada").text
    for method, fields in ASKING:
        refused, missing = (ask(client, one, "eve", method, fields) for one in (id, NOBODY))
        assert refused.status == missing.status == 404
        assert fields_of(refused) == fields_of(missing)
        assert refused.text == missing.text.replace(NOBODY, id)
    assert client.jobs[0].state == "ready"


def test_what_it_raises_is_the_answer_and_nothing_is_cancelled(client: Client) -> None:
    id = client.get("/ada").text
    for method, fields in ASKING:
        denied = ask(client, id, None, method, fields)
        assert (denied.status, denied.headers["www-authenticate"]) == (401, "Basic")
        assert ask(client, id, "bad", method, fields).status == 500
    assert client.jobs[0].state == "ready"


def test_a_coroutine_may_take_its_time() -> None:
    with Client(application(owner_only_later)) as client:
        id = client.get("/slow").text
        slow, leaves = (ask(client, id, "slow", "DELETE") for _ in range(2))
        client.leave(leaves)
        assert client.jobs[0].state == "ready"
        client.advance(5)
        assert (slow.status, client.jobs[0].state) == (200, "cancelled")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_hooks_and_error_handlers_stand_around_it(asynchronous: bool) -> None:
    seen: list[object] = []
    app = application(lambda request, job: seen.append((request.state["user"], dict(request.parameters))) or True)

    def before(request: Request) -> Response | None:
        request.state["user"] = request.headers.get("x-user")
        return Response("who?", 403) if request.state["user"] is None else None

    async def before_later(request: Request) -> Response | None:
        return before(request)

    app.before(before_later if asynchronous else before)

    @app.error(HTTPError)
    def error(error: HTTPError) -> str:
        return "an error"

    with Client(app) as client:
        id = client.get("/ada", headers={"X-User": "ada"}).text
        assert (ask(client, id, None).text, seen) == ("who?", [])
        assert ask(client, id, "eve", "DELETE").status == 200
        assert seen == [("eve", {"id": id})]


@pytest.mark.parametrize("result", [None, 1, "yes", after(1, True), [True]])
def test_it_says_true_or_false_and_nothing_else(result: object, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(application(lambda request, job: result)) as client:
        id = client.get("/ada").text
        assert ask(client, id, "ada", "DELETE").status == 500
        assert client.jobs[0].state == "ready"
    assert "access must return True or False at once" in capsys.readouterr().err


def test_what_is_given_is_told_by_the_parameters_of_the_function() -> None:
    app, seen = App(), []

    def access(request: Request, job: StoredJob) -> bool:
        seen.append((job.id, job.name, job.arguments, request.body, request.route))
        return True

    @app.job(access=access)
    def kept(job: Job, owner: tuple[str, int], *rest: int, size: float = 1.5, **more: str) -> None: ...

    app.get("/", lambda: kept.enqueue(("ada", 7), 1, 2, colour="red").id)
    with Client(app) as client:
        id = client.get("/").text
        assert client.get(f"/jobs/{id}").status == 202
    arguments = {"owner": ("ada", 7), "rest": (1, 2), "size": 1.5, "more": {"colour": "red"}}
    assert seen == [(id, "kept", arguments, b"", "job")]


# In a worker


def asked(app: App, name: str, arguments: bytes = b"") -> Any:
    handling = Handling(app)
    head = msgspec.Raw(msgspec.msgpack.encode(["GET", "/jobs/x", "", [], "", "http", "1.1"]))
    return handling.runs[len(app._all_routes)](p.Request(len(app._all_routes), [NOBODY, name], None, arguments, head))


@pytest.mark.parametrize("concurrent", [False, True])
def test_of_a_job_that_is_not_asked_about_any_more_it_says_what_holds_now(concurrent: bool) -> None:
    app = application(owner_only, concurrent=concurrent)
    app.job(name="open")(lambda: None)
    app.job(name="hidden", public=False)(lambda: None)
    for name, granted in [("open", True), ("hidden", False), ("unknown", False)]:
        answer = asked(app, name)
        answer = asyncio.run(answer) if concurrent else answer
        assert isinstance(answer, Parked)
        assert msgspec.msgpack.decode(answer.park) == [["access", granted], ["answer", None]]


def test_it_is_told_how_it_is_asked() -> None:
    app = App()
    app.job(name="open")(lambda: None)
    app.job(name="plain", access=owner_only)(lambda owner: None)
    assert [job.access for job in app._ready().jobs] == ["public", "sync"]
    assert not app._is_concurrent
    app.job(name="coroutine", access=owner_only_later)(lambda owner: None)
    assert [job.access for job in app._ready().jobs] == ["public", "sync", "async"]
    assert app._is_concurrent, "somebody has to await it"


class Members:
    """A callable object, and one with a method."""

    def __call__(self, request: Request, job: StoredJob) -> bool:
        return True

    async def later(self, request: Request, job: StoredJob) -> bool:
        return False


def test_whatever_can_be_called_may_be_asked() -> None:
    for access, status in [(Members(), 202), (Members().later, 404)]:
        with Client(application(access)) as client:
            assert client.get(f"/jobs/{client.get('/ada').text}").status == status


def generates(request: Request, job: StoredJob) -> Iterator[bool]:
    yield True


@pytest.mark.parametrize(
    ("access", "why"),
    [
        (lambda request: True, "access takes the request and the job"),
        (lambda request, job, user: True, "access takes the request and the job"),
        (True, "access is a function of the request and the job, not True"),
        (Members, "access is a function"),
        (generates, "True or False, not yield"),
    ],
)
def test_a_function_that_cannot_be_asked_is_refused_at_once(access: Any, why: str) -> None:
    with pytest.raises(SignatureError, match=why):
        App().job(access=access)


def test_a_private_job_has_nobody_to_be_asked_about() -> None:
    with pytest.raises(SignatureError, match="with public=False a job has no address"):
        App().job(public=False, access=owner_only)
