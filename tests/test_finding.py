"""How `parkade serve` finds an application: by a module, a file, a function that makes it, or a project of Django."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.server import PARKADE, clean_environment

NATIVE = "from parkade import App\napp = App()\napp.get('/', 'native')\n"
WSGI = "def app(environ, start_response):\n    start_response('200 OK', [])\n    return [b'wsgi']\n"
ASGI = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"asgi"})
"""
HIDDEN = f"{WSGI}\nhidden = app\napp = lambda *arguments: hidden(*arguments)\n"
FACTORY = f"def create_app():\n{''.join(f'    {line}{chr(10)}' for line in NATIVE.splitlines())}    return app\n"
HOLDER = f"{NATIVE}\nclass Holder:\n    inner = app\ndel app\n"

DJANGO = {
    "manage.py": """
import os
import sys

def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)

if __name__ == "__main__":
    main()
""",
    "mysite/__init__.py": "",
    "mysite/settings.py": """
SECRET_KEY = "x"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "mysite.urls"
WSGI_APPLICATION = "mysite.wsgi.application"
""",
    "mysite/urls.py": """
from django.http import HttpResponse
from django.urls import path

def which(request):
    return HttpResponse(type(request).__name__)

urlpatterns = [path("", which)]
""",
    "mysite/wsgi.py": "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n",
    "mysite/asgi.py": "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [PARKADE, "serve", "--check", "--bind", "127.0.0.1:0", *words]
    environment = clean_environment(XDG_RUNTIME_DIR=str(folder))
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    ("code", "target", "settings", "answered"),
    [
        (NATIVE, "./site_1.py", {}, "native"),
        (NATIVE, "site_1:app", {"interface": "native"}, "native"),
        (WSGI, "site_1:app", {}, "wsgi"),
        (WSGI, "./site_1.py", {"interface": "wsgi"}, "wsgi"),
        (HIDDEN, "site_1:app", {"interface": "wsgi"}, "wsgi"),
        (ASGI, "site_1:app", {"interface": "asgi"}, "asgi"),
        (HOLDER, "site_1:Holder.inner", {}, "native"),
    ],
)
def test_an_application_is_found(
    serve: Serve, tmp_path: Path, code: str, target: str, settings: dict[str, str], answered: str
) -> None:
    write(tmp_path, {"site_1.py": code})
    assert serve(target, folder=tmp_path, workers=1, **settings).get("/").text == answered


@pytest.mark.parametrize("code", [FACTORY, FACTORY.replace("create_app()", "create_app(debug=False)")])
def test_a_factory_is_called(serve: Serve, tmp_path: Path, code: str) -> None:
    write(tmp_path, {"site_1.py": code, "parkade.toml": "factory = true\n"})
    server = serve("site_1:create_app", folder=tmp_path, workers=1)
    assert server.get("/").text == "native"
    server.reload()
    assert server.get("/").text == "native"


@pytest.mark.parametrize("target", ["project", "project/manage.py", "./project/"])
def test_a_django_project_is_found_by_its_folder(serve: Serve, tmp_path: Path, target: str) -> None:
    write(tmp_path / "project", DJANGO)
    server = serve(f"{tmp_path}/{target}", folder=tmp_path, workers=1)
    assert server.get("/").text == "WSGIRequest"
    server.until_logged("interface=WSGI")


def test_a_django_project_is_served_as_asgi_if_asked(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path, DJANGO)
    server = serve(f"{tmp_path}/manage.py", folder=tmp_path, workers=1, interface="asgi")
    assert server.get("/").text == "ASGIRequest"
    server.until_logged("interface=ASGI")


