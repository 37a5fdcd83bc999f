"""Jobs as an application has them: registered, enqueued, run under the testing client."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain, combinations
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
import pytest

from parkade import (
    App,
    Discard,
    Job,
    JobError,
    Request,
    Response,
    Retry,
    SignatureError,
    Status,
    WaitError,
    after,
    channel,
    html,
    query,
)
from parkade._job import JobState
from parkade._wire import ready as r
from parkade.jobs import Handle, JobFunction
from parkade.jobs._arguments import Signature, encode_arguments
from parkade.testing import Client, Enqueued, Parked


@dataclass
class Mail:
    to: str
    copies: int = 1


def nothing() -> None: ...


def line(line: str) -> None: ...


def all_kinds(
    mail: Mail, at: datetime, number: Decimal, id: UUID, *rest: int, flag: bool = False, **more: float
) -> list[Any]:
    return [mail, number, id, rest, flag, more]


# Registered


def test_a_job_is_told_with_its_queue_and_a_route_of_its_own() -> None:
    app = App()
    app.queue("mail", concurrency=2, rate=10)
    app.job(line)
    app.job(retries=5, deadline=60, queue="mail", priority=-3, name="send")(nothing)
    told = app._ready()
    assert [msgspec.structs.replace(job, source=None) for job in told.jobs] == [
        r.Job(name="line", kind="sync"),
        r.Job(name="send", kind="sync", queue="mail", retries=5, deadline=60, priority=-3),
    ]
    assert told.queues == [r.Queue("mail", r.QueueOptions(2, 10))]
    assert [(route.methods, route.path, route.kind) for route in told.routes] == [
        (["GET", "DELETE"], "/jobs/{id:uuid}", "job")
    ]


@pytest.mark.parametrize(
    ("path", "told"),
    [("/a/b", ["/a/b/{id:uuid}"]), ("/a/", ["/a/{id:uuid}"]), (None, []), ("", ["/{id:uuid}"]), ("/", ["/{id:uuid}"])],
)
def test_the_route_of_jobs_is_where_the_application_wants_it(path: str | None, told: list[str]) -> None:
    app = App(jobs_path=path)
    assert app._ready().routes == [], "without jobs there is none"
    app.job(nothing)
    assert [route.path for route in app._ready().routes] == told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/{tenant}/jobs", "jobs_path must not have parameters"),
        ("/jobs/{id}", "jobs_path must not have parameters"),
        ("jobs", "begin with a slash"),
    ],
)
def test_a_path_of_jobs_that_cannot_be_is_refused_at_once(path: str, told: str) -> None:
    with pytest.raises(SignatureError, match=told):
        App(jobs_path=path)


def test_a_coroutine_among_jobs_makes_the_application_concurrent() -> None:
    app = App()
    app.job(nothing)
    assert not app._is_concurrent

    @app.job
    async def wait() -> None: ...

    assert app._is_concurrent
    assert (app._ready().jobs[1].name, app._ready().jobs[1].kind) == ("wait", "async")


def test_a_job_is_still_an_ordinary_function() -> None:
    app = App()

    @app.job
    def double(n: int) -> int:
        "Twice."
        return 2 * n

    @app.job
    async def triple(n: int) -> int:
        return 3 * n

    assert (double(2), double.__name__, double.__doc__) == (4, "double", "Twice.")
    assert asyncio.run(triple(2)) == 6  # type: ignore[arg-type]


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def two(job: Job, other: Job) -> None: ...
def unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("register", "reason"),
    [
        (lambda app: app.job(generator), "not yield"),
        (lambda app: app.job(async_generator), "not yield"),
        (lambda app: app.job(Mail), "a job is a function"),
        (lambda app: app.job(lambda: 1), "lambda"),
        (lambda app: app.job(two), "cannot both be the job"),
        (lambda app: app.job(unknown), "Nowhere"),
        (lambda app: app.job(name="")(nothing), "1 to 200 bytes"),
        (lambda app: app.job(name="a\n")(nothing), "control character"),
        (lambda app: app.job(retries=-1)(nothing), "retries"),
        (lambda app: app.job(deadline=-1)(nothing), "0 or more"),
        (lambda app: app.job(queue="")(nothing), "a queue"),
        (lambda app: app.job(priority=1_001)(nothing), "priority"),
        (lambda app: [app.job(nothing), app.job(name="nothing")(line)], "two jobs are named"),
        (lambda app: app.job(app.job(nothing)), "a job already"),
        (lambda app: app.every(0)(nothing), "every 0"),
        (lambda app: app.every("5 parsecs")(nothing), "5 parsecs"),
        (lambda app: app.every(True)(nothing), "every True"),
        (lambda app: app.cron("0 3 * *")(nothing), "five fields"),
        (lambda app: app.cron("0 3 * * *", timezone="")(nothing), "time zone"),
        (lambda app: app.every(1, missed="never")(nothing), "missed"),
        (lambda app: app.every(1)(line), "without arguments"),
        (lambda app: app.every(1, name="x")(app.every(2, name="x")(nothing)), "two recurring jobs"),
    ],
)
def test_what_can_be_no_job_is_refused_when_it_is_registered(register: Callable[[App], Any], reason: str) -> None:
    with pytest.raises(SignatureError, match=reason):
        register(App())


@pytest.mark.parametrize("bounds", [{"concurrency": 0}, {"rate": 0}, {"rate": float("inf")}, {"concurrency": 1.5}])
def test_a_queue_is_bounded_by_what_can_be_a_bound(bounds: dict[str, Any]) -> None:
    app = App()
    with pytest.raises(ValueError, match="of a queue"):
        app.queue("mail", **bounds)
    app.queue("mail", concurrency=1)
    with pytest.raises(ValueError, match="has limits already"):
        app.queue("mail")


@pytest.mark.parametrize(
    ("period", "seconds"),
    [("5 minutes", 300), ("1 hour", 3_600), ("day", 86_400), ("1.5s", 1.5), (300, 300), (timedelta(days=1), 86_400)],
)
def test_a_period_is_a_text_a_number_or_a_timedelta(period: Any, seconds: float) -> None:
    app = App()
    app.every(period)(nothing)
    (told,) = app._ready().recurring
    assert (told.every, told.cron, told.missed, told.arguments) == (seconds, None, "once", b"\x93\x01\x90\x80")


def test_a_job_recurs_over_or_under_its_decorator_and_alone() -> None:
    app = App()

    @app.every("1 hour", missed="skip")
    @app.job(retries=0)
    def over() -> None: ...

    @app.job(retries=1, name="below")
    @app.cron("0 3  * * *", timezone="Europe/Berlin")
    def under() -> None: ...

    @app.every(60)
    @app.every(30)
    def alone(job: Job) -> None: ...

    told = app._ready()
    assert [(job.name, job.retries) for job in told.jobs] == [("over", 0), ("below", 1), ("alone", 3)]
    assert [(one.name, one.job, one.every, one.cron, one.timezone, one.missed) for one in told.recurring] == [
        ("over", "over", 3_600, None, "UTC", "skip"),
        ("under", "below", None, "0 3 * * *", "Europe/Berlin", "once"),
        ("alone", "alone", 30, None, "UTC", "once"),
        ("alone every 60 s", "alone", 60, None, "UTC", "once"),
    ]
    with pytest.raises(SignatureError, match="already"):
        app.job(over)


def test_a_recurring_job_has_the_key_of_one_that_is_enqueued_without_arguments() -> None:
    app = App()

    @app.every(60)
    @app.job(unique=True)
    def once(year: int = 2026) -> None: ...

    @app.job(unique=lambda: "the only one")
    @app.every(60)
    def named() -> None: ...

    app.every(60)(nothing)
    with Client(app) as client:
        once.enqueue()
        keys = [one.key for one in app._ready().recurring]
        assert keys == [client.jobs[0].told.options.key, "the only one", None]
    app.every(60)(app.job(unique=lambda year: str(year), name="yearly")(once._function))
    with pytest.raises(SignatureError, match="yearly is a recurring job"):
        app._ready()


# Enqueued


OPTIONS = ("delay", "at", "priority", "key", "queue")


def enqueue(job: JobFunction[..., Any], *args: Any, **more: Any) -> Handle:
    """Options and arguments of the job's function are given alike."""
    options = {name: more.pop(name) for name in OPTIONS if name in more}
    return (job.options(**options) if options else job).enqueue(*args, **more)


