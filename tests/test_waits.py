"""Timers and channels in all ways to use them; cursors, gaps, and every client gets every message once, in order."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from .conftest import Serve
from .harness.client import Answer
from .harness.server import PARKADE, Server, clean_environment, run, whom
from .harness.until import BUSY, Stopwatch

pytestmark = pytest.mark.also_in_perl


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve) -> Server:
    return serve_for_all("basic", workers=2)


@pytest.fixture(scope="module")
def shared_coroutines(serve_for_all: Serve) -> Server:
    return serve_for_all("coroutines", workers=1)


@pytest.fixture
def coroutines(shared_coroutines: Server) -> Iterator[Server]:
    yield shared_coroutines
    shared_coroutines.cleared()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A channel of the test's own."""
    return re.sub(r"\W+", "-", request.node.name)[:100]


def cursor_of(answer: Answer) -> str:
    assert re.fullmatch(r'"[0-9a-f]+\.[0-9a-f]+"', answer["etag"]), answer["etag"]
    return answer["etag"].strip('"')


# Timers


@pytest.mark.parametrize(
    ("target", "body"),
    [("/after/0.2", "after 0.2"), ("/standing-timer", "later"), ("/after-then/0.2", '"what":"time"')],
)
def test_a_timer_answers_when_it_is_over_and_not_before(server: Server, target: str, body: str) -> None:
    watch = Stopwatch()
    answer = server.get(target)
    assert body in answer.text
    assert 0.2 <= watch.seconds < 0.2 + BUSY


@pytest.mark.python_only("coroutines")
def test_an_awaited_timer_does_too(coroutines: Server) -> None:
    watch = Stopwatch()
    assert coroutines.get("/after/0.2").text == "after 0.2"
    assert 0.2 <= watch.seconds < 0.2 + BUSY


def test_a_timer_of_zero_is_over_at_once(server: Server) -> None:
    assert server.get("/after/0").text == "after 0.0"
    assert server.get("/after-then/0").json()["outcome"] is None


@pytest.mark.promise(2)
def test_timers_end_in_their_order_and_hold_no_worker(server: Server) -> None:
    clients = {seconds: server.connect().ask("GET", f"/after/{seconds}") for seconds in (0.6, 0.2, 0.4)}
    status = server.until_parked(3)
    assert status["lives"]["running"] == 0
    assert status["waits"]["timer"]["count"] == 3
    for seconds in (0.2, 0.4, 0.6):
        assert clients[seconds].answer().status == 200
        later = [client for other, client in clients.items() if other > seconds + 0.1]
        assert not [client for client in later if client.is_readable()]


def test_two_hundred_requests_that_wait_half_a_second_are_all_answered_after_half_a_second(server: Server) -> None:
    watch = Stopwatch()
    clients = server.waiting("/after/0.5", 200)
    server.until_parked(200)
    assert {client.answer().text for client in clients} == {"after 0.5"}
    assert watch.seconds < 0.5 + BUSY


# The next message


KINDS: dict[str, Callable[[Answer], object]] = {
    "/next": lambda answer: answer.text,
    "/next-then": lambda answer: answer.json()["value"],
}


@pytest.mark.promise(5)
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_message_goes_to_who_waits(server: Server, kind: str, name: str) -> None:
    client = server.connect().ask("GET", f"{kind}/{name}")
    status = server.until_parked(1)
    assert (status["lives"]["running"], status["waits"]["next"]["count"]) == (0, 1)
    server.post(f"/publish/{name}", "grüße".encode(), "Content-Type: text/plain; charset=utf-8")
    assert KINDS[kind](client.answer()) == "grüße"


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(5)
def test_an_awaited_message_goes_to_its_coroutine(coroutines: Server, name: str) -> None:
    client = coroutines.connect().ask("GET", f"/next/{name}")
    coroutines.until_parked(1)
    coroutines.post(f"/publish/{name}", b"hello", "Content-Type: text/plain")
    told = client.answer().json()
    assert (told["value"], told["gap"]) == ("hello", False)


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(1)
def test_a_coroutine_may_give_its_wait_up(coroutines: Server, name: str) -> None:
    """Nothing is published: a wait that was abandoned would hold its response for ever."""
    client = coroutines.connect().ask("GET", f"/impatient/{name}?patience=0.2")
    coroutines.until_parked(1)
    assert client.answer().text == "gave up"
    client.ask("GET", f"/impatient/{name}?patience=20")
    coroutines.until_parked(1)
    coroutines.publish(name, b"at last")
    assert client.answer().text == "came in time"


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(1)
def test_a_wait_may_be_given_up_in_the_moment_in_which_it_ends(coroutines: Server, name: str) -> None:
    clients = [coroutines.connect().ask("GET", f"/impatient/{name}?patience=0.{10 + n}") for n in range(50)]
    coroutines.until_parked(50)
    coroutines.until(lambda status: status["waits"]["next"]["count"] < 25)
    coroutines.publish(name, b"now")
    told = [client.answer().text for client in clients]
    assert set(told) == {"gave up", "came in time"}


