"""Runs an application in a test without processes and sockets, its waits included, on a clock that the test moves:

with Client(app) as client:
    parked = client.get("/echo", params={"field": "hi"})
    assert parked.parked
    client.advance(2)
    assert parked.text == "You said: hi"
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar, cast, overload
from uuid import UUID

import msgspec

from . import _test_job_route as job_route
from ._app import App
from ._handling.handling import Handling
from ._link import port
from ._link.answers import Answer, AsyncChunks, Attempted, Chunks, Coming, Deferred, Plain, Streamed
from ._link.answers import Parked as ParkedAnswer
from ._rehearsal import Parking, Rehearsal
from ._requests.request import Request
from ._responses.encoding import inline
from ._responses.error_pages import error_response
from ._routing.patterns import Router, parse
from ._test_beside import Beside
from ._test_database import Answers, Asked, Databases
from ._test_jobs import RUNS_MAX, Enqueued, Jobs
from ._test_loop import cancel_all, drain, joined, until
from ._test_port import Asking, TestPort
from ._test_request import body_of, nobodys_request, request_of
from ._test_response import Parked, Response, Whole, answer_of, answer_of_failed
from ._waits.channel import channel
from ._wire import payloads as p
from ._wire.ready import Park, read_wait
from ._wire.ready import Route as ReadyRoute
from .errors import HTTPError, WaitError

__all__ = ["Asked", "Client", "Enqueued", "Parked", "Response"]

T = TypeVar("T")


class Client:
    """Sends requests to an application.

    With `with`, the start-up and shut-down hooks run and the test itself may publish.

    An application with coroutines runs in an event loop of the client's own, so a test that is itself a coroutine
    cannot use it. Its plain functions run in another thread, as they do in a worker.
    """

    def __init__(self, app: App, headers: Mapping[str, str] | None = None) -> None:
        self._handling = Handling(app)
        self._told = app.told()
        self._router = Router((route.methods, parse(route.path)) for route in self._told.routes)
        self._rehearsal = Rehearsal(self._told.channels)
        self._databases = Databases()
        self._jobs = Jobs(self._told.jobs)
        self._runs: dict[int, _JobRun] = {}  # attempts of jobs that wait, or have waited, by their stream
        self._headers = dict(headers or {})
        self._loop = asyncio.new_event_loop() if self._handling.concurrent else None
        self._beside = Beside()
        self._outside: port.Port | None = None

    # Requests

    def get(self, path: str, **options: Any) -> Response:
        """As `request`."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Response:
        """As `request`."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> Response:
        """As `request`."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Response:
        """As `request`."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Response:
        """As `request`."""
        return self.request("DELETE", path, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: Mapping[str, Any] | None = None,
        content: bytes | str | None = None,
        client: str = "127.0.0.1",
    ) -> Response:
        """Sends a request; gives its answer, or a `Parked` for one that waits.

        `params` are added to the query (a list is a repeated field); the body is `json`, `data` (a form) or `content`.
        """
        given = self._headers | dict(headers or {})
        head, raw = request_of(method, path, params, given, body_of(json, data, content), client)
        with self._connected():
            response = self._route(head, raw)
            self._rehearsal.settle()
        return response

    # Databases

    @overload
    def database(self, answers: None = None, *, name: str = ...) -> sqlite3.Connection: ...
    @overload
    def database(self, answers: Answers, *, name: str = ...) -> None: ...
    def database(self, answers: Answers | None = None, *, name: str = "default") -> sqlite3.Connection | None:
        """Says what answers the queries of the application.

        Without `answers` it is SQLite in memory, whose connection this gives, to make tables in; for the database
        `default` that is so from the beginning. It takes `$1` and SQLite's SQL, not PostgreSQL's (`$1::int`, arrays,
        `now()`); columns have the types that their tables declare; there is one connection, so that there is one
        transaction at a time, and everybody sees what it has not committed.

        `answers` is a function that gets an `Asked`, or a mapping by the text of the statements. What it gives: rows
        (dicts), one row, a number of changed rows (None for 0) or a `QueryError`, which it may also raise; or
        `after(seconds, one of these)` for a query that takes some time on the client's clock. `begin`, `commit` and
        `rollback` are asked too; of what they get only a `QueryError` counts.
        """
        if answers is None:
            return self._databases.memory(name)
        self._databases.answer(name, answers)
        return None

    @property
    def queries(self) -> list[Asked]:
        """What databases were asked so far, `begin`, `commit` and `rollback` among it."""
        return list(self._databases.asked)

    # Jobs

    @property
    def jobs(self) -> list[Enqueued]:
        """What was enqueued so far."""
        return list(self._jobs.all)

    def run_jobs(self) -> None:
        """Runs what was enqueued, in that order, and what is enqueued meanwhile: at once, also what is put off to a
        later time, or tried again. A job that waits is still `running` then; `advance` goes on with it.
        """
        with self._connected():
            for _ in range(RUNS_MAX):
                if (begun := self._jobs.begin()) is None:
                    return
                self._run_job(*begun)
                self._rehearsal.settle()
        raise AssertionError(f"{RUNS_MAX} attempts were made, and there are more: is it endless?")

    def _run_job(self, stream: int, run: p.Run) -> None:
        response = self._runs[stream] = _JobRun(stream)
        self._take(response, lambda: self._handling.attempt(stream, run))

    # What happens meanwhile

    def advance(self, seconds: float) -> None:
        """Moves the clock: timers and timeouts that are due end, in their order."""
        with self._connected():
            self._rehearsal.advance(seconds)

    def publish(self, name: str, value: object, content_type: str | None = None) -> None:
        """Publishes as `channel(name).publish` does, and wakes who waits."""
        with self._connected():
            channel(name).publish(value, content_type)
            self._rehearsal.settle()

    def leave(self, response: Response) -> None:
        """The client of a parked request goes away; a coroutine that waits is cancelled."""
        if not isinstance(response, Parked) or response.parking is None:
            raise AssertionError("only a parked request can be left")
        self._end_waiting(response, "client_left")

    def _end_waiting(self, response: Parked, reason: str) -> None:
        self._give_up(response)
        self._databases.over(response)
        response.gone = True
        if response.task is not None and self._loop is not None:
            with self._connected():
                response.task.cancel(reason)
                self._loop.run_until_complete(asyncio.wait([response.task]))

    @property
    def parked(self) -> int:
        """How many requests are parked."""
        return len(self._rehearsal.parked)

    def __enter__(self) -> Client:
        self._outside = port.connect(TestPort(self._rehearsal, self._jobs, self._beside))
        if self._loop is not None:
            self._loop.run_until_complete(self._start())
        else:
            self._handling.start()
        return self

    async def _start(self) -> None:
        await self._handling.start_concurrent()
        self._beside.context = copy_context()

    def __exit__(self, *exception: object) -> None:
        try:
            if self._loop is not None:
                self._beside.context.run(self._loop.run_until_complete, self._handling.stop_concurrent())
                self._loop.run_until_complete(cancel_all(self._loop))
                self._loop.close()
                self._beside.close()
            else:
                self._handling.stop()
        finally:
            port.connect(self._outside)

    # The core's part

    def _route(self, head: p.RequestHead, raw: p.Request) -> Response:
        match = self._router.match(head.method, head.path)
        if match is None:
            if self._told.fallback:
                return self._run(raw)
            allowed = self._router.allowed(head.path)
            error = HTTPError(405, headers={"allow": ", ".join(allowed)}) if allowed else HTTPError(404)
            return Response(inline(error_response(error, Request(raw))))
        raw = msgspec.structs.replace(raw, route=match.route, parameters=list(match.parameters))
        told = self._told.routes[match.route]
        if told.kind == "constant":
            return Response(told.answer)
        if told.kind == "job":
            return self._about_job(head.method, UUID(match.parameters[0]).bytes, raw)
        if told.kind == "wait":
            return self._parked_route(raw, told)
        return self._run(raw)

    def _parked_route(self, raw: p.Request, told: ReadyRoute) -> Response:
        response = Parked(raw)
        self._park(response, cast(p.Wait, read_wait(told.wait or [])), cast(p.Then, told.then))
        return response

    def _about_job(self, method: str, id: bytes, raw: p.Request) -> Response:
        job, response = self._jobs.at(id), _Visit(raw, method, id)
        if job is not None and self._jobs.is_asked_about(job):
            asked = msgspec.structs.replace(raw, parameters=[job.id, job.name], body=job.told.arguments)
            self._take(response, lambda: self._handling.runs[raw.route](asked))
        else:
            self._let_in(response, job)
        return response if response.parked else Response(response.whole)

    def _let_in(self, response: _Visit, job: Enqueued | None) -> None:
        wait = job_route.asked_of_route(response.id, Request(response.requested))
        if job is None:
            response.whole = job_route.answer_of_missing(response.id)
        elif response.method == "DELETE":
            self._cancel_job(job)
            response.whole = job_route.answer_of_cancelled(job)
        else:
            self._park(response, wait, p.Answer(None))
            if isinstance(wait, p.Stream):
                self._rehearsal.publish(wait.channel, "application/json", job_route.message_of(job))

    def _cancel_job(self, job: Enqueued) -> None:
        if job.outcome is None:
            self._jobs.cancel(job)
            if (run := self._runs.pop(self._jobs.number(job), None)) is not None:
                self._end_waiting(run, "operator")
            self._job_ended(job)

    def _job_ended(self, job: Enqueued) -> None:
        if job.outcome is not None:
            self._rehearsal.publish(job_route.channel_of(job.told.id), "application/json", job_route.message_of(job))
            self._rehearsal.job_ended(job.outcome)

    def _run(self, raw: p.Request) -> Response:
        response = Parked(raw)
        self._take(response, partial(self._begin, raw))
        if response.done and not response.parked:
            return Response(response.whole)
        return response

    def _begin(self, raw: p.Request) -> Answer | Coming | Plain | Deferred:
        handling, run = self._handling, partial(self._handling.runs[raw.route], raw)
        if raw.route in handling.plain:
            return Plain(run)
        return Deferred(run, occupies=True) if raw.route in handling.deferred else cast("Answer | Coming", run())

    def _take(self, response: Parked, function: Callable[[], Answer | Coming | Plain | Deferred]) -> None:
        answer = function()
        occupies, response.context = False, None
        if isinstance(answer, Plain):
            answer = self._run_plain(response, answer.run)
        elif isinstance(answer, Deferred):
            occupies, answer = answer.occupies, answer.begin()
        if isinstance(answer, Awaitable):
            exchange = _TestExchange(self, response, occupies)
            response.task = self._beside.context.copy().run(self._task, exchange, answer)
            self._go_on(response)
        else:
            self._finish(response, answer)

    def _run_plain(self, response: Parked, run: Callable[[], Answer]) -> Answer:
        if self._loop is None:
            return run()
        response.context = self._beside.context.copy()
        return self._beside.run(run, response.context)

    def _task(self, exchange: _TestExchange, answer: Coming) -> asyncio.Task[Answer]:
        port.exchange.set(exchange)
        return self._running_loop().create_task(_leave_context(exchange, answer))

    def _go_on(self, response: Parked) -> None:
        """Runs the loop until the coroutine has ended or waits."""
        task = cast("asyncio.Task[Answer]", response.task)
        self._running_loop().run_until_complete(until(task, lambda: response.parking is not None))
        if task.done():
            response.task = None
            self._finish(response, task.result())

    def _finish(self, response: Parked, answer: Answer) -> None:
        if not isinstance(answer, ParkedAnswer):
            self._databases.over(response)
        match answer:
            case bytes():
                response.whole = msgspec.msgpack.decode(answer, type=p.Response)
            case Streamed(head=head, chunks=chunks):
                whole = msgspec.msgpack.decode(head, type=p.Response)
                response.whole = Whole(whole.status, whole.headers, self._collect(chunks, response.context))
            case ParkedAnswer(park=encoded):
                park = msgspec.msgpack.decode(encoded, type=Park)
                wait = cast(p.Wait, read_wait(park.wait))
                if isinstance(wait, p.Access) and isinstance(response, _Visit):
                    self._let_in(response, self._jobs.at(response.id) if wait.granted else None)
                else:
                    self._park(response, wait, park.then)
            case Attempted() if isinstance(response, _JobRun):
                job = self._jobs.on(response.stream)
                self._jobs.end(job, answer)
                self._runs.pop(response.stream, None)
                self._job_ended(job)

    def _park(self, response: Parked, wait: p.Wait, then: p.Then) -> None:
        def over(outcome: p.Outcome) -> None:
            response.parking = None
            match outcome, then:
                case p.Failed(), _ if not isinstance(response, _JobRun):
                    response.whole = answer_of_failed(outcome, Request(response.requested))
                case _, p.Call(function=function, state=state):
                    stream = response.stream if isinstance(response, _JobRun) else 0
                    self._take(response, lambda: self._handling.call(stream, function, state, outcome))
                case _:
                    response.whole = answer_of(outcome, cast(p.Answer, then), wait, self._pending)

        if isinstance(wait, p.UntilResult) and isinstance(then, p.Answer):
            wait = job_route.impatient(wait, Request(response.requested))
        own = Request(response.requested).cursor if isinstance(then, p.Answer) else None
        ended: list[p.Outcome] = []
        response.parking = self._rehearse(response, wait, ended.append, own)
        if ended:
            over(ended[0])
        else:
            response.parking.over = over

    def _await(self, response: Parked, wait: p.Wait) -> asyncio.Future[p.Outcome]:
        future: asyncio.Future[p.Outcome] = self._running_loop().create_future()

        def over(outcome: p.Outcome) -> None:
            response.parking = None
            future.set_result(outcome)
            self._go_on(response)

        parking = self._rehearse(response, wait, future.set_result)
        if not future.done():
            parking.over = over
            response.parking = parking
        return future

    def _rehearse(
        self, response: Parked, wait: p.Wait, over: Callable[[p.Outcome], None], own_cursor: str | None = None
    ) -> Parking:
        if isinstance(wait, p.Timer | p.Next | p.Stream):
            return self._rehearsal.park(wait, over, own_cursor)
        if isinstance(wait, p.UntilResult):
            return self._rehearse_result(wait, over)
        if isinstance(wait, p.UntilStored | p.Access):
            raise WaitError("nobody waits for that here")
        return self._rehearsal.park_query(wait, *self._databases.ask(wait, response), over)

    def _rehearse_result(self, wait: p.UntilResult, over: Callable[[p.Outcome], None]) -> Parking:
        job = self._jobs.find(wait.id)
        if job is None:
            return self._rehearsal.park_query(wait, 0, p.NoResult(wait.id, "missing", "there is no such job"), over)
        if job.outcome is not None:
            return self._rehearsal.park_query(wait, 0, job.outcome, over)
        if wait.options.timeout == 0:
            return self._rehearsal.park_query(wait, 0, p.Pending(job.told.id), over)
        return self._rehearsal.park_result(msgspec.structs.replace(wait, id=job.told.id), over)

    def _pending(self, id: bytes) -> p.Response:
        jobs_path = next((route.path for route in self._told.routes if route.kind == "job"), None)
        job = cast(Enqueued, self._jobs.find(id))
        return job_route.answer_of_pending(job, jobs_path if self._jobs.has_address(job) else None)

    def _give_up(self, response: Parked) -> None:
        """The coroutine no longer wants what it waits for."""
        if response.parking is not None:
            self._rehearsal.leave(response.parking)
            response.parking = None

    def _collect(self, chunks: Chunks | AsyncChunks, context: Context | None) -> bytes:
        if isinstance(chunks, AsyncChunks):
            return joined(drain(self._running_loop(), chunks))
        return joined(chunks) if context is None else self._beside.run(partial(joined, chunks), context)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise WaitError("this application has no coroutines")
        return self._loop

    @contextmanager
    def _connected(self) -> Iterator[None]:
        before = port.connect(TestPort(self._rehearsal, self._jobs, self._beside))
        try:
            yield
        finally:
            port.connect(before)


async def _leave_context(exchange: _TestExchange, coming: Coming) -> Answer:
    """As `coming`; its context is left for the iterator of a plain function, which runs beside the loop."""
    try:
        return await coming
    finally:
        if exchange.occupies:
            exchange.response.context = copy_context()


class _JobRun(Parked):
    """An attempt of a job, which may be parked as a request may."""

    def __init__(self, stream: int) -> None:
        super().__init__(nobodys_request())
        self.stream = stream


class _Visit(Parked):
    """A request at the address of a job, whose client may have to be let in."""

    def __init__(self, request: p.Request, method: str, id: bytes) -> None:
        super().__init__(request)
        self.method = method
        self.id = id


class _TestExchange(Asking):
    def __init__(self, client: Client, response: Parked, occupies: bool) -> None:
        super().__init__()
        self._client = client
        self.response = response
        self.occupies = occupies

    async def wait(self, park: bytes) -> p.Outcome:
        if self.response.parking is not None:
            raise WaitError("this request waits already: a request waits for one thing at a time")
        if self.response.gone:
            raise WaitError("the client has left")
        wait = cast(p.Wait, read_wait(msgspec.msgpack.decode(park, type=Park).wait))
        if isinstance(wait, p.UntilStored):  # it is, at once
            asked = self.enqueued.parked(park)
            self.enqueued.hear(p.Stored([self._client._jobs.effective(id) for id in asked]))
            return p.Elapsed()
        try:
            outcome = await self._client._await(self.response, wait)
        except asyncio.CancelledError:
            self._client._give_up(self.response)
            raise
        if isinstance(wait, p.Commit | p.Rollback):
            within, self.within = self.within, []
            for job in within if isinstance(wait, p.Commit) and isinstance(outcome, p.Rows) else []:
                self._client._jobs.enqueue(job)
        return outcome