def enqueued(register: Callable[[App], JobFunction[..., Any]], *args: Any, **kwargs: Any) -> Enqueued:
    app = App()
    job = register(app)
    with Client(app) as client:
        enqueue(job, *args, **kwargs)
        return client.jobs[-1]


def test_arguments_may_have_the_names_of_options() -> None:
    app = App()
    seen: list[Any] = []

    @app.job
    def remind(at: int, delay: str = "") -> None:
        seen.append((at, delay))

    with Client(app) as client:
        remind.options(delay=5, key="k").enqueue(7, delay="later")
        assert client.jobs[0].options == {"delay": 5, "key": "k"}
        client.run_jobs()
    assert seen == [(7, "later")]


def test_an_option_among_the_arguments_is_told_where_it_belongs() -> None:
    with pytest.raises(TypeError, match=re.escape("options come first: .options(delay=…).enqueue(…)")):
        App().job(line).enqueue("x", delay=5)


def test_options_are_checked_where_they_are_given() -> None:
    with pytest.raises(ValueError, match="delay"):
        App().job(line).options(delay=-1)


MOMENT = datetime(2030, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, {}),
        ({"delay": 2.5, "priority": 7, "queue": "mail", "key": "k"}, None),
        ({"at": MOMENT}, {"at": MOMENT.timestamp()}),
        ({"at": 10}, {"at": 10}),
    ],
)
def test_options_go_along(options: dict[str, Any], told: dict[str, Any] | None) -> None:
    job = enqueued(lambda app: app.job(line), "x", **options)
    assert (job.name, job.args, job.kwargs, job.options) == ("line", ("x",), {}, options if told is None else told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, {"queue": "slow", "priority": 7}),
        ({"key": "k"}, {"queue": "slow", "priority": 7, "key": "k"}),
        ({"priority": 0, "queue": "default"}, {"queue": "default", "priority": 0}),
    ],
)
def test_what_an_enqueue_does_not_say_is_what_the_function_says(options: dict[str, Any], told: dict[str, Any]) -> None:
    assert enqueued(lambda app: app.job(queue="slow", priority=7)(nothing), **options).options == told
    assert enqueued(lambda app: app.job(queue="slow", priority=7)(app.every(60)(nothing)), **options).options == told