@pytest.mark.parametrize(("interface", "kind"), [("wsgi", "WSGIRequest"), ("asgi", "ASGIRequest")])
def test_a_django_project_needs_no_module_of_its_own_for_the_server(
    serve: Serve, tmp_path: Path, interface: str, kind: str
) -> None:
    files = {name: text for name, text in DJANGO.items() if name not in ("mysite/wsgi.py", "mysite/asgi.py")}
    files["mysite/settings.py"] = files["mysite/settings.py"].replace('"mysite.wsgi.application"', "None")
    write(tmp_path, files)
    server = serve(f"{tmp_path}/manage.py", folder=tmp_path, workers=1, interface=interface)
    assert server.get("/").text == kind


def test_a_folder_without_a_name_is_a_django_project(tmp_path: Path) -> None:
    write(tmp_path, DJANGO)
    ended = check(tmp_path)
    assert (ended.returncode, ended.stdout) == (
        0,
        "manage.py loads: written for WSGI, it decides its paths itself\n",
    ), ended.stderr


# It declares routes, too: with `--interface` it is either.
PERL = """use Parkade;
get '/' => sub { 'native' };
sub { [200, ['Content-Type', 'text/plain'], ['psgi']] };
"""


MIXED = """
[[mount]]
prefix = "/perl"
target = "./script"
directory = "perl"
[[mount]]
prefix = "/"
target = "a:app"
"""


@pytest.mark.parametrize(
    ("name", "interface", "text"),
    [
        ("app.psgi", "psgi", "psgi"),
        ("script", "psgi", "psgi"),
        ("app.pl", "native", "native"),
        ("app.pl", None, "psgi"),
    ],
)
def test_a_perl_application_is_what_the_operator_says(
    serve: Serve, tmp_path: Path, name: str, interface: str | None, text: str
) -> None:
    write(tmp_path, {name: PERL})
    server = serve(f"./{name}", folder=tmp_path, workers=1, interface=interface)
    assert server.get("/").text == text
    assert server.status()["interface"] == text


@pytest.mark.parametrize(
    ("perl", "interface", "says"),
    [
        ("sub { [200, [], []] };", "native", "--interface says native, but app.psgi declares no routes of Parkade"),
        ("use Parkade; get '/' => sub { 1 }; 1;", "psgi", 'says psgi, but app.psgi returns "1", which is not'),
        ("sub { [200, [], []] };", "wsgi", "--interface says wsgi, but app.psgi is a Perl application"),
        ("sub { [200, [], []] };", "asgi", "--interface says asgi, but app.psgi is a Perl application"),
    ],
)
def test_a_perl_application_that_is_something_else_is_refused(
    tmp_path: Path, perl: str, interface: str, says: str
) -> None:
    write(tmp_path, {"app.psgi": perl})
    ended = check(tmp_path, "app.psgi", "--interface", interface)
    assert ended.returncode == 1, ended.stdout
    assert says in ended.stderr


def test_perl_has_no_factories(tmp_path: Path) -> None:
    write(tmp_path, {"app.psgi": PERL})
    ended = check(tmp_path, "app.psgi", "--factory")
    assert ended.returncode == 1, ended.stdout
    assert "--factory is for Python: app.psgi gives the application itself, so leave --factory out" in ended.stderr


THREADS = "--threads changes nothing for {}: a worker in Perl runs one request at a time"
CANCELLING = "--on-disconnect changes nothing for {}: code in Perl is not cancelled; parkade.on_cancel tells it"


