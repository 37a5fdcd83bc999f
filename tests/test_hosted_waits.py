"""Waits, channels and jobs in applications of Flask, Django, Starlette, FastAPI, Litestar and Quart."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Serve
from .harness.client import Answer
from .harness.server import APPS, Server, clean_environment
from .harness.until import until

SYNCHRONOUS = ["parked_flask", "parked_django"]
ASYNCHRONOUS = ["parked_starlette", "parked_fastapi", "parked_litestar", "parked_quart", "parked_django_async"]

VIEWS = ("/wait", "/wait_in_loop")
"""Plain functions and coroutines, which Flask and Django run in threads of their own under WSGI."""


@pytest.fixture(scope="module", params=SYNCHRONOUS + [f"{name} in threads" for name in SYNCHRONOUS] + ASYNCHRONOUS)
def threads(request: pytest.FixtureRequest) -> tuple[str, int]:
    name, _, several = request.param.partition(" ")
    return name, 3 if several else 1


@pytest.fixture(scope="module")
def site(threads: tuple[str, int]) -> str:
    return threads[0]


@pytest.fixture(scope="module")
def shared(threads: tuple[str, int], serve_for_all: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    site, count = threads
    folder = tmp_path_factory.mktemp(site)
    return serve_for_all(site, workers=2, job_workers=1, threads=count, database="sqlite:///lite.db", folder=folder)


def publish(server: Server, body: bytes = b"hello", channel: str = "news", where: str = "publish") -> None:
    assert server.post(f"/{where}/{channel}", body).status in (200, 201)


def parked(server: Server, target: str, *fields: str, body: bytes = b"hello") -> Answer:
    """The answer to a client that waits for a message."""
    (client,) = server.waiting(target, 1, *fields)
    server.until_parked(1)
    publish(server, body)
    return client.answer()


def waits_for_second(status: Any) -> bool:
    return any(channel["name"] == "second" and channel["next"] for channel in status["channels"]["busiest"])


# What is parked


def test_a_hundred_clients_wait_on_two_workers(server: Server) -> None:
    for view in VIEWS:
        clients = server.waiting(f"{view}/next", 100)
        server.until_parked(100)
        assert server.get("/visits").status == 200  # nobody is busy
        publish(server)
        answers = [client.answer() for client in clients]
        assert {(answer.status, answer.text, answer["content-type"]) for answer in answers} == {
            (200, "hello", "text/plain; charset=utf-8")
        }


def test_the_time_is_up(server: Server) -> None:
    for view in VIEWS:
        assert server.get(f"{view}/short").status == 204
    assert server.get("/wait/timer").text == "time is up"


def test_several_waits_give_what_each_of_them_gives(server: Server) -> None:
    assert parked(server, "/wait/first").json() == {"index": 0, "value": "hello"}
    assert parked(server, "/wait/all").json() == ["hello", None]


def test_a_function_may_return_what_a_handler_may(server: Server) -> None:
    for name, told in (("number", 7), ("truth", True), ("record", {"text": "hello"})):
        answer = parked(server, f"/wait/{name}")
        assert (answer.status, answer.json(), answer["content-type"]) == (200, told, "application/json")


def test_a_job_without_a_result_is_an_error_that_the_application_may_handle(server: Server, site: str) -> None:
    answer = server.get("/wait/dead")
    if site == "parked_flask":
        assert (answer.status, answer.text) == (503, "the job is dead")
    else:
        assert (answer.status, answer.json()["detail"]) == (500, "the job failed; the log says why")


def test_what_middleware_sets_is_kept(server: Server) -> None:
    answer = parked(server, "/wait/next")
    assert answer["x-marked"] == "yes"
    assert "parkade-parked" not in answer
    cookie = answer["set-cookie"].partition(";")[0]
    assert server.get("/visits", f"Cookie: {cookie}").text == "1"


def test_a_response_of_ones_own_is_parked(server: Server) -> None:
    answer = parked(server, "/own")
    assert (answer.status, answer["x-own"], answer["x-marked"], answer.text) == (201, "yes", "yes", "hello")
    assert answer["content-type"] == "text/plain; charset=utf-8"


def test_a_response_of_another_request_is_refused(serve: Serve) -> None:
    for site in ("parked_flask", "parked_starlette"):
        server = serve(site, workers=1)
        assert parked(server, "/kept").text == "hello"
        assert server.get("/kept").status == 500
        server.until_logged("was returned before, or for another request")


def test_a_function_answers_with_the_headers_that_were_kept(server: Server) -> None:
    answer = parked(server, "/wait/then")
    assert (answer.status, answer.text) == (200, "<h1>News</h1>hello")
    assert (answer["x-rendered"], answer["x-marked"]) == ("yes", "yes")
    assert answer["content-type"] == "text/html; charset=utf-8"
    assert re.search("session", answer["set-cookie"])


def test_headers_are_kept_from_one_wait_to_the_next(server: Server) -> None:
    (client,) = server.waiting("/wait/again", 1)
    server.until_parked(1)
    publish(server, b"first")
    server.until(waits_for_second)
    publish(server, b"more", channel="second")
    answer = client.answer()
    assert (answer.text, answer["x-marked"]) == ("<h1>first</h1>more", "yes")


def test_a_function_that_fails_is_a_fault_and_the_headers_are_kept(server: Server) -> None:
    answer = parked(server, "/wait/fails")
    assert (answer.status, answer["x-marked"]) == (500, "yes")
    server.until_logged("a mistake after the wait")


FOREIGN = ["parked_flask", "parked_django", "parked_starlette", "parked_quart"]
"""Those whose functions may return a response of the framework."""


def test_a_function_returns_a_response_of_the_framework(server: Server, site: str) -> None:
    if site not in FOREIGN:
        return
    answer = parked(server, "/foreign")
    assert (answer.status, answer.text, answer["x-mine"], answer["x-marked"]) == (203, "mine hello", "yes", "yes")
    assert any(cookie.startswith("mine=1") for cookie in answer.all("set-cookie"))


def test_a_function_returns_a_streamed_response(server: Server, site: str) -> None:
    if site not in ("parked_django", "parked_starlette"):
        return
    assert parked(server, "/streamed").text.split() == [str(number) for number in range(50_000)]


def test_a_function_parks(server: Server) -> None:
    (client,) = server.waiting("/wait/parks_again", 1)
    server.until_parked(1)
    publish(server)
    server.until(waits_for_second)
    publish(server, b"more", channel="second")
    answer = client.answer()
    assert (answer.text, answer["x-marked"]) == ("more", "yes")


def test_a_wait_that_a_failing_function_leaves_behind_is_nobodys(server: Server) -> None:
    assert parked(server, "/wait/parks_and_fails").status == 500
    assert server.get("/wait/timer").text == "time is up"


def test_requests_of_http_2_and_head_are_parked(server: Server, site: str) -> None:
    with server.connect2() as client:
        stream = client.ask("GET", "/wait/next")
        server.until_parked(1)
        publish(server)
        answer = client.answer(stream)
    assert (answer.text, answer["x-marked"]) == ("hello", "yes")
    if site in ("parked_fastapi", "parked_litestar"):
        return  # they have no HEAD for a route of GET
    with server.connect() as client1:
        assert client1.ask("HEAD", "/wait/timer").answer(head=True).status == 200


def test_a_stream_is_streamed(server: Server) -> None:
    events = server.events("/wait/stream")
    server.until_parked(1)
    assert events.head["x-marked"] == "yes"
    publish(server, b"one")
    assert events.data(1) == ["one"]
    events.close()


def test_a_query_is_answered(server: Server) -> None:
    answer = server.get("/wait/query")
    assert (answer.json(), answer["x-marked"]) == ([{"number": 7}], "yes")


def test_a_file_is_sent(server: Server) -> None:
    answer = server.get("/wait/file")
    assert answer.body == (APPS / "parked_waits.py").read_bytes()
    assert (answer["content-type"], answer["x-marked"]) == ("text/plain", "yes")
    assert server.get("/wait/file", "Range: bytes=0-9").body == answer.body[:10]


def test_what_needs_the_body_is_refused(server: Server) -> None:
    answer = server.get("/wait/next?etag")
    assert (answer.status, answer.json()["fault"]) == (500, "application")
    server.until_logged(r"a middleware set etag: \"of nothing\" on a response of park")


def test_a_response_that_replaces_it_is_sent(server: Server, site: str) -> None:
    if site == "parked_litestar":
        return  # a handler's response cannot be replaced there without a middleware of one's own
    answer = server.get("/wait/next?replaced")
    assert (answer.status, answer.text) == (403, "instead")


def test_a_client_that_leaves_ends_its_wait(server: Server) -> None:
    clients = server.waiting("/wait/then", 3)
    server.until_parked(3)
    for client in clients:
        client.close()
    server.until_zero()


def test_what_is_parked_outlives_a_reload(server: Server) -> None:
    clients = [*server.waiting("/wait/next", 5), *server.waiting("/wait/then", 5)]
    server.until_parked(10)
    before = server.worker_pids()
    server.reload()
    server.until(lambda status: not set(before) & set(server.worker_pids()))
    publish(server)
    assert {client.answer().text for client in clients} == {"hello", "<h1>News</h1>hello"}


def test_a_coroutine_awaits_a_wait(server: Server, site: str) -> None:
    if site in SYNCHRONOUS:
        return
    assert parked(server, "/awaited").text.strip('"') == "hello"


# Channels and jobs


def test_a_thread_or_a_background_task_publishes(server: Server, site: str) -> None:
    (client,) = server.waiting("/wait/next", 1)
    server.until_parked(1)
    publish(server, where="publish_in_thread")
    assert client.answer().text == "hello"


def noted(server: Server) -> list[str]:
    file = server.gates / "noted"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    ("kind", "result"),
    [("plain", "wrote {}"), ("async", "wrote {} in a coroutine"), ("after", "wrote {} after a wait")],
)
def test_a_job_runs_in_a_worker(server: Server, kind: str, result: str) -> None:
    answer = server.post(f"/enqueue/{kind}", f"a {kind} job".encode())
    id = answer.json()["id"]
    until("the job has run", lambda: f"a {kind} job" in noted(server))
    until("the job is over", lambda: server.get(f"/jobs/{id}").status == 200)
    assert server.get(f"/jobs/{id}").text == result.format(f"a {kind} job")


def test_a_view_parks_until_its_job_has_ended(server: Server) -> None:
    assert server.get("/wait/result").text == "wrote for a result"


def test_schedules_and_histories_are_declared(server: Server) -> None:
    until("the recurring job has run", lambda: "swept" in noted(server))
    for text in (b"1", b"2", b"3"):
        publish(server, text, channel="short")
    assert len(server.get("/wait/history").json()["messages"]) == 2


# Mistakes


def test_a_job_that_was_enqueued_is_durable_before_the_response(serve: Serve) -> None:
    server = serve(
        "parked_flask", workers=1, job_workers=0, environment={"PARKADE_INJECT_COMMIT": "delay=300ms"}, deadline="5s"
    )
    answer = server.post("/enqueue/plain", b"a line")
    id = answer.json()["id"]
    assert server.get(f"/jobs/{id}").status == 202


@pytest.mark.parametrize("way", ["called", "returned", "generator"])
def test_bare_wsgi_parks(serve: Serve, way: str) -> None:
    server = serve("parked_wsgi", workers=1)
    clients = server.waiting(f"/{way}/next", 5)
    server.until_parked(5)
    server.publish("news", b"hello")
    assert {client.answer().text for client in clients} == {"hello"}


def test_only_waits_are_parked(serve: Serve) -> None:
    server = serve("parked_flask", workers=1)
    assert server.get("/not_a_wait").status == 500
    server.until_logged("park takes a wait, such as channel")


def test_a_middleware_that_compresses_is_refused(serve: Serve) -> None:
    server = serve("parked_flask", workers=1)
    assert server.get("/wait/next?gzip").status == 500
    server.until_logged("a middleware put 20 bytes into a response of park")


@pytest.mark.parametrize("site", ["parked_django", "parked_django_async"])
def test_a_cache_that_would_keep_the_empty_response_is_refused(serve: Serve, site: str) -> None:
    server = serve(site, workers=1)
    assert [server.get("/cached/timer").status for _ in range(2)] == [500, 500]
    server.until_logged("a cache was about to keep a response of park")
    server.until_zero()


def test_flask_has_its_contexts_after_a_wait(serve: Serve) -> None:
    server = serve("parked_flask", workers=2)
    cookie = parked(server, "/wait/next")["set-cookie"].partition(";")[0]
    answer = parked(server, "/template", f"Cookie: {cookie}")
    assert (answer.text, answer["content-type"]) == ("hello /visits /template 1", "text/html; charset=utf-8")


@pytest.mark.parametrize("served", ["dispatched", "attribute", "closure", "outer", "by_name"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_function_runs_in_the_application_of_flask_whose_view_has_parked(
    serve: Serve, served: str, threads: int
) -> None:
    """Whatever is around it."""
    server = serve(f"{APPS}/parked_flask_mounts.py:{served}", workers=2, threads=threads)
    cookie = server.get("/inner/login")["set-cookie"].partition(";")[0]
    for target in ("parked", "chain"):
        answer = server.connect().ask("GET", f"/inner/{target}", f"Cookie: {cookie}").answer()
        assert answer.text == f"inner bob /inner/parked /{target}"
        if served != "outer":  # what it wraps is no application of its own
            assert server.get(f"/{target}").text == f"main None /parked /{target}"


def test_an_application_of_flask_that_no_other_worker_would_find_is_refused(serve: Serve) -> None:
    server = serve(f"{APPS}/parked_flask_mounts.py:found_late", workers=1)
    assert server.get("/parked").status == 500
    server.until_logged("no other worker would find the Flask application 'stray'")


def test_a_session_that_is_changed_after_a_wait_is_logged(serve: Serve) -> None:
    server = serve(f"{APPS}/parked_flask_mounts.py:inner", workers=1)
    answer = server.get("/flashed")
    assert (answer.text, answer.all("set-cookie")) == ("flashed", [])
    server.until_logged("changed the session, or flashed a message: that is not saved")


@pytest.mark.parametrize("site", ["parked_django", "parked_django_async"])
def test_an_exception_that_stands_for_a_response_of_django_becomes_one(serve: Serve, site: str) -> None:
    server = serve(site, workers=1)
    told = {name: server.get(f"/raises/{name}") for name in ("missing", "forbidden", "mistake")}
    assert {name: answer.status for name, answer in told.items()} == {"missing": 404, "forbidden": 403, "mistake": 500}
    assert [told[name]["content-type"].partition(";")[0] for name in told] == [
        "text/html",
        "text/html",
        "application/problem+json",
    ]
    server.until_logged("a signal of Django about /raises/mistake")
    server.until_logged("LookupError: a mistake")


def test_a_background_task_behind_a_wait_is_refused(serve: Serve) -> None:
    server = serve("parked_starlette", workers=1)
    assert server.get("/background").status == 500
    server.until_logged("a background task after a wait, where none runs")


def test_an_error_handler_of_flask_answers_after_a_wait(serve: Serve) -> None:
    assert parked(serve("parked_flask", workers=1), "/aborts").status == 418


def test_an_app_has_the_jobs_of_what_it_imports_and_too_late_is_refused(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "its_jobs.py").write_text(ITS_JOBS)
    (tmp_path / "late_jobs.py").write_text("from parkade.jobs import Jobs\nJobs()\n")
    (tmp_path / "main.py").write_text(NATIVE)
    server = serve(tmp_path / "main.py")
    assert server.get("/work").text == "worked"
    assert server.get("/late").status == 500
    server.until_logged("these jobs come too late: the server already knows")


ITS_JOBS = """
from parkade.jobs import Jobs
jobs = Jobs()