@pytest.mark.parametrize(
    ("args", "options", "error", "reason"),
    [
        ((), {}, TypeError, r"line\(line: .*missing a required argument: 'line'"),
        (("x", "y"), {}, TypeError, "too many positional"),
        ((), {"other": 1}, TypeError, "line"),
        ((object(),), {}, TypeError, "argument 1 cannot be encoded as MessagePack"),
        ((), {"line": {1: object()}}, TypeError, "argument line cannot be encoded"),
        (("x" * 524_288,), {}, ValueError, "at most 524288 bytes"),
        ((2**70,), {}, TypeError, "argument 1"),
        (("x",), {"delay": -1}, ValueError, "delay"),
        (("x",), {"delay": "1"}, TypeError, "delay"),
        (("x",), {"delay": 1, "at": 2}, ValueError, "not both"),
        (("x",), {"at": datetime(2030, 1, 1)}, ValueError, "time zone"),
        (("x",), {"at": float("nan")}, ValueError, "finite"),
        (("x",), {"priority": 1_001}, ValueError, "priority"),
        (("x",), {"priority": 1.5}, TypeError, "priority"),
        (("x",), {"key": ""}, ValueError, "a key"),
        (("x",), {"key": "ü" * 101}, ValueError, "a key"),
        (("x",), {"queue": 7}, TypeError, "a queue"),
    ],
)
def test_what_cannot_be_enqueued_is_refused_where_it_is_tried(
    args: tuple[Any, ...], options: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        enqueued(lambda app: app.job(line), *args, **options)


def test_there_must_be_a_core() -> None:
    with pytest.raises(WaitError, match="no core here"):
        App().job(line).enqueue("x")


def test_ids_are_uuids_in_the_order_of_time_and_the_handle_has_them() -> None:
    app = App()
    job = app.job(nothing)
    with Client(app) as client:
        handle = job.enqueue()
        assert [UUID(handle.id)] == [UUID(job.id) for job in client.jobs]
        assert UUID(handle.id).version == 7
        assert UUID(handle.id).variant == UUID("0192f3a4-5b6c-7d8e-9f01-23456789abcd").variant
        assert Handle.of(handle.id).id == handle.id


def by_first(n: int, text: str = "") -> str:
    return f"first {n}"


@pytest.mark.parametrize(
    ("unique", "calls", "count"),
    [
        (False, [((1,), {}), ((1,), {})], 2),
        (True, [((1,), {}), ((), {"n": 1}), ((1,), {"text": ""}), ((1,), {"key": "other"})], 2),
        (True, [((1,), {}), ((2,), {})], 2),
        (by_first, [((1, "a"), {}), ((1, "b"), {}), ((2, "b"), {})], 2),
    ],
)
def test_a_unique_job_is_the_one_that_has_not_ended(
    unique: Any, calls: list[tuple[tuple[Any, ...], dict[str, Any]]], count: int
) -> None:
    app = App()
    job = app.job(unique=unique)(by_first)
    with Client(app) as client:
        for args, kwargs in calls:
            enqueue(job, *args, **kwargs)
        assert len(client.jobs) == count
        client.run_jobs()
        job.enqueue(1)
        assert len(client.jobs) == count + 1, "it has ended"


# Run


def ran(function: Callable[..., Any], *args: Any, **options: Any) -> Enqueued:
    """What becomes of a job that is enqueued with these arguments."""
    app = App()
    job = app.job(**options)(function)
    with Client(app) as client:
        job.enqueue(*args)
        client.run_jobs()
        return client.jobs[0]


def test_arguments_come_back_as_the_annotations_say() -> None:
    seen: list[Any] = []

    def job(mail: Mail, when: datetime, number: Decimal, id: UUID, *rest: int, **more: float) -> None:
        seen.extend([mail, when, number, id, rest, more])

    app = App()
    made = app.job(job)
    id = UUID("0192f3a4-5b6c-7d8e-9f01-23456789abcd")
    with Client(app) as client:
        made.enqueue(Mail("a@b"), MOMENT, Decimal("1.50"), id, 1, 2, x=1)
        client.run_jobs()
        assert client.jobs[0].state == "completed"
    assert seen == [Mail("a@b", 1), MOMENT, Decimal("1.50"), id, (1, 2), {"x": 1.0}]
    assert isinstance(seen[5]["x"], float)


def with_job_first(job: Job, /, a: int, b: int = 2, *c: int, d: int = 4) -> list[Any]:
    return [job.name, a, b, c, d]


def with_job_last(a: int = 1, *, this: Job) -> list[Any]:
    return [this.name, a]


def with_job_maybe(a: int, job: Job | None = None) -> list[Any]:
    return [a, job is not None]


def with_any_called_job(a: int, job: Any) -> list[Any]:
    return [a, isinstance(job, Job)]


def with_an_argument_called_job(job: str) -> str:
    return job


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        (with_job_first, (1,), ["with_job_first", 1, 2, [], 4]),
        (with_job_first, (1, 3, 5, 6), ["with_job_first", 1, 3, [5, 6], 4]),
        (with_job_last, (), ["with_job_last", 1]),
        (with_job_maybe, (7,), [7, True]),
        (with_any_called_job, (7,), [7, True]),
        (with_an_argument_called_job, ("x",), "x"),
    ],
)
def test_the_job_is_given_wherever_its_parameter_stands(
    function: Callable[..., Any], args: tuple[Any, ...], result: Any
) -> None:
    assert ran(function, *args).result == result


