"""The input of one client costs at most a small multiple of its size, in time and in memory.

Otherwise one client could stop the server for all others. So all code that reads input of clients has a bound, and
never uses a codec, a regular expression or a recursion that the client chooses.

Each input is sent at its limit and at an eighth of that. Time is the worker's CPU time, and the two are compared:
quadratic time takes 64 times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from .conftest import Serve
from .harness import processes
from .harness.server import Server

MEBIBYTE = 1 << 20
HEAD = 30_000
BODY = 16 * MEBIBYTE - 4_096

URLENCODED = "Content-Type: application/x-www-form-urlencoded"
MULTIPART = "Content-Type: multipart/form-data; boundary="
JSON = "Content-Type: application/json"


@dataclass(frozen=True)
class Case:
    """An input of any size. `copies`: how many times its size may be in memory while it is read."""

    what: str
    target: str
    size: int
    status: int
    fields: Callable[[int], str] = lambda size: "X-None: "
    body: Callable[[int], bytes] = lambda size: b""
    copies: int = 10

    def ask(self, server: Server, size: int) -> int:
        body = self.body(size)
        fields = [field for field in self.fields(size).split("\n") if field]
        target = self.target.replace("~", "%41" * (size // 3)).replace("^", "7" * size).replace("@", "a&" * (size // 2))
        with server.connect() as client:
            answer = client.ask("POST" if body else "GET", target, *fields, body=body).answer(seconds=100)
        return int(answer.status)


def parts(head: bytes) -> Callable[[int], bytes]:
    """A form of a thousand parts, whose heads are padded with this."""

    def body(size: int) -> bytes:
        begin = b'--a\r\nContent-Disposition: form-data; name="x"'
        filler = head * ((size // 1_000 - len(begin) - 7) // len(head))
        return (begin + filler + b"\r\n\r\n\r\n") * 1_000 + b"--a--"

    return body


CASES = [
    Case("a cookie of backslashes", "/cookies", HEAD, 200, lambda n: 'Cookie: a="' + "\\" * n + '"'),
    Case("a cookie of octals", "/cookies", HEAD, 200, lambda n: 'Cookie: a="' + "\\101" * (n // 4) + '"'),
    Case(
        "thousands of cookies", "/cookies", HEAD, 200, lambda n: "Cookie: " + "".join(f"{i}=;" for i in range(n // 6))
    ),
    Case("semicolons", "/cookies", HEAD, 200, lambda n: "Cookie: " + "a;" * (n // 2)),
    Case(
        "punycode",
        "/text",
        600_000,
        415,
        lambda n: "Content-Type: text/plain; charset=punycode",
        lambda n: b"b" * (n // 2) + b"-" + b"a" * (n // 2),
    ),
    Case(
        "a charset for an annotated body",
        "/text_body",
        600_000,
        415,
        lambda n: "Content-Type: text/plain; charset=punycode",
        lambda n: b"b" * (n // 2) + b"-" + b"a" * (n // 2),
    ),
    Case(
        "quotes in a content type",
        "/text",
        HEAD,
        415,
        lambda n: 'Content-Type: a/b; charset="' + '\\"' * (n // 2),
        lambda n: b"x",
    ),
    Case(
        "escapes in a form", "/form", 4 * MEBIBYTE, 200, lambda n: URLENCODED, lambda n: b"a=" + b"%41" * (n // 3 - 1)
    ),
    Case("percent signs in a form", "/form", 4 * MEBIBYTE, 200, lambda n: URLENCODED, lambda n: b"%" * n),
    Case("backslashes in a form", "/form", 4 * MEBIBYTE, 200, lambda n: URLENCODED, lambda n: b"%41" + b"\\" * (n - 3)),
    Case(
        "a long urlencoded form",
        "/form",
        BODY,
        413,
        lambda n: URLENCODED,
        lambda n: b"%41" * (MEBIBYTE * 3 // 2 + n // 5),
    ),
    Case("empty fields", "/form", 4 * MEBIBYTE, 400, lambda n: URLENCODED, lambda n: b"&" * n),
    Case("digits in a form", "/numbers", 4 * MEBIBYTE, 422, lambda n: URLENCODED, lambda n: b"i=" + b"7" * (n - 2)),
    Case("a float in a form", "/numbers", 4 * MEBIBYTE, 422, lambda n: URLENCODED, lambda n: b"f=0." + b"7" * (n - 4)),
    Case("a decimal in a form", "/numbers", 4 * MEBIBYTE, 422, lambda n: URLENCODED, lambda n: b"d=" + b"7" * (n - 2)),
    Case(
        "a time in a form",
        "/numbers",
        4 * MEBIBYTE,
        200,
        lambda n: URLENCODED,
        lambda n: b"t=2020-01-01T00:00:00." + b"7" * (n - 23),
    ),
    Case("delimiters", "/form", BODY, 400, lambda n: MULTIPART + "a", lambda n: b"\r\n--a" * (n // 5)),
    Case(
        "nearly delimiters",
        "/form",
        BODY,
        400,
        lambda n: MULTIPART + "-" * 70,
        lambda n: (b"\r\n" + b"-" * 71) * (n // 73),
    ),
    Case("line ends", "/form", BODY, 400, lambda n: MULTIPART + "a", lambda n: b"\r\n" * (n // 2)),
    Case(
        "a boundary of line ends",
        "/form",
        BODY,
        400,
        lambda n: MULTIPART + '"' + "%0D" * 69 + 'x"',
        lambda n: b"\r" * n,
    ),
    Case(
        "a file",
        "/file",
        BODY,
        200,
        lambda n: MULTIPART + "a",
        lambda n: (
            b'--a\r\nContent-Disposition: form-data; name="upload"; filename="f"\r\n\r\n'
            + b"x" * (n - 100)
            + b"\r\n--a--"
        ),
    ),
    Case("parameters of parts", "/form", 8_000_000, 200, lambda n: MULTIPART + "a", parts(b";a=b")),
    Case("quotes of parts", "/form", 8_000_000, 200, lambda n: MULTIPART + "a", parts(b'"')),
    Case("backslashes of parts", "/form", 8_000_000, 200, lambda n: MULTIPART + "a", parts(b';"\\\\')),
    Case("lines of parts", "/form", 8_000_000, 400, lambda n: MULTIPART + "a", parts(b"\r\na:b")),
    Case("brackets", "/json", BODY, 400, lambda n: JSON, lambda n: b"[" * n),
    Case(
        "rows of brackets",
        "/json",
        BODY,
        200,
        lambda n: JSON,
        lambda n: b"[" + b",".join([b"[" * 190 + b"]" * 190] * (n // 381)) + b"]",
        64,  # an empty list of CPython has 80 bytes, and an array of Perl 112, where JSON has two
    ),
    Case("brackets for a type", "/order", BODY, 400, lambda n: JSON, lambda n: b'{"x":' + b"[" * (n - 5)),
    Case("digits in JSON", "/json", BODY, 422, lambda n: JSON, lambda n: b"7" * n),
    Case(
        "a decimal in JSON", "/order", BODY, 422, lambda n: JSON, lambda n: b'{"price":"' + b"7" * (n - 12) + b'"}', 16
    ),
    Case(
        "one key again and again",
        "/json",
        BODY,
        200,
        lambda n: JSON,
        lambda n: b'{"a":1' + b',"a":1' * (n // 6 - 2) + b"}",
    ),
    Case("escapes in a query", "/query?~", HEAD, 200),
    Case("fields in a query", "/query?@", HEAD, 400),
    Case("digits in a query", f"/numbers?i={'7' * 4_000}^", 25_000, 422),
    Case("escapes in a path", "/rest/~", HEAD, 200),
    Case("a path to nowhere", "/nowhere/~", HEAD, 404),
    Case("accepted types", "/headers", HEAD, 200, lambda n: "Accept: " + "a/b;q=0.1," * (n // 10)),
    Case("tags", "/headers", HEAD, 200, lambda n: "If-None-Match: " + 'W/"a",' * (n // 6)),
    Case("a cursor", "/headers", HEAD, 200, lambda n: "Last-Event-ID: " + "a." * (n // 2)),
    Case("preferences", "/headers", HEAD, 200, lambda n: "Prefer: " + "a=b;c," * (n // 6)),
]


IN_PERL = {
    "escapes in a form": 200,
    "percent signs in a form": 200,
    "backslashes in a form": 200,
    "a long urlencoded form": 413,
    "empty fields": 400,
    "brackets": 400,
    "rows of brackets": 200,
    "digits in JSON": 200,
    "one key again and again": 200,
    "escapes in a query": 200,
    "fields in a query": 400,
    "escapes in a path": 200,
    "a path to nowhere": 404,
    "accepted types": 200,
    "tags": 200,
    "a cursor": 200,
    "preferences": 200,
}
"""The cases that Perl has, and their statuses there. It reads no cookies, charsets, parts of forms or types."""

IN_PYTHON = pytest.mark.python_only("coroutines")

TYPED = pytest.mark.python_only("types of bodies")
TREES = ["/json", "/echo", pytest.param("/order", marks=TYPED), pytest.param("/tree", marks=TYPED)]


@pytest.fixture(scope="module", params=["costs", pytest.param("costs_async", marks=IN_PYTHON)])
def shared(request: pytest.FixtureRequest, serve_for_all: Serve) -> Server:
    return serve_for_all(request.param, deadline="100s", body_timeout="60s")


def cost(server: Server, case: Case, size: int) -> list[tuple[float, int]]:
    """CPU seconds and bytes of memory for one request, of the core and of its worker."""
    pids = [server.pid, *server.worker_pids()]
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets the peak of memory (proc(5))
    before = [(processes.cpu_seconds(pid), processes.resident_bytes(pid)) for pid in pids]
    assert case.ask(server, size) == case.status
    assert [server.pid, *server.worker_pids()] == pids, f"the worker died of it:\n{server.log_tail()}"
    after = [(processes.cpu_seconds(pid), processes.peak_bytes(pid)) for pid in pids]
    return [(now[0] - then[0], now[1] - then[1]) for then, now in zip(before, after, strict=True)]


@pytest.mark.promise(8)
@pytest.mark.also_in_perl
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.what, marks=[] if case.what in IN_PERL else pytest.mark.python_only("has it"))
        for case in CASES
    ],
)
def test_what_a_client_sends_costs_a_small_multiple_of_its_size(server: Server, language: str, case: Case) -> None:
    if language == "perl":
        case = replace(case, status=IN_PERL[case.what])
    small = cost(server, case, case.size // 8)
    whole = cost(server, case, case.size)
    for who, (before, _), (seconds, memory) in zip(("core", "worker"), small, whole, strict=True):
        assert seconds <= 0.25 + 24 * before, f"{who}: {before:.2f} s for an eighth, {seconds:.2f} s for the whole"
        assert memory <= 8 * MEBIBYTE + case.copies * case.size, f"{who}: {memory / MEBIBYTE:.0f} MiB"


@pytest.mark.promise(8)
def test_names_of_charsets_are_not_kept(server: Server) -> None:
    (pid,) = server.worker_pids()
    with server.connect() as client:

        def name(number: int) -> int:
            field = f"Content-Type: text/plain; charset=x{number}{'y' * 20_000}"
            return int(client.ask("POST", "/text", field, body=b"x").answer().status)

        assert name(0) == 415
        before = processes.resident_bytes(pid)
        assert {name(number) for number in range(1, 800)} == {415}
    assert processes.resident_bytes(pid) - before < 5 * MEBIBYTE


@pytest.mark.parametrize("charset", ["idna", "punycode", "undefined", "rot13", "zlib", "utf-7", "unicode_escape", "x"])
def test_a_charset_off_the_list_is_415(server: Server, charset: str) -> None:
    for target in ("/text", "/text_body"):
        answer = server.post(target, b"xn--a-", f"Content-Type: text/plain; charset={charset}")
        assert answer.status == 415
    assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("utf-8", b"\xff"),
        ("us-ascii", b"\xff"),
        ("windows-1252", b"\x81"),
        ("utf-16", b"\x00"),
        ("UTF-16LE", b"\0\xd8"),
    ],
)
def test_a_body_that_is_not_in_its_charset_is_400(server: Server, charset: str, body: bytes) -> None:
    assert server.post("/text", body, f"Content-Type: text/plain; charset={charset}").status == 400


@pytest.mark.also_in_perl
@pytest.mark.parametrize("target", TREES)
@pytest.mark.parametrize("depth", [201, 900, 960, 980, 990, 995, 1_000, 100_000])
def test_json_that_is_too_deep_is_400(server: Server, target: str, depth: int) -> None:
    begin, end = {
        "/json": (b"[", b"]"),
        "/echo": (b'{"a":', b"}"),
        "/order": (b'{"price":"1","parts":[', b"]}"),
        "/tree": (b'{"children":[', b"]}"),
    }[target]
    inner = b"1" if target == "/echo" else b""
    answer = server.post(target, begin * depth + inner + end * depth, JSON)
    assert answer.status == 400
    assert "the body is JSON nested more than 200 levels deep" in answer.text
    assert "Traceback" not in server.log()


@pytest.mark.also_in_perl
@pytest.mark.parametrize("target", TREES)
def test_json_of_a_hundred_levels_is_taken(server: Server, target: str) -> None:
    begin, end = {"/json": (b"[", b"]"), "/echo": (b'{"a":', b"}")}.get(
        target, (b'{"price":"1","children":[],"parts":[', b"]}")
    )
    inner = b"1" if target == "/echo" else b""
    assert server.post(target, begin * 100 + inner + end * 100, JSON).status == 200


@pytest.mark.parametrize(
    "number", ["NaN", "sNaN", "-Infinity", "inf", "1e999999999", "1e-999999999", "0e999999999", "1_0", " 1"]
)
def test_a_decimal_that_nobody_computes_with_is_422(server: Server, number: str) -> None:
    field = number.replace(" ", "+")
    assert server.get(f"/numbers?d={field}").status == 422
    assert server.post("/numbers", f"d={field}".encode(), URLENCODED).status == 422
    if number not in ("1_0", " 1"):
        for body in (f'{{"price":"{number}"}}', f'{{"price":"1","parts":[{{"price":"{number}"}}]}}'):
            assert server.post("/order", body.encode(), JSON).status == 422
    if "e" in number:
        assert server.post("/order", f'{{"price":{number}}}'.encode(), JSON).status == 422


@pytest.mark.parametrize(("number", "told"), [("1e400", "1" + "0" * 199), ("0.10", "0.10"), ("-7", "-7")])
def test_a_decimal_that_can_be_written_out_is_taken(server: Server, number: str, told: str) -> None:
    answer = server.post("/order", f'{{"price":"{number}"}}'.encode(), JSON)
    assert (answer.status, answer.text) == (200, told)


@pytest.mark.promise(8)
def test_what_shared_results_were_asked_with_is_not_kept(serve: Serve) -> None:
    server = serve("shop_queries", database="sqlite:///lite.db")

    def asked(number: int) -> bytes:
        long = f"{number}\x01" + "x" * 500_000
        return json.dumps({"sql": "select length($1) as n", "parameters": [long], "shared": "n", "ttl": 600}).encode()

    def ask(numbers: range) -> None:
        with server.connect() as client:
            assert {client.ask("POST", "/returned", body=asked(n)).answer().status for n in numbers} == {200}

    ask(range(40))  # the size that buffers grow to
    before = server.resident_bytes
    ask(range(40, 340))
    assert server.resident_bytes - before < 20 * MEBIBYTE
    assert server.status()["memory"]["result_bytes"] < MEBIBYTE