def test_a_route_may_be_a_wait(server: Server) -> None:
    clients = server.waiting("/standing-next", 5)
    server.until_parked(5)
    before = [worker["requests"] for worker in server.workers()]
    server.publish("standing", b"to the route")
    assert {client.answer().text for client in clients} == {"to the route"}
    assert [worker["requests"] for worker in server.workers()] == before, "no worker took part"


@pytest.mark.promise(5)
@pytest.mark.promise(1)
@pytest.mark.parametrize("kind", KINDS)
def test_one_message_reaches_two_hundred_waiters_once(server: Server, kind: str, name: str) -> None:
    clients = server.waiting(f"{kind}/{name}", 200)
    server.until_parked(200)
    delivered = server.status()["counts"]["delivered"]
    server.publish(name, b"all of you")
    assert [KINDS[kind](client.answer()) for client in clients] == ["all of you"] * 200
    server.until_zero()
    assert server.status()["counts"]["delivered"] == delivered + 200
    assert not [client for client in clients if client.is_readable()], "nobody gets a second one"


@pytest.mark.python_only("coroutines")
@pytest.mark.promise(5)
def test_one_message_reaches_two_hundred_coroutines_once(coroutines: Server, name: str) -> None:
    clients = coroutines.waiting(f"/next/{name}", 200)
    coroutines.until_parked(200)
    coroutines.publish(name, b"all of you")
    assert {client.answer().json()["value"] for client in clients} == {"all of you"}


def test_a_message_is_its_own_answer(server: Server, name: str) -> None:
    client = server.connect().ask("GET", f"/next/{name}")
    server.until_parked(1)
    cursor = server.publish(name, b'{"a": 1}', "application/json")
    answer = client.answer()
    assert (answer.status, answer["content-type"], answer.json()) == (200, "application/json", {"a": 1})
    assert (cursor_of(answer), answer["cache-control"]) == (cursor, "no-store")


@pytest.mark.parametrize(
    ("target", "sent", "told", "content_type"),
    [
        ("/publish", b"text", "text", "text/plain"),
        ("/publish", b"\xff\x00", None, "application/octet-stream"),
        ("/publish-json", b'{"bid": 7}', {"bid": 7}, "application/json"),
    ],
)
def test_a_message_keeps_its_type(
    server: Server, name: str, target: str, sent: bytes, told: object, content_type: str
) -> None:
    client = server.connect().ask("GET", f"/next/{name}")
    server.until_parked(1)
    given = "application/json" if "json" in target else content_type
    assert server.post(f"{target}/{name}", sent, f"Content-Type: {given}").status == 202
    answer = client.answer()
    assert answer["content-type"].partition(";")[0] == content_type
    if told is not None and content_type == "application/json":
        assert answer.json() == told
    else:
        assert answer.body == sent


def test_a_poll_without_a_message_is_204_with_the_cursor_to_go_on_from(server: Server, name: str) -> None:
    server.publish(name, b"before")
    watch = Stopwatch()
    empty = server.get(f"/next/{name}?timeout=0.2")
    assert (empty.status, empty.body) == (204, b"")
    assert 0.2 <= watch.seconds < 0.2 + BUSY
    server.publish(name, b"meanwhile")
    answer = server.get(f"/next/{name}?timeout=5", f"If-None-Match: {empty['etag']}")
    assert answer.text == "meanwhile"


@pytest.mark.python_only("coroutines")
@pytest.mark.parametrize("app", ["server", "coroutines"])
def test_when_the_time_is_up_functions_and_coroutines_get_nothing(
    request: pytest.FixtureRequest, app: str, name: str
) -> None:
    server: Server = request.getfixturevalue(app)
    target = f"/next-then/{name}" if app == "server" else f"/next/{name}"
    assert server.get(f"{target}?timeout=0.1").json()["value"] is None