JOB = Job(JobState(bytes(16), "job", 1, None), 1)


@pytest.mark.parametrize(
    ("function", "without_job"),
    [
        (lambda a, b=2: (a, b), lambda a, b=2: (a, b)),
        (lambda job, a, b=2: (a, b, job), lambda a, b=2: (a, b, JOB)),
        (lambda a=1, job=None, b=2: (a, b, job), lambda a=1, b=2: (a, b, JOB)),
        (lambda a, b, job: (a, b, job), lambda a, b: (a, b, JOB)),
        (lambda a, b=2, *, job, c=3: (a, b, c, job), lambda a, b=2, *, c=3: (a, b, c, JOB)),
        (lambda a, *, b, c=3: (a, b, c), lambda a, *, b, c=3: (a, b, c)),
        (
            lambda a, job, /, b=2, *c, d=4, **e: (a, b, c, d, e, job),
            lambda a, /, b=2, *c, d=4, **e: (a, b, c, d, e, JOB),
        ),
        (lambda job, a, b, /, **e: (a, b, e, job), lambda a, b, /, **e: (a, b, e, JOB)),
        (lambda *a, job, b: (a, b, job), lambda *a, b: (a, b, JOB)),
    ],
)
def test_arguments_reach_their_parameters_as_in_a_call(
    function: Callable[..., Any], without_job: Callable[..., Any]
) -> None:
    signature = Signature(function)
    for count in range(4):
        for names in chain.from_iterable(combinations("abcde", length) for length in range(4)):
            args, kwargs = tuple(range(count)), {name: name for name in names}
            arguments = encode_arguments("job", args, kwargs)
            try:
                expected = without_job(*args, **kwargs)
            except TypeError:
                with pytest.raises(TypeError, match="job"):
                    signature.check("job", args, kwargs)
                with pytest.raises(TypeError, match="job"):
                    signature.decode("job", arguments, JOB)
            else:
                signature.check("job", args, kwargs)
                given, named = signature.decode("job", arguments, JOB)
                assert function(*given, **named) == expected, (args, kwargs)


def exact(n: Annotated[int, msgspec.Meta(le=100)], mail: Mail = Mail("a"), *rest: int) -> None: ...  # noqa: B008


@dataclass
class Refusing:
    n: int
    refuses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.refuses:
            raise KeyError("refused")


def test_an_argument_whose_type_raises_ends_the_attempt_and_not_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App()

    @app.job(retries=0)
    def job(refusing: Refusing) -> None: ...

    with Client(app) as client:
        job.enqueue({"n": 1})
        monkeypatch.setattr(Refusing, "refuses", True)
        client.run_jobs()
        assert (client.jobs[0].state, client.jobs[0].error) == ("dead", "KeyError: 'refused'")


