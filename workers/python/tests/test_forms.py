"""Forms, and bodies that only look like forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parkade import HTTPError, Upload
from parkade._requests.filenames import plain_name
from parkade._requests.forms import FormValue, parse_content_type, parse_form

TYPE = "multipart/form-data; boundary=x"


def part(disposition: str, content: str = "v", more: str = "") -> str:
    return f"--x\r\nContent-Disposition: form-data; {disposition}\r\n{more}\r\n{content}\r\n"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (part('name="a"') + "--x--\r\n", [("a", "v")]),
        (part('name="a"', "") + "--x--", [("a", "")]),
        (part('name="a"', "\r\n--y\r\n") + "--x--\r\n", [("a", "\r\n--y\r\n")]),
        (part('name="a"') + part('name="a"', "w") + "--x--\r\n", [("a", "v"), ("a", "w")]),
        (part('name="a;b"; x=1') + "--x--\r\n", [("a;b", "v")]),
        (part('name="q%22"') + "--x--\r\n", [('q"', "v")]),
        (part("name=a") + "--x--\r\n", [("a", "v")]),
        (
            part('name="f"; filename="C:\\dir\\a.txt"', more="Content-Type: text/x\r\n") + "--x--\r\n",
            [("f", Upload("a.txt", "text/x", b"v", "C:\\dir\\a.txt"))],
        ),
        (
            part("name=f; filename*=UTF-8''%C3%BC.txt") + "--x--\r\n",
            [("f", Upload("ü.txt", "application/octet-stream", b"v", "ü.txt"))],
        ),
        ("--x--\r\n", []),
    ],
)
def test_a_multipart_body_is_read(body: str, fields: list[tuple[str, FormValue]]) -> None:
    assert parse_form(TYPE, body.encode()).items_all() == fields


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (part('name="a"'), TYPE, 400),
        ("", TYPE, 400),
        ("preamble\r\n" + part('name="a"') + "--x--\r\n", TYPE, 400),
        (part('name="a"') + "--x--\r\nepilogue", TYPE, 400),
        ("--x\r\n\r\nv\r\n--x--\r\n", TYPE, 400),
        ("--x\r\nContent-Disposition: attachment; name=a\r\n\r\nv\r\n--x--\r\n", TYPE, 400),
        ("--x\r\nContent-Disposition : form-data; name=a\r\n\r\nv\r\n--x--\r\n", TYPE, 400),
        (part('name="a"', more="X: " + "y" * 9_000 + "\r\n") + "--x--\r\n", TYPE, 400),
        (part("name=a") * 1_001 + "--x--\r\n", TYPE, 400),
        (part("name=a") + "--x--\r\n", "multipart/form-data", 400),
        ("a=1", "text/plain", 415),
        ("&".join(["a=1"] * 1_001), "application/x-www-form-urlencoded", 400),
    ],
)
def test_a_body_that_is_no_form_is_refused(body: str, content_type: str, status: int) -> None:
    with pytest.raises(HTTPError) as raised:
        parse_form(content_type, body.encode())
    assert raised.value.status == status


def test_a_form_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(HTTPError):
        parse_form("application/x-www-form-urlencoded", b"a=\xff")


@pytest.mark.parametrize(
    ("value", "media", "parameters"),
    [
        ("Text/HTML", "text/html", {}),
        ('text/html; Charset="utf-8" ; x=y', "text/html", {"charset": "utf-8", "x": "y"}),
        ('form-data; name="a\\";b"', "form-data", {"name": 'a";b'}),
        ("", "", {}),
    ],
)
def test_a_content_type_has_parameters(value: str, media: str, parameters: dict[str, str]) -> None:
    assert parse_content_type(value) == (media, parameters)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a.txt", "a.txt"),
        ("", ""),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\x.py", "x.py"),
        ("/etc/shadow", "shadow"),
        ("C:a.txt", "C_a.txt"),
        (".env", "env"),
        ("..", "unnamed"),
        ("a/", "unnamed"),
        (" . .hidden. ", "hidden"),
        ("a\x00b\r\nc\x7f.txt", "abc.txt"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com1.tar.gz", "_com1.tar.gz"),
        ("console.log", "console.log"),
        ('a<b>:"|?*.txt', "a_b______.txt"),
        ("u\u0308.txt", "ü.txt"),
        ("résumé 1.pdf", "résumé 1.pdf"),
        ("ü" * 200 + ".jpeg", "ü" * 97 + ".jpeg"),
        ("x" * 300, "x" * 200),
    ],
)
def test_the_name_of_a_file_is_made_plain(given: str, name: str) -> None:
    assert plain_name(given) == name


@given(st.text())
def test_a_plain_name_leads_nowhere(given: str) -> None:
    name = plain_name(given)
    assert not set(name) & set("/\\\0\n")
    assert not name.startswith(".")
    assert len(name.encode()) <= 200
    assert (name == "") == (given == "")
    assert plain_name(name) == name
