"""Templates, by Jinja2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parkade import App, Router, Templates
from parkade.errors import LoadError
from parkade.testing import Client

pytest.importorskip("jinja2")


def templates(folder: Path, **files: str) -> Templates:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return App().templates(folder)


def test_a_page_is_rendered_and_what_others_wrote_is_escaped(tmp_path: Path) -> None:
    pages = templates(tmp_path, base__html="<h1>{% block title %}{% endblock %}</h1>")
    (tmp_path / "hola.html").write_text("{% extends 'base.html' %}{% block title %}Hola {{ name }}{% endblock %}")
    app = App()
    app.get("/{name}", lambda name: pages.render("hola.html", name=name))
    answer = Client(app).get("/%3Cb%3E")
    assert answer.text == "<h1>Hola &lt;b&gt;</h1>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("name", "content_type", "text"),
    [
        ("a.html", "text/html; charset=utf-8", "&lt;"),
        ("a.html.j2", "text/html; charset=utf-8", "&lt;"),
        ("a.j2", "text/html; charset=utf-8", "&lt;"),
        ("a.svg", "image/svg+xml", "&lt;"),
        ("a.txt", "text/plain; charset=utf-8", "<"),
        ("a.txt.jinja", "text/plain; charset=utf-8", "<"),
    ],
)
def test_the_name_tells_the_type_and_only_text_is_not_escaped(
    tmp_path: Path, name: str, content_type: str, text: str
) -> None:
    (tmp_path / name).write_text("{{ sign }}")
    page = templates(tmp_path).render(name, sign="<")
    assert (page.body, page.headers["content-type"]) == (text, content_type)


def test_filters_and_globals_are_there_and_a_missing_value_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{{ price|euro }} {{ shop }}{{ misspelt }}")
    app = App()
    pages = app.templates(tmp_path, filters={"euro": "{} €".format}, globals={"shop": "Ana's"})
    assert pages.text("a.txt", price=3, misspelt="") == "3 € Ana's"
    with pytest.raises(Exception, match="'misspelt' is undefined"):
        pages.text("a.txt", price=3)


def test_a_relative_folder_is_next_to_the_file_that_names_it() -> None:
    with pytest.raises(LoadError, match=f"there is no folder {Path(__file__).parent / 'nowhere'}"):
        App().templates("nowhere")


def test_a_template_with_an_error_is_told_when_the_application_loads(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(b"\x89PNG {% not a template %}")
    (tmp_path / "bad.html").write_text("<p>\n{% if %}")
    with pytest.raises(LoadError, match=r"bad\.html:2: Expected an expression"):
        Router().templates(tmp_path)


def test_without_jinja_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(LoadError, match=r"pip install 'parkade\[templates\]'"):
        App().templates(tmp_path)
