"""The page of an exception under `parkade dev`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from parkade import App
from parkade._handling.handling import Handling
from parkade._wire import payloads as p


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("half made")


def helper(amount: int, note: str, half: Broken, long: str) -> float:
    return 7 / amount


def page(app: App, path: str = "/orders/7", *parameters: str) -> str:
    headers = msgspec.Raw(msgspec.msgpack.encode(["accept", b"text/html", "x-secret", b"<b>"]))
    head = msgspec.Raw(msgspec.msgpack.encode(["GET", path, "q=1", headers, "", "http", "1.1"]))
    answer: Any = Handling(app, dev=True).runs[0](p.Request(0, list(parameters), None, b"", head))
    status, _, body = msgspec.msgpack.decode(answer)
    assert status == 500
    return str(body)


@pytest.fixture
def app() -> App:
    app = App()

    @app.get("/orders/{id:int}")
    def show(id: int) -> float:
        return helper(id - 7, "<script>", Broken(), "x" * 5_000)

    return app


def test_it_shows_each_frame_with_its_lines_and_variables(app: App) -> None:
    shown = page(app, "/orders/7", "7")
    assert "<title>ZeroDivisionError: division by zero</title>" in shown
    inner, outer = shown.index("in <b>helper</b>"), shown.index("in <b>show</b>")
    assert inner < outer, "the innermost comes first"
    assert "<details open><summary>test_traceback_page.py:" in shown
    assert shown.count("<details open>") == 1
    assert "<th>amount<td>0" in shown
    assert "return 7 / amount</b>" in shown


def test_values_are_escaped_cut_and_never_break_the_page(app: App) -> None:
    shown = page(app, "/orders/7", "7")
    assert "<th>note<td>&#x27;&lt;script&gt;&#x27;" in shown
    assert "<th>half<td>&lt;Broken" in shown
    assert "x" * 400 not in shown
    assert "<th>x-secret<td>&lt;b&gt;" in shown


def test_it_names_the_route_and_its_parameters(app: App) -> None:
    shown = page(app, "/orders/7", "7")
    assert "<p>GET /orders/7?q=1</p><table><tr><th>route<td>show<tr><th>{id}<td>7</table>" in shown
    assert "Traceback (most recent call last):" in shown


def test_frames_of_libraries_are_closed() -> None:
    app = App()
    app.get("/", lambda: msgspec.json.decode(b"{").nothing, name="c")

    @app.get("/lib")
    def lib() -> object:
        import json

        return json.loads("{")

    run = Handling(app, dev=True).runs[1]
    headers = msgspec.Raw(msgspec.msgpack.encode(["accept", b"text/html"]))
    head = msgspec.Raw(msgspec.msgpack.encode(["GET", "/lib", "", headers, "", "http", "1.1"]))
    answer: Any = run(p.Request(1, [], None, b"", head))
    shown = str(msgspec.msgpack.decode(answer)[2])
    assert "in <b>raw_decode</b> (library)" in shown
    opened = shown[shown.index("<details open>") :]
    assert opened.startswith("<details open><summary>test_traceback_page.py")
