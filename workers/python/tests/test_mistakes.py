"""Mistakes that are easily made: what is said, and where. Each was silent, or hard to understand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parkade import App, Request, Response, SignatureError, Wait, after, query
from parkade._loading import load
from parkade.errors import InvalidResult, LoadError
from parkade.testing import Client

# While the application loads


@pytest.mark.parametrize(
    ("path", "meant"),
    [("/x/<name>", "{name}"), ("/x/<int:id>", "{id}"), ("/x/:id", "{id}"), ("/x/*", "{rest:path}")],
)
def test_the_parameters_of_other_frameworks_are_refused(path: str, meant: str) -> None:
    with pytest.raises(SignatureError) as caught:
        App().get(path, lambda **all: "x")
    assert f"write {meant} for a parameter" in str(caught.value)


def test_a_colon_within_a_segment_is_text() -> None:
    app = App()
    app.get("/orders:cancel", "done")
    assert Client(app).get("/orders:cancel").text == "done"


@pytest.mark.parametrize("verb", ["get", "post", "put", "patch", "delete"])
def test_a_decorator_without_parentheses_names_itself_and_the_function(verb: str) -> None:
    def hola() -> None: ...

    with pytest.raises(SignatureError, match=rf"hola: a path comes first: write @app.{verb}\('/path'\)"):
        getattr(App(), verb)(hola)


def test_a_handler_whose_parameters_cannot_be_read_is_refused() -> None:
    with pytest.raises(SignatureError, match=r"^/x: the parameters of builtins:dict cannot be read; write a function"):
        App().get("/x", dict)


@pytest.mark.parametrize("constant", [object(), {"a": object()}, {"a": after(1)}])
def test_a_constant_that_is_no_answer_is_refused(constant: object) -> None:
    with pytest.raises(InvalidResult, match="which is not an answer"):
        App().get("/x", constant)


@pytest.mark.parametrize("answer", [{"rows": query("select 1")}, [after(1)]])
def test_a_wait_inside_an_answer_is_to_be_awaited(answer: object) -> None:
    with pytest.raises(InvalidResult, match=r"await the waits in it, in an async def, or return all_of"):
        App().get("/x", answer)


@pytest.mark.parametrize(("kind", "says"), [(list[bytes], r"several are list\[Upload\]"), (App, "parameter body")])
def test_a_parameter_that_no_request_has_says_what_to_write(kind: Any, says: str) -> None:
    def handler(thing: Any) -> None: ...

    handler.__annotations__["thing"] = kind
    with pytest.raises(SignatureError, match=f"no part of a request can become .*{says}"):
        App().post("/x", handler)


@pytest.mark.parametrize("text", ["a = %s", "a = %(name)s", "a = :name"])
def test_placeholders_of_other_libraries_are_refused_where_the_query_is_written(text: str) -> None:
    with pytest.raises(ValueError, match=r"are \$1, \$2…, not [%:]"):
        query(f"select * from x where {text}", 1)


@pytest.mark.parametrize("text", ["a = $1", "a = ?", "a::int = ?", "'10:30' < ?"])
def test_placeholders_of_ours_are_not(text: str) -> None:
    query(f"select * from x where {text}", 1)


@pytest.mark.parametrize("key", [lambda: "x", 200, 700, "404", object])
def test_an_error_handler_of_nothing_is_refused(key: Any) -> None:
    with pytest.raises(SignatureError, match=r"as in @app.error\(404\)"):
        App().error(key)


@pytest.mark.parametrize("register", [lambda app: app.every, lambda app: app.cron])
def test_a_schedule_without_its_times_shows_one(register: Callable[[App], Any]) -> None:
    with pytest.raises(SignatureError, match="as in @app"):
        register(App())(lambda: None)


def typed(first: Response, second: Request) -> None: ...


def response_first(response: object, request: object) -> None: ...


@pytest.mark.parametrize("hook", [typed, response_first, lambda res, req: None, lambda x, request: None])
def test_an_after_hook_with_its_parameters_in_the_wrong_order_is_refused(hook: Any) -> None:
    with pytest.raises(SignatureError, match="the request and the response, in this order"):
        App().after(hook)


@pytest.mark.parametrize("hook", [lambda *both: None, lambda a, b: None, lambda request, response, more=1: None])
def test_any_other_names_are_fine(hook: Any) -> None:
    App().after(hook)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("run", "parkade serve app.py"),
        ("websocket_route", r"write @app.websocket\(path\)"),
        ("before_request", "@app.before"),
        ("errorhandler", r"@app.error\(404\)"),
        ("rout", "did you mean 'route'"),
        ("xyzzy", "has no attribute 'xyzzy'$"),
    ],
)
def test_a_name_of_another_framework_is_answered_with_what_it_is_called_here(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(App(), name)
    assert not hasattr(App(), "__wrapped__")


def load_error(folder: Path, code: str) -> str:
    file = folder / "mistaken.py"
    file.write_text(f"from parkade import App\napp = App()\n{code}\n")
    with pytest.raises(LoadError) as caught:
        load(str(file))
    return str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("@app.job(retry=3)\ndef f(): ...", "did you mean retries?"),
        ("@app.get('/', methods=['POST'])\ndef f(): ...", "app.route(path, methods=[…])"),
        ("App(__name__)", "App(…) takes the options concurrent, jobs_path"),
        ("App(debug=True)", "App(…) takes the options concurrent, jobs_path"),
        ("@app.before()\ndef f(request): ...", "write @app.before without parentheses"),
    ],
)
def test_an_unknown_option_is_answered_with_those_that_there_are(tmp_path: Path, code: str, said: str) -> None:
    assert said in load_error(tmp_path, code)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("Wiat", "parkade has no Wiat; did you mean 'Wait'?"),
        ("after, chanel", "parkade has no chanel; did you mean 'channel'?"),
        ("FastAPI", "parkade has no FastAPI: use App"),
        ("jsonify", "parkade has no jsonify: a handler returns dicts"),
        ("Depends", "write a before hook of a router"),
    ],
)
def test_a_name_that_the_package_does_not_have_is_answered_with_what_there_is(
    tmp_path: Path, names: str, said: str
) -> None:
    told = load_error(tmp_path, f"from parkade import {names}")
    assert said in told
    assert "ImportError: cannot import name" in told


def test_an_import_of_another_package_is_left_to_python(tmp_path: Path) -> None:
    assert load_error(tmp_path, "from os import chanel").rstrip().endswith(")"), "where os is"


@pytest.mark.parametrize(
    "code",
    [
        "@app.before\ndef f(): ...",
        "@app.get('/')\ndef f(x: 'Missing'): ...",
        "@app.error(404)\ndef f(x: 'Missing'): ...",
        "@app.get('/')\ndef f(x: object): ...",
        "@app.job\ndef f(x: 'Missing'): ...",
    ],
)
def test_the_traceback_of_a_mistake_begins_in_the_application_and_has_one_part(tmp_path: Path, code: str) -> None:
    told = load_error(tmp_path, code)
    assert told.splitlines()[1].startswith(f'  File "{tmp_path / "mistaken.py"}"')
    assert told.count("Traceback") == 1


# While it runs


def forgotten() -> object:
    {"a": 1}  # noqa: B018


async def forgotten_async() -> dict[str, int]:  # type: ignore[return]
    pass


def meant() -> None: ...


def optional() -> str | None:
    return None


def waited() -> Wait:
    return after(0, None)


@pytest.mark.parametrize(
    ("handler", "is_noted"),
    [(forgotten, True), (forgotten_async, True), (meant, False), (optional, False), (waited, False)],
)
@pytest.mark.parametrize("hooked", [False, True])
def test_a_forgotten_return_is_noted_once(
    handler: Any, is_noted: bool, hooked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    app = App()
    app.get("/", handler)
    if hooked:
        app.before(lambda request: None)
    with Client(app) as client:
        for _ in range(2):
            assert client.get("/").status == 204
    line = f"{handler.__name__} ({__file__}:{handler.__code__.co_firstlineno}) returned None"
    assert capsys.readouterr().err.count(line) == is_noted


@pytest.mark.parametrize("function", [forgotten, forgotten_async, meant])
def test_a_forgotten_return_of_a_function_after_a_wait_is_noted_once(
    function: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = App(concurrent=True)
    app.get("/", lambda: after(0).then(function))
    with Client(app) as client:
        for _ in range(2):
            assert client.get("/").status == 204
    line = f"after a wait: test_mistakes:{function.__name__} ({__file__}:{function.__code__.co_firstlineno}) returned"
    assert capsys.readouterr().err.count(line) == (function is not meant)


def test_a_body_of_another_content_type_is_told_which_it_had() -> None:
    app = App()

    @app.post("/json")
    def take(body: dict[str, int]) -> dict[str, int]:
        return body

    answer = Client(app).post("/json", data={"a": "1"})
    assert answer.status == 415
    assert "must be application/json, not application/x-www-form-urlencoded" in answer.text


def test_then_is_given_a_function_rather_than_what_it_returned() -> None:
    with pytest.raises(SignatureError, match=r"write \.then\(page\), not \.then\(page\(\)\)"):
        after(1).then(Response("x"))  # type: ignore[arg-type]


def test_what_is_returned_by_mistake_is_answered_with_what_to_return(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()

    @app.job
    def work() -> None: ...

    async def answer() -> str:
        return "x"

    app.get("/handle", lambda: work.enqueue())
    app.get("/coroutine", lambda: answer())
    with Client(app) as client:
        assert [client.get(path).status for path in ("/handle", "/coroutine")] == [500, 500]
    told = capsys.readouterr().err
    assert "return its result(timeout=…), which is a wait, or its id" in told
    assert "write async def, and await it" in told
    assert "never awaited" not in told