def test_what_a_job_knows_of_itself() -> None:
    seen: list[Any] = []

    def look(job: Job) -> None:
        seen.append((job.id, job.name, job.attempt, job.deadline, job.cancelled))
        job.progress(0.5, "half " + "ü" * 1_000)
        with pytest.raises(ValueError, match="between 0 and 1"):
            job.progress(1.5)

    job = ran(look)
    assert seen == [(job.id, "look", 1, None, False)]
    assert job.progress is not None
    assert job.progress[0] == 0.5
    assert job.progress[1].startswith("half ü")
    assert len(job.progress[1].encode()) <= 1_000


@pytest.mark.parametrize(
    ("raises", "state", "attempts", "error"),
    [
        (ValueError("no"), "dead", 3, "ValueError: no"),
        (KeyError(), "dead", 3, "KeyError"),
        (SystemExit(1), "dead", 3, "SystemExit: 1"),
        (Retry(after=10), "dead", 3, "Retry was raised"),
        (Retry(10, "busy"), "dead", 3, "busy"),
        (Discard("why"), "dead", 1, "why"),
        (None, "completed", 1, None),
    ],
)
def test_a_job_that_fails_is_tried_again(
    raises: BaseException | None, state: str, attempts: int, error: str | None
) -> None:
    def job() -> None:
        if raises is not None:
            raises.__context__ = None
            raise raises

    done = ran(job, retries=2)
    assert (done.state, done.attempt, done.error) == (state, attempts, error)


def test_a_retry_says_what_it_was_raised_from() -> None:
    def job() -> None:
        try:
            raise ConnectionError("refused")
        except ConnectionError as error:
            raise Retry(after=1) from error

    assert ran(job, retries=0).error == "ConnectionError: refused"


def test_what_went_wrong_is_in_the_log_unless_it_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    def job(kind: str) -> object:
        if kind == "raise":
            raise ValueError("in the job")
        if kind == "return":
            return object()
        raise Discard("meant")

    for kind in ("raise", "return", "discard"):
        ran(job, kind, retries=0)
    printed = capsys.readouterr().err
    assert "ERROR: job job" in printed
    assert "ValueError: in the job" in printed
    assert 'raise ValueError("in the job")' in printed
    assert "attempt 1: it returned a value of type object that cannot be encoded as MessagePack" in printed
    assert "meant" not in printed


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (object(), "cannot be encoded as MessagePack"),
        ("x" * 524_288, "a job's result has at most 524288"),
        (Response(iter(["x"])), "an iterator"),
        ([html("x")], "cannot be encoded"),
        (channel("x").stream(), "a job cannot return a stream or a file"),
        (after(1, "x" * 64_510), "returned a wait for a result of 64513 bytes: a wait keeps at most 64512"),
        (2**70, "cannot be encoded"),
    ],
)
def test_a_result_that_cannot_be_kept_is_a_failure(value: object, error: str) -> None:
    done = ran(lambda: value, name="job", retries=0)
    assert done.state == "dead"
    assert error in str(done.error)


def test_as_much_as_a_wait_keeps_is_given_behind_it() -> None:
    app = App()
    job = app.job(name="j" * 200)(lambda: after(1, "x" * 64_509))
    with Client(app) as client:
        job.enqueue()
        client.run_jobs()
        client.advance(1)
        assert client.jobs[0].result == "x" * 64_509