def test_a_function_gets_request_state_and_outcome_in_any_worker(server: Server, name: str) -> None:
    clients = server.waiting(f"/next-then/{name}", 20)
    server.until_parked(20)
    server.publish(name, b"x")
    told = [client.answer().json() for client in clients]
    assert {(one["name"], one["path"]) for one in told} == {(name, f"/next-then/{name}")}
    assert {one["pid"] for one in told} <= set(server.worker_pids())


def test_a_function_may_wait_again(server: Server, name: str) -> None:
    client = server.connect().ask("GET", f"/twice/{name}")
    server.until_parked(1)
    server.publish(name, b"first")
    server.publish(name, b"second")
    assert client.answer().json() == ["first", "second"]


@pytest.mark.python_only("coroutines")
def test_a_coroutine_may_wait_again(coroutines: Server, name: str) -> None:
    client = coroutines.connect().ask("GET", f"/two/{name}")
    coroutines.until_parked(1)
    coroutines.publish(name, b"first")
    coroutines.publish(name, b"second")
    assert [one["value"] for one in client.answer().json()] == ["first", "second"]


# Cursors


@pytest.mark.promise(5)
@pytest.mark.parametrize(
    "field", ["If-None-Match: {}", 'If-None-Match: "{}"', 'If-None-Match: W/"{}"', "Last-Event-ID: {}"]
)
def test_a_client_that_comes_back_with_its_cursor_misses_nothing(server: Server, name: str, field: str) -> None:
    cursor = server.publish(name, b"0")
    for number in range(1, 4):
        server.publish(name, b"%d" % number)
    got = []
    for _ in range(3):
        answer = server.get(f"/next/{name}", field.format(cursor))
        got.append(answer.text)
        assert "parkade-gap" not in answer
        cursor = cursor_of(answer)
    assert got == ["1", "2", "3"]


def test_since_does_the_same(server: Server, name: str) -> None:
    cursor = server.publish(name, b"0")
    server.publish(name, b"1")
    assert server.get(f"/next/{name}?since={cursor}").text == "1"
    assert server.get(f"/next-then/{name}?since={cursor}").json()["value"] == "1"


@pytest.mark.promise(5)
def test_cursors_grow_by_one_within_an_epoch(server: Server, name: str) -> None:
    cursors = [server.publish(name, b"x").split(".") for _ in range(20)]
    assert len({epoch for epoch, _ in cursors}) == 1
    assert [int(number, 16) for _, number in cursors] == list(range(1, 21))


@pytest.mark.promise(5)
@pytest.mark.parametrize("kind", ["/next", "/next-then"])
def test_what_is_no_longer_held_is_told_as_a_gap(server: Server, kind: str, name: str) -> None:
    channel = f"short/{name}"
    cursor = server.publish(channel, b"0")
    for number in range(1, 6):
        server.publish(channel, b"%d" % number)
    answer = server.get(f"{kind}/{channel}?since={cursor}")
    if kind == "/next":
        assert (answer.text, answer["parkade-gap"]) == ("3", "true")
    else:
        assert (answer.json()["value"], answer.json()["gap"]) == ("3", True)


@pytest.mark.promise(5)
def test_the_history_is_bounded_by_bytes_and_by_age(server: Server, name: str) -> None:
    cursor = server.publish(f"small/{name}", b"0")
    for _ in range(10):
        server.publish(f"small/{name}", b"x" * 1_000)
    assert server.get(f"/next/small/{name}?since={cursor}")["parkade-gap"] == "true"
    cursor = server.publish(f"brief/{name}", b"0")
    server.publish(f"brief/{name}", b"1")
    server.until(
        lambda status: not [c for c in status["channels"]["busiest"] if c["name"] == f"brief/{name}" and c["messages"]],
        12,
    )
    empty = server.connect().ask("GET", f"/next/brief/{name}?since={cursor}")
    server.until_parked(1)
    server.publish(f"brief/{name}", b"2")
    answer = empty.answer()
    assert (answer.text, answer["parkade-gap"]) == ("2", "true")


def test_a_cursor_of_another_life_is_a_gap(server: Server, name: str) -> None:
    server.publish(name, b"1")
    for cursor in ("1.5", "ffffffffffff.1", "rubbish"):
        answer = server.get(f"/next/{name}?since={cursor}")
        assert (answer.text, answer["parkade-gap"]) == ("1", "true"), cursor


