"""The core's part in a test: routes requests, parks them, wakes them, and says what becomes of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast
from uuid import UUID

import msgspec

from .._app import App
from .._handling.handling import Handling
from .._link import port
from .._link.answers import Answer, Attempted, Chunks, Streamed
from .._link.answers import Parked as ParkedAnswer
from .._requests.request import Request
from .._responses.encoding import inline
from .._responses.problems import BAD_TARGET, DOT_SEGMENT, NO_METHOD, no_route, problem_response
from .._routing.patterns import Match, RouteTable, has_dot_segment, parse
from .._wire import payloads as p
from .._wire.codec import encode_payload
from .._wire.ready import Park, read_wait
from .._wire.ready import Route as ReadyRoute
from ..errors import HTTPError, WaitError
from . import _job_address as job_address
from ._added import Added, Surroundings
from ._arriving import Arriving
from ._databases import Databases
from ._exchange import Exchange
from ._files import answer_of_file
from ._jobs import RUNS_MAX, Enqueued, Jobs
from ._port import TestPort
from ._request import Correlation, nobodys_request
from ._response import Parked, Response, Whole, answer_of, answer_of_failed
from ._sent import sent
from ._waits import Parking, Waits
from ._worker import Worker


class Core:
    """The requests and jobs of one application, whose code its one worker runs."""

    def __init__(self, app: App) -> None:
        self._handling = Handling(app)
        self._ready = app._ready()
        self._router = RouteTable((route.methods, parse(route.path)) for route in self._ready.routes)
        self._around = Surroundings(self._ready)
        self._runs: dict[int, _JobRun] = {}  # attempts of jobs that wait, or have waited, by their stream
        self.waits = Waits(self._ready.channels)
        self.databases = Databases()
        self.jobs = Jobs(self._ready.jobs)
        self.worker = Worker(self._handling, self._finish, partial(Exchange, self))

    def port(self) -> port.Port:
        """The application's way to this core."""
        return TestPort(self.waits, self.databases, self.jobs, self.worker.thread)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Within this block the application's way to the core is this one's."""
        before = port.connect(self.port())
        try:
            yield
        finally:
            port.connect(before)

    # Requests

    def route(self, head: p.RequestHead, raw: p.Request, body: bytes | Iterable[bytes] = b"") -> Response:
        """Answers a request, or parks it."""
        if "%00" in head.path:
            return Response(inline(problem_response(HTTPError(400, BAD_TARGET), Request(raw))))
        asked, leads_upwards = Request(raw).headers, has_dot_segment(head.path)
        if head.method == "OPTIONS" and "origin" in asked and "access-control-request-method" in asked:
            method = asked["access-control-request-method"]
            match = None if leads_upwards else self._router.match(method, head.path)
            preflight = self._around.preflight(None if match is None else match.route, asked)
            if preflight is not None:
                return self._with(Response(preflight), self._around.preflight_added())
        match = None if leads_upwards else self._router.match(head.method, head.path)
        added = self._around.added(None if match is None else match.route, asked.get("origin"))
        if leads_upwards:
            problem = problem_response(HTTPError(400, DOT_SEGMENT), Request(raw))
            return self._with(Response(inline(problem)), added)
        return self._with(self._route(head, raw, match, body), added)

    def _with(self, response: Response, added: Added) -> Response:
        added.given, response.added = response.added.given, added
        return response

    def _route(
        self, head: p.RequestHead, raw: p.Request, match: Match | None, body: bytes | Iterable[bytes]
    ) -> Response:
        if match is None:
            if self._ready.fallback:
                return self._run(raw, body)
            if allowed := self._router.allowed(head.path):
                error = HTTPError(405, NO_METHOD, {"allow": ", ".join(allowed)})
            else:
                other = self._router.with_other_slash(head.method, head.path)
                error = HTTPError(404, no_route(other))
            return Response(inline(problem_response(error, Request(raw))))
        raw = msgspec.structs.replace(raw, route=match.route, parameters=list(match.parameters))
        route = self._ready.routes[match.route]
        if route.kind == "constant":
            return Response(route.answer)
        if route.kind == "job":
            return self._route_job(head.method, UUID(match.parameters[0]).bytes, raw)
        if route.kind == "wait":
            return self._route_wait(raw, route)
        return self._run(raw, body)

    def _run(self, raw: p.Request, body: bytes | Iterable[bytes]) -> Response:
        route = None if raw.route is None else self._ready.routes[raw.route]
        arriving = Arriving(body, route.body_limit) if route is not None and route.stream else None
        whole = None if arriving is not None else body if isinstance(body, bytes) else b"".join(body)
        raw = msgspec.structs.replace(raw, body=whole)
        response = Parked(raw)
        response.arriving = arriving
        self.worker.request(response, raw)
        return response if response.parked or not response.done else _answered(response)

    def _route_wait(self, raw: p.Request, route: ReadyRoute) -> Response:
        response = Parked(raw)
        self._park(response, cast(p.Wait, read_wait(route.wait or [])), cast(p.Then, route.then))
        return response

    def cancel(self, response: Parked, reason: str) -> None:
        """Ends a parked request, and the coroutine that waits in it."""
        self.give_up(response)
        self.databases.over(response)
        response.gone = True
        with self.connected():
            self.worker.cancel(response, reason)

    def _finish(self, response: Parked, answer: Answer) -> None:
        if (arriving := response.arriving) is not None and arriving.is_cut_off:
            self.databases.over(response)
            response.gone = True
            if arriving.fault is not None:
                response.whole = inline(problem_response(arriving.fault, Request(response.requested)))
            return
        if not isinstance(answer, ParkedAnswer):
            self.databases.over(response)
        match answer:
            case bytes():
                response.whole = sent(msgspec.msgpack.decode(answer, type=p.Response), Request(response.requested))
            case Streamed(head=head, chunks=chunks):
                whole = msgspec.msgpack.decode(head, type=p.Response)
                body = self.worker.collect(cast(Chunks, chunks), response)
                response.whole = Whole(whole.status, whole.headers, body)
            case ParkedAnswer(park=encoded):
                park = msgspec.msgpack.decode(encoded, type=Park)
                wait = cast(p.Wait, read_wait(park.wait))
                if isinstance(wait, p.Access) and isinstance(response, _Visit):
                    self._let_in(response, self.jobs.at(response.id) if wait.granted else None)
                else:
                    self._park(response, wait, park.then)
            case Attempted() if isinstance(response, _JobRun):
                job = self.jobs.on(response.stream)
                self.jobs.end(job, answer)
                self._runs.pop(response.stream, None)
                self._job_ended(job)

    # Waits

    def _park(self, response: Parked, wait: p.Wait, then: p.Then) -> None:
        def over(outcome: p.Outcome) -> None:
            response.parkings.clear()
            match outcome, then:
                case p.Failed(), _ if not isinstance(response, _JobRun):
                    response.whole = answer_of_failed(outcome, Request(response.requested))
                case _, p.Call(function=function, state=state):
                    stream = response.stream if isinstance(response, _JobRun) else 0
                    self.worker.run(response, lambda: self._handling.call(stream, function, state, outcome))
                case _:
                    request = Request(response.requested)
                    response.whole = answer_of(outcome, cast(p.Answer, then), wait, request, self._pending)

        if isinstance(then, p.Answer):
            wait, preference = job_address.as_preferred(wait, Request(response.requested))
            given = then.added or p.Added(None, None)
            response.added.given = p.Added(given.status, [*(given.headers or []), *preference])
        if isinstance(wait, p.File | p.Files):
            response.whole = answer_of_file(wait, Request(response.requested))
            return
        if isinstance(wait, p.AllOf | p.FirstOf):
            self._park_group(response, wait, over)
            return
        own = Request(response.requested).cursor if isinstance(then, p.Answer) else None
        ended: list[p.Outcome] = []
        parking = self._begin(response, wait, ended.append, own)
        response.parkings.append(parking)
        if ended:
            over(ended[0])
        else:
            parking.over = over

    def _park_group(self, response: Parked, group: p.AllOf | p.FirstOf, over: Callable[[p.Outcome], None]) -> None:
        """Parks for several waits. The first failure ends them all."""
        outcomes: list[p.Outcome | None] = [None] * len(group.waits)
        ended: list[p.Outcome] = []

        def end(outcome: p.Outcome) -> None:
            self.give_up(response)
            ended.append(outcome)
            over(outcome)

        def end_one(place: int, outcome: p.Outcome) -> None:
            if ended:
                return
            outcomes[place] = outcome
            if isinstance(outcome, p.Failed | p.Refused):
                end(outcome)
            elif isinstance(group, p.FirstOf):
                end(p.Outcomes(place, encode_payload([outcome])))
            elif None not in outcomes:
                end(p.Outcomes(None, encode_payload(outcomes)))

        for place, told in enumerate(group.waits):
            if not ended:
                parking = self._begin(response, cast(p.Wait, read_wait(told)), partial(end_one, place))
                if outcomes[place] is None and not ended:
                    response.parkings.append(parking)
        if not outcomes:
            end(p.Outcomes(None, encode_payload([])))

    def wait(self, response: Parked, wait: p.Wait) -> tuple[Parking, asyncio.Future[p.Outcome]]:
        """Begins a wait of a coroutine."""
        future = self.worker.outcome()

        def over(outcome: p.Outcome) -> None:
            response.parkings.remove(parking)
            if not future.done():
                future.set_result(outcome)
            self.worker.go_on(response)

        parking = self._begin(response, wait, future.set_result)
        if not future.done():
            parking.over = over
            response.parkings.append(parking)
        return parking, future

    def leave(self, response: Parked, parking: Parking) -> None:
        """A coroutine no longer waits for that."""
        if parking in response.parkings:
            self.waits.leave(parking)
            response.parkings.remove(parking)

    def give_up(self, response: Parked) -> None:
        """The request no longer waits."""
        for parking in list(response.parkings):
            self.leave(response, parking)

    def _begin(
        self, response: Parked, wait: p.Wait, over: Callable[[p.Outcome], None], own_cursor: str | None = None
    ) -> Parking:
        if isinstance(wait, p.Timer | p.Next | p.Stream):
            return self.waits.park(wait, over, own_cursor)
        if isinstance(wait, p.History | p.UntilPublished):
            return self.waits.park_query(wait, 0, self.waits.answer_now(wait), over)
        if isinstance(wait, p.UntilResult):
            return self._begin_result(wait, over)
        if isinstance(wait, p.UntilStored | p.UntilBranches | p.AllOf | p.FirstOf | p.File | p.Files | p.Access):
            raise WaitError("a request cannot wait for that in a test")
        if isinstance(wait, p.Socket):
            raise WaitError("parkade.testing has no WebSockets: test the functions of socket() by themselves")
        return self.waits.park_query(wait, *self.databases.ask(wait, response), over)

    def _begin_result(self, wait: p.UntilResult, over: Callable[[p.Outcome], None]) -> Parking:
        job = self.jobs.find(wait.id)
        if job is None:
            return self.waits.park_query(wait, 0, p.NoResult(wait.id, "missing", "no such job"), over)
        if job.outcome is not None:
            return self.waits.park_query(wait, 0, job.outcome, over)
        if wait.options.timeout == 0:
            return self.waits.park_query(wait, 0, p.Pending(job.told.id), over)
        return self.waits.park_result(msgspec.structs.replace(wait, id=job.told.id), over)

    # Jobs

    def run_jobs(self) -> None:
        """Runs all jobs that are ready, and those that they enqueue."""
        for _ in range(RUNS_MAX):
            if (begun := self.jobs.begin()) is None:
                return
            self._run_job(*begun)
            self.waits.settle()
        raise AssertionError(f"{RUNS_MAX} attempts were made, and more are queued: is it endless?")

    def _run_job(self, stream: int, run: p.Run) -> None:
        response = self._runs[stream] = _JobRun(stream, self.jobs.on(stream).correlation)
        self.worker.run(response, lambda: self._handling.attempt(stream, run))

    def _job_ended(self, job: Enqueued) -> None:
        if job.outcome is not None:
            self.waits.publish(job_address.channel_of(job.told.id), "application/json", job_address.message_of(job))
            self.waits.job_ended(job.outcome)

    def _cancel_job(self, job: Enqueued) -> None:
        if job.outcome is None:
            self.jobs.cancel(job)
            if (run := self._runs.pop(self.jobs.number(job), None)) is not None:
                self.cancel(run, "operator")
            self._job_ended(job)

    def _pending(self, id: bytes) -> p.Response:
        jobs_path = next((route.path for route in self._ready.routes if route.kind == "job"), None)
        job = cast(Enqueued, self.jobs.find(id))
        return job_address.answer_of_pending(job, jobs_path if self.jobs.has_address(job) else None)

    # The addresses of jobs

    def _route_job(self, method: str, id: bytes, raw: p.Request) -> Response:
        job, response = self.jobs.at(id), _Visit(raw, method, id)
        if job is not None and self.jobs.is_asked_about(job):
            asked = msgspec.structs.replace(raw, parameters=[job.id, job.name], body=job.told.arguments)
            self.worker.run(response, lambda: self._handling.runs[raw.route](asked))
        else:
            self._let_in(response, job)
        return response if response.parked else _answered(response)

    def _let_in(self, response: _Visit, job: Enqueued | None) -> None:
        wait = job_address.wait_of_request(response.id, Request(response.requested))
        if job is None:
            response.whole = job_address.answer_of_missing(response.id, Request(response.requested))
        elif response.method == "DELETE":
            self._cancel_job(job)
            response.whole = job_address.answer_of_cancelled(job, Request(response.requested))
        else:
            self._park(response, wait, p.Answer(None))
            if isinstance(wait, p.Stream):
                self.waits.publish(wait.channel, "application/json", job_address.message_of(job))


def _answered(response: Parked) -> Response:
    answer = Response(response.whole)
    answer.added = response.added
    return answer


class _JobRun(Parked):
    """An attempt of a job, which may be parked as a request may."""

    def __init__(self, stream: int, by: Correlation) -> None:
        super().__init__(nobodys_request())
        self.stream = stream
        self._by = by

    @property
    def correlation(self) -> Correlation:
        return self._by


class _Visit(Parked):
    """A request at the address of a job, whose client the application may have to let in."""

    def __init__(self, request: p.Request, method: str, id: bytes) -> None:
        super().__init__(request)
        self.method = method
        self.id = id