@dataclass
class Thumb:
    name: str
    price: Decimal
    made: datetime
    size: int = 1


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "said"),
    [
        (line, (7,), {}, "line: its argument line: Expected `str`, got `int`"),
        (line, (), {"line": None}, "line: its argument line: Expected `str`, got `None`"),
        (lambda n: n, (1, 2), {}, "too many positional arguments"),
        (exact, ("5",), {}, "exact: its argument n: Expected `int`, got `str`"),
        (exact, (5, {"to": 1}), {}, "exact: its argument mail: Expected `str`, got `int` - at `$.to`"),
        (exact, (101,), {}, "exact: its argument n: Expected `int` <= 100"),
        (exact, (5, Mail("a"), 1, "2"), {}, "exact: its argument rest: Expected `int`, got `str`"),
    ],
)
def test_enqueue_checks_arguments_at_once(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> None:
    app = App()
    job = app.job(name=function.__name__.strip("<>"))(function)
    with Client(app) as client:
        with pytest.raises(TypeError, match=re.escape(said)):
            job.enqueue(*args, **kwargs)
        assert client.jobs == []


def test_what_a_worker_would_convert_is_taken() -> None:
    app = App()

    @app.job
    def job(share: float, id: UUID, when: datetime, mail: Mail, any, *, tags: set[str]) -> None:  # type: ignore[no-untyped-def]
        seen.extend([share, id, when, mail, any, tags])

    seen: list[Any] = []
    id = UUID(int=7)
    with Client(app) as client:
        job.enqueue(1, str(id), MOMENT, {"to": "a@b"}, [1], tags=["x"])
        client.run_jobs()
    assert seen == [1.0, id, MOMENT, Mail("a@b"), [1], {"x"}]


class Anything: ...


def test_a_job_with_a_parameter_that_nothing_can_become_is_refused_when_the_application_loads() -> None:
    def job(thing: Anything | None) -> None: ...

    with pytest.raises(SignatureError, match="its parameter thing: no input can be converted to Anything"):
        App().job(job)


def shown_thumb(result: Thumb | Response | None, title: str) -> object:
    return [type(result).__name__, result, title]


def shown_bare(result, title: str) -> object:  # type: ignore[no-untyped-def]
    return [type(result).__name__, result, title]


def wrong_thumb(result: Mail) -> object:
    return result


def test_a_result_is_what_the_annotations_say_after_then_and_after_await(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()

    @app.job
    def thumbnail() -> Thumb:
        return Thumb("t", Decimal("1.50"), MOMENT)

    @app.job
    async def slow() -> Thumb | None:
        return await thumbnail.enqueue().result()  # type: ignore[no-any-return]

    @app.job
    def response() -> Thumb | Response:
        return Response("whole", 201)

    app.get("/then", lambda: thumbnail.enqueue().result().then(shown_thumb, title="x"))
    app.get("/bare", lambda: thumbnail.enqueue().result().then(shown_bare, title="x"))
    app.get("/wrong", lambda: thumbnail.enqueue().result().then(wrong_thumb))
    app.get("/response", lambda: response.enqueue().result().then(shown_thumb, title="x"))

    @app.get("/await")
    async def awaited() -> object:
        thumb = await thumbnail.enqueue().result()
        later = await slow.enqueue().result()
        whole = await response.enqueue().result()
        early = await thumbnail.enqueue().result(timeout=0)
        return [type(thumb).__name__, thumb, thumb == later, type(whole).__name__, early]

    told = {"name": "t", "price": "1.50", "made": "2030-01-01T00:00:00Z", "size": 1}
    with Client(app) as client:

        def got(path: str) -> Any:
            parked = client.get(path)
            for _ in range(4):
                client.run_jobs()
            return parked

        assert got("/then").json() == ["Thumb", told, "x"]
        assert got("/bare").json() == ["dict", told, "x"]
        assert got("/response").status == 500, "a Response within JSON"
        assert got("/wrong").status == 500
        assert "wrong_thumb: its parameter result: a value of type dict cannot become Mail" in capsys.readouterr().err
        assert got("/await").json() == ["Thumb", told, True, "Response", None]


@pytest.mark.parametrize("hook_is_async", [False, True])
def test_error_handlers_and_hooks_see_a_result_that_no_function_can_be_called_with(hook_is_async: bool) -> None:
    app = App()

    @app.job(retries=0)
    def failing() -> Thumb:
        raise RuntimeError("broken")

    @app.job
    def thumbnail() -> Thumb:
        return Thumb("t", Decimal("1.50"), MOMENT)

    app.get("/failed", lambda: failing.enqueue().result().then(shown_thumb, title="x"))
    app.get("/wrong", lambda: thumbnail.enqueue().result().then(wrong_thumb))

    @app.error(JobError)
    def failed(request: Request, error: JobError) -> Response:
        return Response(f"{request.path}: {error.reason}", 409)

    @app.error(500)
    def broken() -> str:
        return "We are sorry."

    if hook_is_async:

        @app.after
        async def mark_async(request: Request, response: Response) -> None:
            response.headers["x-path"] = request.path
    else:

        @app.after
        def mark(request: Request, response: Response) -> None:
            response.headers["x-path"] = request.path

    with Client(app) as client:
        failed_result, wrong = client.get("/failed"), client.get("/wrong")
        client.run_jobs()
    assert (failed_result.status, failed_result.text) == (409, "/failed: dead")
    assert (wrong.status, wrong.text) == (500, "We are sorry.")
    assert [one.headers["x-path"] for one in (failed_result, wrong)] == ["/failed", "/wrong"]


def test_arguments_that_do_not_fit_are_a_failure_and_unreadable_ones_are_discarded() -> None:
    app = App()
    job = app.job(retries=0)(line)
    with Client(app) as client:
        job.enqueue("x")
        client.jobs[0].told = msgspec.structs.replace(client.jobs[0].told, arguments=encode_arguments("line", (7,), {}))
        client.run_jobs()
        assert "argument line: Expected `str`, got `int`" in str(client.jobs[0].error)


def shout(text: str, job: Job) -> str:
    return f"{text}! {job.name}"


def behind_named(outcome, job):  # type: ignore[no-untyped-def]
    return [outcome, job and job.name]


def behind_named_first(job, n: int):  # type: ignore[no-untyped-def]
    return [job if isinstance(job, dict) else job.name, n]


def behind_any(outcome: Any, *, job: Any = None) -> list[Any]:
    return [outcome, job and job.name]


def behind_typed_maybe(this: Job | None, n: int) -> list[Any]:
    return [this and this.name, n]


def behind_state(outcome: Any, job: Any) -> list[Any]:
    return [outcome, job]


def behind_another_type(job: dict[str, int], n: int) -> list[Any]:
    return [job, n]


@pytest.mark.parametrize(
    ("function", "state", "of_job", "of_request"),
    [
        (behind_named, {}, [{"a": 1}, "wait"], [{"a": 1}, None]),
        (behind_named_first, {"n": 7}, ["wait", 7], [{"a": 1}, 7]),
        (behind_any, {}, [{"a": 1}, "wait"], [{"a": 1}, None]),
        (behind_typed_maybe, {"n": 7}, ["wait", 7], [None, 7]),
        (behind_state, {"job": "x"}, [{"a": 1}, "x"], [{"a": 1}, "x"]),
        (behind_another_type, {"n": 7}, [{"a": 1}, 7], [{"a": 1}, 7]),
    ],
)
def test_a_function_behind_a_wait_gets_its_job_as_a_job_does(
    function: Callable[..., Any], state: dict[str, Any], of_job: Any, of_request: Any
) -> None:
    def wait() -> object:
        return query("select 1 as a").one().then(function, **state)

    app = App()
    job = app.job(wait)
    app.get("/", wait)

    with Client(app) as client:
        job.enqueue()
        client.run_jobs()
        assert client.jobs[0].result == of_job
        assert client.get("/").json() == of_request


def test_a_wait_that_a_job_returns_is_its_result() -> None:
    app = App()
    app.job(name="timer")(lambda: after(5, html("<p>")))
    app.job(name="value")(lambda: after(1, [1, 2]))
    app.job(name="nothing")(lambda: after(1))
    app.job(name="query")(lambda: query("select 7 as n").one())
    app.job(name="wrong")(lambda: query("select nonsense"))
    app.job(name="function")(lambda: channel("c").next(timeout=9).then(shout, text="done"))
    app.job(name="message")(lambda: channel("c").next())
    with Client(app) as client:
        for name in app.jobs:
            app.jobs[name].enqueue()
        client.run_jobs()
        assert [job.state for job in client.jobs] == [*["running"] * 3, "completed", "dead", *["running"] * 2]
        client.advance(5)
        client.publish("c", "heard")
        assert [job.result for job in client.jobs[1:4]] == [[1, 2], None, {"n": 7}]
        assert client.jobs[0].result.headers["content-type"].startswith("text/html")
        assert "QueryError" in str(client.jobs[4].error)
        assert [job.result for job in client.jobs[5:]] == ["done! function", "heard"]


def test_a_coroutine_awaits_and_tells() -> None:
    app = App()

    @app.job
    async def report(year: int, job: Job) -> dict[str, int]:
        job.progress(0.5, "half")
        await after(1)
        return {"pages": year}

    with Client(app) as client:
        report.enqueue(3)
        client.run_jobs()
        (job,) = client.jobs
        assert (job.state, job.progress) == ("running", (0.5, "half"))
        client.advance(1)
        assert client.jobs[0].result == {"pages": 3}


def test_a_job_that_enqueues_is_followed_by_what_it_enqueued() -> None:
    app = App()

    @app.job
    def again(n: int) -> None:
        if n:
            again.enqueue(n - 1)

    with Client(app) as client:
        again.enqueue(3)
        client.run_jobs()
        assert [job.args for job in client.jobs] == [(3,), (2,), (1,), (0,)]


# Waited for


def reporting(**options: Any) -> App:
    app = App(**options)

    @app.job(retries=0)
    def report(year: int) -> Any:
        if year == 0:
            raise ValueError("no such year")
        return html("<p>") if year == 1 else {"pages": year} if year == 2 else None

    @app.get("/answer/{year}")
    def answer(year: int) -> object:
        return report.enqueue(year).result(timeout=20)

    @app.get("/then/{year}")
    def then(year: int) -> object:
        return report.enqueue(year).result(timeout=20).then(pages)

    return app


def pages(report: Any) -> str:
    return f"pages: {report}"


DEAD = (
    '{"title":"Internal Server Error","status":500,"detail":"the job failed; the log says why","fault":"application"}'
)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/answer/2", 200, '{"pages":2}'),
        ("/answer/1", 200, "<p>"),
        ("/answer/3", 204, ""),
        ("/answer/0", 500, DEAD),
        ("/then/2", 200, "pages: {'pages': 2}"),
        ("/then/0", 500, DEAD),
    ],
)
def test_a_request_is_answered_with_what_its_job_gives(path: str, status: int, text: str) -> None:
    with Client(reporting()) as client:
        parked = client.get(path)
        assert isinstance(parked, Parked)
        assert parked.parked
        client.run_jobs()
        assert (parked.status, parked.text) == (status, text)