def test_a_cursor_from_the_future_is_a_gap_or_waits(server: Server, name: str) -> None:
    epoch = server.publish(name, b"1").partition(".")[0]
    client = server.connect().ask("GET", f"/next/{name}?since={epoch}.ff&timeout=0.3")
    answer = client.answer()
    assert answer.status == 204 or answer["parkade-gap"] == "true"


@pytest.mark.promise(5)
def test_a_restart_is_told_as_a_gap(serve: Serve, name: str) -> None:
    first = serve("basic")
    cursor = first.publish(name, b"before")
    first.stop()
    second = serve("basic")
    second.publish(name, b"behind")
    answer = second.get(f"/next/{name}", f'If-None-Match: "{cursor}"')
    assert (answer.text, answer["parkade-gap"]) == ("behind", "true")


# Streams


@pytest.mark.promise(5)
def test_a_stream_gets_every_message_once_in_order(server: Server, name: str) -> None:
    streams = [server.events(f"/events/{name}") for _ in range(5)]
    server.until_parked(5)
    assert server.post(f"/publish-many/100/{name}").status == 202
    for stream in streams:
        assert stream.data(100) == [str(number) for number in range(100)]


def test_a_stream_begins_with_a_retry_and_its_cursor(server: Server, name: str) -> None:
    server.publish(name, b"before")
    stream = server.events(f"/events/{name}")
    first = stream.next()
    assert first.retry is not None
    assert 1_000 <= first.retry < 5_000, "few clients come back soon"
    assert first.id is not None
    assert first.data is None
    cursor = server.publish(name, b"now")
    event = stream.next()
    assert (event.id, event.data) == (cursor, "now")
    assert stream.head["cache-control"].startswith("no-cache")


def test_retries_are_spread(server: Server, name: str) -> None:
    assert len({server.events(f"/events/{name}").next().retry for _ in range(10)}) > 3


@pytest.mark.promise(5)
@pytest.mark.parametrize("how", ["Last-Event-ID", "since"])
def test_a_stream_is_resumed_from_its_cursor(server: Server, name: str, how: str) -> None:
    stream = server.events(f"/events/{name}")
    server.until_parked(1)
    server.post(f"/publish-many/5/{name}")
    events = [stream.next() for _ in range(4)]
    seen = [event for event in events if event.data is not None]
    assert [event.data for event in seen] == ["0", "1", "2"]
    stream.close()
    server.until_zero()
    server.publish(name, b"while away")
    fields = [f"Last-Event-ID: {seen[-1].id}"] if how == "Last-Event-ID" else []
    query = f"?since={seen[-1].id}" if how == "since" else ""
    back = server.events(f"/events/{name}{query}", *fields)
    assert back.data(3) == ["3", "4", "while away"]


@pytest.mark.promise(5)
def test_a_stream_is_told_of_a_gap(server: Server, name: str) -> None:
    cursor = server.publish(f"short/{name}", b"0")
    server.post(f"/publish-many/6/short/{name}")
    stream = server.events(f"/events/short/{name}", f"Last-Event-ID: {cursor}")
    first = stream.next()
    assert first.event == "gap"
    assert stream.data(3) == ["3", "4", "5"]


@pytest.mark.parametrize(
    "body", [b"one\ntwo", b"one\r\ntwo", b"one\rtwo", b"\none\n\n", b"", b"id: 7\n\ndata: forged", b": x"]
)
def test_no_message_breaks_out_of_its_event(server: Server, name: str, body: bytes) -> None:
    stream = server.events(f"/events/{name}")
    server.until_parked(1)
    server.publish(name, body)
    server.publish(name, b"behind")
    assert stream.data(2) == [body.decode().replace("\r\n", "\n").replace("\r", "\n"), "behind"]


def test_a_route_may_be_a_stream(server: Server) -> None:
    stream = server.events("/standing-stream")
    server.until_parked(1)
    server.publish("standing", b"to the stream")
    assert stream.data(1) == ["to the stream"]


@pytest.mark.python_only("coroutines")
def test_a_coroutine_may_return_a_stream(coroutines: Server, name: str) -> None:
    stream = coroutines.events(f"/events/{name}")
    coroutines.until_parked(1)
    coroutines.publish(name, b"x")
    assert stream.data(1) == ["x"]


def test_head_of_a_stream_ends(server: Server, name: str) -> None:
    answer = server.connect().ask("HEAD", f"/events/{name}").answer(head=True)
    assert answer.status == 200