@jobs.job
def work() -> str:
    return "worked"
"""

NATIVE = """
from its_jobs import work
from parkade import App
app = App()

@app.get("/work")
def do():
    return work.enqueue().result(timeout=20)

@app.get("/late")
def late():
    import late_jobs

@app.get("/hola/{name}")
def hola(name: str):
    return f"Hola {name}"
"""

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import parkade
from parked_waits import write_log
try:
    write_log.enqueue("nobody hears")
except parkade.WaitError as error:
    print(error)
with parkade.connect() as server:
    write_log.enqueue("from a script")
    parkade.channel("news").publish("hello")
    server.publish("news", {"number": 1}, event="counted")
    server.enqueue("write_log", "by its name")
"""


def script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=clean_environment(**environment), timeout=20
    )


def test_a_script_publishes_and_enqueues(serve: Serve) -> None:
    server = serve("parked_flask", workers=1)
    events = server.events("/wait/stream")
    server.until_parked(1)
    ran = script("-c", SCRIPT, str(APPS), GATES=str(server.gates), PARKADE_ADMIN=f"unix:{server.private}")
    assert ran.returncode == 0, ran.stderr
    assert "with parkade.connect():" in ran.stdout
    first, second = events.take(2)
    assert (first.data, second.data, second.event) == ("hello", '{"number":1}', "counted")
    until("the jobs have run", lambda: {"from a script", "by its name"} <= set(noted(server)))


def test_a_script_without_a_server_is_told_so(tmp_path: Path) -> None:
    told = script("-c", "import parkade; parkade.connect()", XDG_RUNTIME_DIR=str(tmp_path), TMPDIR=str(tmp_path))
    assert "no parkade of this user is running here" in told.stderr or "several are running" in told.stderr
    address = f"unix:{tmp_path}/nobody.sock"
    told = script("-c", f"import parkade; parkade.connect({address!r}).publish('news', 'x')")
    assert f"cannot reach parkade at {address}" in told.stderr