@pytest.mark.parametrize(("path", "status", "text"), [("/answer/2", 202, None), ("/then/2", 200, "pages: None")])
def test_a_request_whose_time_is_up_is_told_where_the_job_is(path: str, status: int, text: str | None) -> None:
    with Client(reporting(jobs_path="/work")) as client:
        parked = client.get(path)
        client.advance(20)
        id = client.jobs[0].id
        assert (parked.status, parked.text) == (status, text or f'{{"id":"{id}","state":"ready","attempt":0}}')
        assert parked.headers.get("location") == (f"/work/{id}" if status == 202 else None)


def test_a_coroutine_awaits_a_result_and_that_a_job_is_stored() -> None:
    app = App()
    seen: list[Any] = []

    @app.job(retries=0)
    async def work(n: int) -> int:
        return 10 // n

    @app.get("/{n:int}")
    async def handler(n: int) -> object:
        first, other = work.options(key="k").enqueue(n), work.options(key="k").enqueue(n)
        assert first.id != other.id
        assert (await other).id == (await first).id == first.id, "the one with the key"
        try:
            seen.append(await first.result())
        except JobError as error:
            seen.append((error.reason, error.id == first.id, str(error)))
        return Status(204)

    with Client(app) as client:
        one = client.get("/5")
        client.run_jobs()
        assert seen[0] == 2
        assert one.done
        client.get("/0")
        client.run_jobs()
        assert seen[-1] == ("dead", True, "ZeroDivisionError: integer division or modulo by zero")