@pytest.mark.parametrize(
    ("files", "words", "says"),
    [
        ({"app.psgi": PERL}, ["app.psgi", "--threads", "4"], [THREADS.format("app.psgi")]),
        ({"app.psgi": PERL}, ["app.psgi", "--on-disconnect", "cancel"], [CANCELLING.format("app.psgi")]),
        ({"app.psgi": PERL}, ["app.psgi", "--threads", "1", "--on-disconnect", "notify"], []),
        ({"script": f"#!/usr/bin/perl\n{PERL}"}, ["./script", "--threads", "4"], [THREADS.format("./script")]),
        ({"a.py": WSGI}, ["a:app", "--threads", "4", "--on-disconnect", "cancel"], []),
        (
            {"perl/script": f"#!/usr/bin/perl\n{PERL}", "a.py": WSGI, "parkade.toml": MIXED},
            ["--threads", "4"],
            [THREADS.format("./script")],
        ),
    ],
)
def test_settings_that_change_nothing_for_perl_are_told(
    tmp_path: Path, files: dict[str, str], words: list[str], says: list[str]
) -> None:
    write(tmp_path, files)
    ended = check(tmp_path, *words)
    assert ended.returncode == 0, ended.stderr
    told = [line for line in ended.stderr.splitlines() if "changes nothing" in line]
    assert len(told) == len(says)
    assert all("WARN" in line and text in line for line, text in zip(told, says, strict=True)), ended.stderr


@pytest.mark.parametrize(
    ("files", "words", "says"),
    [
        ({"a.py": FACTORY}, ["a:create_app"], "if it returns the application, add --factory"),
        ({"a.py": NATIVE}, ["a:app", "--factory"], "a:app is an App, not a function: leave --factory out"),
        ({"a.py": "def f(x): ..."}, ["a:f", "--factory"], "a:f cannot be called without arguments"),
        ({"a.py": "async def f(): ..."}, ["a:f", "--factory"], "a:f is an async def"),
        ({"a.py": "def f(): ..."}, ["a:f", "--factory"], "what a:f() returns is a NoneType, neither a parkade.App nor"),
        ({"a.py": "def f():\n    return 1 / 0"}, ["a:f", "--factory"], "ZeroDivisionError"),
        (
            {"a.py": WSGI},
            ["a:app", "--interface", "native"],
            "--interface says native, but a:app is a function, not a parkade.App",
        ),
        ({"a.py": NATIVE}, ["a:app", "--interface", "wsgi"], "a:app is an App, not an application of WSGI"),
        ({"a.py": WSGI}, ["a:app", "--interface", "asgi"], "a:app cannot be called with (scope, receive, send)"),
        ({"a.py": ASGI}, ["a:app", "--interface", "wsgi"], "a:app cannot be called with (environ, start_response)"),
        ({"a.py": "app = 3"}, ["a:app", "--interface", "asgi"], "a:app is an int, not an application of ASGI"),
        ({"a.py": NATIVE}, ["a.py", "--interface", "psgi"], "--interface says psgi, but a.py is a Python application"),
        ({"manage.py": "x = 1"}, ["manage.py"], "set DJANGO_SETTINGS_MODULE"),
        ({"manage.py": "x ="}, ["manage.py"], "SyntaxError"),
        (DJANGO | {"mysite/settings.py": "1 / 0"}, ["manage.py"], "ZeroDivisionError"),
        (DJANGO | {"mysite/wsgi.py": ""}, ["manage.py"], "mysite.wsgi has no 'application'"),
        ({}, ["nowhere/manage.py"], "there is no file"),
        ({"a.py": NATIVE}, [":app"], "the target names no module: write module:name"),
        ({"a.py": NATIVE}, [".a:app"], "'.a' is relative to no package"),
        ({"a.py": NATIVE}, ["a:.app"], "'a:.app' has a dot too many"),
        ({"a.py": "class K: pass\nk = K()"}, ["a:k.x"], "a:k has no 'x'"),
        ({"a.py": "class K: pass\nk = K()\nk.y = K()"}, ["a.py:k.y.z"], "a.py:k.y has no 'z'"),
        ({"a.py": "x = 1"}, ["a:z.x"], "a has no 'z'"),
    ],
)
def test_what_is_not_found_says_what_to_write(
    tmp_path: Path, files: dict[str, str], words: list[str], says: str
) -> None:
    write(tmp_path, files)
    ended = check(tmp_path, *words)
    assert ended.returncode == 1, ended.stdout
    assert says in ended.stderr
    assert "parkade/_" not in ended.stderr, "the traceback shows files of Parkade"