def test_a_stream_over_http_1_0_is_plain(server: Server, name: str) -> None:
    client = server.connect().send(f"GET /events/{name} HTTP/1.0\r\n\r\n".encode())
    head = client.opening()
    assert "transfer-encoding" not in head
    server.until_parked(1)
    server.publish(name, b"x")
    assert client.until_bytes(b"data: x\n\n")


# Publishing


@pytest.mark.promise(5)
def test_a_publish_has_happened_when_its_answer_comes(server: Server, name: str) -> None:
    client = server.connect()
    cursor = server.publish(name, b"0")
    for number in range(50):
        assert client.post(f"/publish/{name}", b"%d" % number).status == 202
        assert server.status()["counts"]["published"] >= number
    answers = 0
    while answers < 50:
        answer = server.get(f"/next/{name}?since={cursor}")
        assert answer.text == str(answers)
        cursor, answers = cursor_of(answer), answers + 1


@pytest.mark.promise(5)
def test_messages_of_one_worker_keep_their_order_for_everybody(server: Server, name: str) -> None:
    streams = [server.events(f"/events/{name}") for _ in range(3)]
    server.until_parked(3)
    for _ in range(4):
        server.post(f"/publish-many/20/{name}")
    assert [stream.data(80) for stream in streams] == [[str(n) for n in range(20)] * 4] * 3


def test_the_command_line_publishes(server: Server, name: str) -> None:
    client = server.connect().ask("GET", f"/next/{name}")
    server.until_parked(1)
    ended = run("publish", name, "from the shell", *whom(server), XDG_RUNTIME_DIR=str(server.folder))
    assert ended.returncode == 0, ended.stderr
    answer = client.answer()
    assert (answer.text, answer["content-type"]) == ("from the shell", "text/plain; charset=utf-8")


def test_the_command_line_publishes_its_standard_input(server: Server, name: str) -> None:
    client = server.connect().ask("GET", f"/next/{name}")
    server.until_parked(1)
    words = [PARKADE, "publish", name, "-", "--content-type", "application/json", "--pid", str(server.pid)]
    environment = clean_environment(XDG_RUNTIME_DIR=str(server.folder))
    subprocess.run(words, input=b'{"a": 1}', env=environment, timeout=20, check=True)
    assert client.answer().json() == {"a": 1}


def test_the_command_line_names_the_event(server: Server, name: str) -> None:
    with server.events(f"/events/{name}") as events:
        client = server.connect().ask("GET", f"/next/{name}")
        server.until_parked(2)
        shell = ("--event", "is typing: ä", *whom(server))
        ended = run("publish", name, "hola", *shell, XDG_RUNTIME_DIR=str(server.folder))
        assert ended.returncode == 0, ended.stderr
        assert client.answer()["parkade-event"].encode("latin-1").decode() == "is typing: ä"
        told = events.take(1)[0]
        assert (told.event, told.data) == ("is typing: ä", "hola")