def test_a_result_that_is_not_there_is_missing() -> None:
    app = App()
    app.job(nothing)
    app.get("/", lambda: Handle.of("0192f3a4-5b6c-7d8e-9f01-23456789abcd").result())
    assert Client(app).get("/").status == 404


def test_a_handle_is_made_of_an_id_as_text_or_as_a_uuid() -> None:
    text = "0192f3a4-5b6c-7d8e-9f01-23456789abcd"
    assert Handle.of(text).id == Handle.of(UUID(text)).id == Handle.of(text.upper()).id == text


@pytest.mark.parametrize("id", ["nonsense", "", "0192f3a4", 7, None, b"x", "\ud800" * 1_000])
def test_what_is_no_id_of_a_job_says_so_and_is_nowhere(id: Any) -> None:
    with pytest.raises(ValueError, match="a job's id is a UUID, not ") as raised:
        Handle.of(id)
    assert len(str(raised.value)) < 200
    app = App()
    app.get("/", lambda: Handle.of(id).result())
    assert Client(app).get("/").status == 404


def test_a_handle_is_awaited_in_the_coroutine_that_enqueued() -> None:
    app = App()
    job = app.job(nothing)

    async def outside() -> None:
        await job.enqueue()

    with Client(app), pytest.raises(WaitError, match="the async def that enqueued it"):
        asyncio.run(outside())


def test_threads_may_enqueue_too() -> None:
    app = App()
    job = app.job(line)

    def handler() -> Status:
        thread = threading.Thread(target=job.enqueue, args=("x",))
        thread.start()
        thread.join()
        return Status(202)

    app.post("/", handler)
    with Client(app) as client:
        assert client.post("/").status == 202
        assert [job.args for job in client.jobs] == [("x",)]


def test_an_endless_chain_of_jobs_does_not_hang_the_test() -> None:
    app = App()

    @app.job
    def again() -> None:
        again.enqueue()

    with Client(app) as client:
        again.enqueue()
        with pytest.raises(AssertionError, match="endless"):
            client.run_jobs()


def test_a_response_keeps_its_status_headers_and_body() -> None:
    done = ran(lambda: Response(b"x", 201, {"x-y": "z"}), name="job")
    assert (done.result.status, done.result.body) == (201, b"x")
    assert done.result.headers.pairs() == [("content-type", "application/octet-stream"), ("x-y", "z")]


def test_a_result_is_what_its_json_would_be_made_of() -> None:
    value = {"a": (1, Decimal("2.5")), "at": MOMENT, "mail": Mail("a@b"), "bytes": b"x", 7: None}
    expected = {"a": [1, "2.5"], "at": "2030-01-01T00:00:00Z", "mail": {"to": "a@b", "copies": 1}, "bytes": b"x"}
    assert ran(lambda: value, name="job").result == expected | {7: None}