@pytest.mark.python_only("about the core")
def test_the_command_line_says_when_nobody_is_there(short_folder: object) -> None:
    ended = run("publish", "x", "y", "--pid", "1", XDG_RUNTIME_DIR=str(short_folder))
    assert ended.returncode != 0
    assert ended.stderr


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/publish/a%2Fb", {}, b"x", 202),
        ("/publish/" + "x" * 200, {}, b"x", 202),
        ("/publish/" + "x" * 201, {}, b"x", 400),
        ("/publish/a%0Ab", {}, b"x", 400),
        ("/publish/", {}, b"x", 400),
        ("/publish/%zz", {}, b"x", 400),
        ("/publish/a", {"Origin": "http://example.org"}, b"x", 403),
        ("/publish/a?event=typing", {}, b"x", 202),
        ("/publish/a?event=", {}, b"x", 400),
        ("/publish/a?event=a%0Ab", {}, b"x", 400),
        ("/publish/a?event=gap", {}, b"x", 400),
        ("/publish/a?evnt=typing", {}, b"x", 400),
        ("/publish/a", {}, b"x" * 524_288, 202),
        ("/publish/a", {}, b"x" * 524_289, 413),
        ("/publish/a", {"Content_Type": "x\u00e4"}, b"x", 400),
    ],
)
def test_the_admin_address_publishes_what_can_be_published(
    server: Server, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    code, told = server.admin("POST", path, body, **headers)
    assert (code, "cursor" in json.loads(told)) == (status, status == 202)


def test_a_message_that_is_too_long_is_an_error_of_who_publishes_it(server: Server, name: str) -> None:
    assert server.post(f"/publish/{name}", b"x" * 524_289).status == 500
    server.until_logged("524,288|524288")


def test_waiting_and_publishing_at_one_moment_loses_nothing(server: Server, name: str) -> None:
    """Every client that parks with the earlier cursor gets the message, whether it was published before or after."""
    for _ in range(30):
        cursor = server.publish(name, b"mark")
        clients = server.waiting(f"/next/{name}?since={cursor}", 10)
        server.publish(name, b"now")
        assert {client.answer().text for client in clients} == {"now"}


# The beginning


def test_a_first_visit_gets_what_is_held_without_a_gap_and_a_client_that_comes_back_goes_on(server: Server) -> None:
    for number in range(5):
        server.publish("short/past", b"%d" % number)
    with server.events("/standing-past") as events:
        assert events.head["incremental"] == "?1"
        seen = [events.next() for _ in range(4)]
    assert [(event.event, event.data) for event in seen] == [(None, None), (None, "2"), (None, "3"), (None, "4")]
    server.publish("short/past", b"5")
    with server.events("/standing-past", f"Last-Event-ID: {seen[2].id}") as events:
        assert events.data(2) == ["4", "5"]
    oldest = server.get("/standing-oldest")
    assert (oldest.text, "parkade-gap" in oldest) == ("3", False)
    assert server.get("/standing-oldest", f"If-None-Match: {oldest['etag']}").text == "4"
    assert server.get("/standing-oldest", 'If-None-Match: "1.1"')["parkade-gap"] == "true"


# Histories, events and cursors of messages


@pytest.mark.parametrize("over", ["HTTP/1.1", "HTTP/2"])
def test_a_history_is_what_is_held_and_a_stream_goes_on_after_it(server: Server, over: str, name: str) -> None:
    for number in range(3):
        server.publish(name, b"%d" % number)
    path = f"/history/{name}"
    if over == "HTTP/2":
        with server.connect2() as client:
            told = client.answer(client.ask("GET", path)).json()
    else:
        told = server.get(path).json()
    assert [message["data"] for message in told["messages"]] == ["0", "1", "2"]
    server.publish(name, b"3")
    with server.events(f"/events/{name}", "Last-Event-ID: " + told["cursor"]) as events:
        server.publish(name, b"4")
        assert events.data(2) == ["3", "4"], "no message between the history and the stream is lost"


def test_a_history_of_nothing_has_a_cursor_too(server: Server, name: str) -> None:
    told = server.get(f"/history/{name}").json()
    assert told["messages"] == []
    server.publish(name, b"first")
    answer = server.get(f"/next/{name}?since={told['cursor']}")
    assert (answer.text, answer.all("parkade-gap")) == ("first", [])


def test_a_long_history_goes_to_a_worker_without_its_oldest_messages(server: Server, name: str) -> None:
    name = f"deep/{name}"
    for number in range(20):
        server.publish(name, b"%02d" % number + b"x" * 100_000)
    told = server.get(f"/history/{name}").json()["messages"]
    assert [message["data"][:2] for message in told] == [f"{number:02}" for number in range(13, 20)]
    assert server.get(f"/history-then/{name}").json() == [7, f"/history-then/{name}", told[-1]["cursor"]]


def test_an_event_has_its_name_in_a_stream_and_others_have_none(server: Server, name: str) -> None:
    with server.events(f"/events/{name}") as events:
        server.until_parked(1)
        assert server.post(f"/publish-event/{name}?event=typing", b"a").status == 202
        assert server.post(f"/publish/{name}", b"b").status == 202
        found = events.take(2)
    assert [(told.event, told.data) for told in found] == [("typing", "a"), (None, "b")]
    for event in ("", "gap", "a%0Ab", "x" * 201):
        assert server.post(f"/publish-event/{name}?event={event}", b"a").status == 500, event


@pytest.mark.python_only("coroutines")
def test_many_coroutines_get_the_cursors_of_their_own_messages(coroutines: Server, name: str) -> None:
    clients = [coroutines.connect().ask("POST", f"/publish-awaited/{name}", body=b"%d" % n) for n in range(50)]
    cursors = [client.answer().json() for client in clients]
    held = coroutines.get(f"/history/{name}").json()["messages"]
    assert {message["cursor"]: int(message["data"]) for message in held} == {c: n for n, c in enumerate(cursors)}
