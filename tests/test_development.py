"""`parkade dev`: what a browser shows while the code is broken, and which changes load the application anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Serve
from .harness.browser import CHROMIUM, Browser
from .harness.server import Server, run

pytestmark = pytest.mark.also_in_perl

APPS = {
    "python": """
import pathlib
from parkade import App
app = App()
HERE = pathlib.Path(__file__).parent
VERSION = {version!r}
STYLE = (HERE / "page.css").read_text()

@app.get("/version")
def version(): return VERSION

@app.get("/style")
def style(): return STYLE

@app.get("/write/{{name}}")
def write(name: str):
    (HERE / name).write_text("written by the application")
    return "written"

@app.post("/orders/{{number:int}}")
def order(number: int): return {{"number": number}}
""",
    "perl": """
use strict;
use warnings;
use FindBin;
use Parkade;
my $version = {version!r};
open my $file, '<', "$FindBin::Bin/page.css" or die "no style: $!";
my $style = do {{ local $/; <$file> }};
get '/version' => sub {{ $version }};
get '/style' => sub {{ $style }};
post '/orders/{{number:int}}' => sub {{ my ($number) = @_; return {{ number => $number + 0 }} }};
1;
""",
}

NOT_CODE = {
    "python": ("from parkade import App\ndef broken(:\n    '<b>'\n", ["SyntaxError", "def broken(:", "line 2"]),
    "perl": ("use strict;\nmy $page = '<b>' . $broken;\n1;\n", ["Global symbol &quot;$broken&quot;", "line 2"]),
}
"""What does not compile, and what its author is told."""

RAISES = {"python": ("raise RuntimeError('{why}')", "RuntimeError: {why}"), "perl": ("die '{why}';", "{why} at ")}

BROWSER = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"


class Code:
    """The files of an application."""

    def __init__(self, folder: Path, language: str) -> None:
        self.folder = folder
        self.language = language
        self.file = folder / ("shop.py" if language == "python" else "shop.pl")
        (folder / "page.css").write_text("one")
        self.write("one")

    def write(self, version: str) -> None:
        self.file.write_text(APPS[self.language].format(version=version))

    def fail(self, why: str) -> str:
        """Code that does not load; how the log says why."""
        code, told = RAISES[self.language]
        self.file.write_text(code.format(why=why))
        return told.format(why=why)


@pytest.fixture
def code(tmp_path: Path, language: str) -> Code:
    return Code(tmp_path, language)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


def reloads(server: Server) -> int:
    return int(server.status()["counts"]["reloads_done"])


def test_a_load_error_is_a_page_although_the_old_code_serves_on(serve: Serve, code: Code) -> None:
    server = serve(code.file, command="dev")
    broken, told = NOT_CODE[code.language]
    code.file.write_text(broken)
    server.until(lambda status: status["code"]["last_reload"] == "aborted")
    page = server.get("/version", BROWSER)
    assert (page.status, page["content-type"]) == (500, "text/html; charset=utf-8")
    assert [text for text in told if text not in page.text] == []
    assert "location.reload()" in page.text
    assert "<b>" not in page.text
    assert server.get("/nowhere", BROWSER).status == 500, "whatever the path"
    assert server.get("/version").text == "one", "programs get what the old code answers"
    assert server.post("/orders/7", b"", BROWSER).json() == {"number": 7}
    (stamp,) = re.findall(r"!== '(\d+)'", page.text)
    assert server.get("/version", "X-Parkade-Dev: stamp").text == stamp
    code.write("two")
    server.until(lambda status: status["code"]["last_reload"] == "done")
    assert server.get("/version", "X-Parkade-Dev: stamp").text != stamp
    assert server.get("/version", BROWSER).text == "two"


def test_a_first_start_that_fails_is_a_page_too(serve: Serve, code: Code) -> None:
    told = code.fail("no settings")
    server = serve(code.file, command="dev", is_ready=False)
    server.until_logged("no settings")
    page = server.get("/version", BROWSER)
    assert (page.status, f"<p class=what>{told}" in page.text) == (500, True)
    assert server.get("/version").status == 503
    code.write("mended")
    server.ready()
    server.until(lambda status: server.get("/version", BROWSER).text == "mended")


@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no Chromium: apt-get install chromium")
def test_a_browser_shows_the_error_and_the_page_as_soon_as_the_code_is_mended(
    serve: Serve, code: Code, browser: Browser
) -> None:
    told = code.fail("no settings")
    server = serve(code.file, command="dev", is_ready=False)
    server.until_logged("no settings")
    page = browser.open(f"http://127.0.0.1:{server.address[1]}/version")
    page.until(f'document.body.textContent.includes("{told}")')
    told = code.fail("something else")
    page.until(f'document.body.textContent.includes("{told}")')
    code.write("mended")
    page.until('document.body.textContent === "mended"')
    browser.close_all()


def test_a_path_without_a_route_lists_the_routes_for_developers_alone(serve: Serve, code: Code) -> None:
    server = serve(code.file, command="dev")
    page = server.get("/nowhere", BROWSER)
    assert (page.status, page["content-type"]) == (404, "text/html; charset=utf-8")
    for told in ("GET /nowhere", "/version", "/orders/{number:int}", "POST"):
        assert told in page.text
    assert server.get("/nowhere")["content-type"] != "text/html; charset=utf-8"
    production = serve(code.file)
    assert "/orders" not in production.get("/nowhere", BROWSER).text
    assert production.get("/version", "X-Parkade-Dev: stamp").text == "one"


@pytest.mark.python_only("files")
def test_a_path_without_a_file_lists_the_folder_too(serve: Serve, code: Code) -> None:
    (code.folder / "static").mkdir()
    (code.folder / "static" / "page.css").write_text("p {}")
    with code.file.open("a") as file:
        file.write("\napp.files('/static', 'static')\n")
    server = serve(code.file, command="dev")
    assert server.get("/static/page.css", BROWSER).text == "p {}"
    page = server.get("/nowhere", BROWSER)
    assert (page.status, "/static/{path:path}" in page.text) == (404, True)
    missing = server.get("/static/missing.css", BROWSER)
    assert (missing.status, missing["content-type"]) == (404, "text/html; charset=utf-8")
    (code.folder / "static" / "page.css").write_text("p {color: red}")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)
    assert server.get("/static/page.css", BROWSER).text == "p {color: red}"


WATCHED = ["page.css", "page.js", "settings.yaml", ".env", "templates/page.html"]
WATCHED += ["t/basic.t", "views/page.mt", "views/page.html.ep", "views/page.tt", "views/page.tx", "shop.conf"]


@pytest.mark.parametrize("name", WATCHED)
def test_files_that_pages_are_made_of_are_watched(serve: Serve, code: Code, name: str) -> None:
    server = serve(code.file, command="dev")
    (code.folder / name).parent.mkdir(exist_ok=True)
    (code.folder / name).write_text("two")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)
    if name == "page.css":
        assert server.get("/style").text == "two"


@pytest.mark.python_only("workers in Perl do not tell which data the application writes itself")
@pytest.mark.parametrize("name", ["data.json", "notes.txt"])
def test_data_next_to_the_code_is_watched(serve: Serve, code: Code, name: str) -> None:
    server = serve(code.file, command="dev")
    (code.folder / name).write_text("two")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)


@pytest.mark.python_only("Perl has no hook for the files that code opens")
@pytest.mark.parametrize("name", ["data.txt", "made.py", "page.css"])
def test_what_the_application_writes_itself_does_not_load_it_anew(serve: Serve, code: Code, name: str) -> None:
    server = serve(code.file, command="dev")
    for _ in range(3):
        assert server.get(f"/write/{name}").text == "written"
    (code.folder / "other.css").write_text("written by the developer")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)
    assert reloads(server) == 1, "the change after it was noticed, and only that"


def test_what_is_watched_can_be_set(serve: Serve, code: Code, tmp_path: Path) -> None:
    elsewhere = tmp_path / "library"
    elsewhere.mkdir()
    application = tmp_path / "application"
    application.mkdir()
    inside = Code(application, code.language)
    server = serve(inside.file, command="dev", watch=["*.graphql", elsewhere], ignore=["*.txt", "cache"])
    (application / "notes.txt").write_text("ignored")
    (application / "cache").mkdir()
    (application / "cache" / "x.py").write_text("ignored")
    (application / "shop.graphql").write_text("type Query { x: Int }")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)
    (elsewhere / "common.py").write_text("x = 1")
    server.until(lambda status: status["counts"]["reloads_done"] == 2)
    assert reloads(server) == 2


def test_what_a_link_leads_to_is_watched_where_it_is_to_its_depth(serve: Serve, code: Code, tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "application").mkdir()
    inside = Code(tmp_path / "application", code.language)
    (inside.folder / "linked").symlink_to(real)
    (real / "page.css").write_text("one")
    (inside.folder / "one.css").symlink_to(real / "page.css")
    server = serve(inside.file, command="dev", watch=[real])
    for count, file in enumerate([real / "page.css", real / "deep" / "deeper" / "new.py"], 1):
        file.write_text("x = 1")
        server.until(lambda status, count=count: status["counts"]["reloads_done"] == count)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["local/lib/perl5/Common.pm", "blib/lib/Shop.pm", "node_modules/x.js", "shop.log"])
def test_what_is_installed_or_built_is_left_out(serve: Serve, code: Code, name: str) -> None:
    file = code.folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    server = serve(code.file, command="dev")
    file.write_text("1;")
    (code.folder / "other.css").write_text("written by the developer")
    server.until(lambda status: status["counts"]["reloads_done"] == 1)
    assert reloads(server) == 1, "the change after it was noticed, and only that"


ELSEWHERE = {
    "python": (
        "bin/shop_app.py",
        "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))\n"
        "import shop_words\nfrom parkade import App\napp = App()\napp.get('/', lambda: shop_words.word())\n",
        "lib/shop_words.py",
        "def word(): return '{word}'\n",
        "def word(: return\n",
    ),
    "perl": (
        "bin/app.psgi",
        'use FindBin; use lib "$FindBin::Bin/../lib";\nuse Shop::Words;\nsub { [200, [], [Shop::Words::word()]] };\n',
        "lib/Shop/Words.pm",
        "package Shop::Words; sub word {{ '{word}' }} 1;\n",
        "package Shop::Words; sub word { (; 1;\n",
    ),
}
"""An application whose code is in another folder: its file and its code; the same of the module; what does not load."""


@pytest.mark.parametrize("loads", [True, False], ids=["", "after a first start that failed"])
def test_code_in_another_folder_is_watched(serve: Serve, language: str, tmp_path: Path, loads: bool) -> None:
    app, app_code, module, module_code, broken = ELSEWHERE[language]
    for name, text in ((app, app_code), (module, module_code.format(word="one") if loads else broken)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    server = serve(tmp_path / app, command="dev", is_ready=loads)
    if loads:
        assert server.get("/").text == "one"
    else:
        server.until_logged("the application does not load")
    (tmp_path / module).write_text(module_code.format(word="two"))
    server.until(lambda _: server.get("/").text == "two")


FAILING = {
    "python": (
        "from parkade import App\napp = App()\n"
        "def price(lot): raise LookupError(f'no such lot: {lot}')\n"
        "def total(lot): return price(lot)\n"
        "@app.get('/lots/{lot}')\ndef lot(lot: str): return total(lot)\n",
        ["in price", "in total"],
    ),
    "perl": (
        "use Parkade;\n"
        'sub price { my ($lot) = @_; die "no such lot: $lot" }\n'
        "sub total { my ($lot) = @_; return price($lot) }\n"
        "get '/lots/{lot}' => sub { my ($lot) = @_; eval { price('caught') }; return total($lot) };\n1;\n",
        ["line 2, in main::price", "line 3, in main::total", "line 4, in main::__ANON__"],
    ),
    "psgi": (
        "use strict;\n"
        'sub price { my ($lot) = @_; die "no such lot: $lot" }\n'
        "sub total { my ($lot) = @_; return price($lot) }\n"
        "sub { my ($env) = @_; eval { price('caught') }; return total($env->{PATH_INFO} =~ s{.*/}{}r) };\n",
        ["line 2, in main::price", "line 3, in main::total", "line 4, in main::__ANON__"],
    ),
}
"""An application that fails, and what the stack of its own code says."""


@pytest.fixture(params=["", "psgi"])
def failing(request: pytest.FixtureRequest, language: str, tmp_path: Path) -> tuple[Path, list[str]]:
    if request.param and language == "python":
        pytest.skip("PSGI is Perl's")
    code, told = FAILING[request.param or language]
    file = tmp_path / {"python": "shop.py", "perl": "shop.pl"}[language]
    file = file.with_suffix(".psgi") if request.param else file
    file.write_text(code)
    return file, told


def test_an_exception_is_a_page_with_the_stack_of_the_application(
    serve: Serve, failing: tuple[Path, list[str]]
) -> None:
    file, told = failing
    server = serve(file, command="dev")
    page = server.get("/lots/7%3Cb%3E", BROWSER)
    assert (page.status, page["content-type"]) == (500, "text/html; charset=utf-8")
    assert "no such lot: 7&lt;b&gt;" in page.text
    assert "<b>7" not in page.text
    assert [text for text in told if text not in page.text] == []
    assert file.name in page.text
    for ours in ("Parkade/", "workers/p", "-e line"):
        assert ours not in page.text
    problem = server.get("/lots/8").json()
    assert "no such lot: 8" in problem["detail"]
    assert [text for text in told if text not in problem["traceback"]] == []


def test_clients_are_told_nothing_of_an_exception_and_the_log_has_the_stack(
    serve: Serve, failing: tuple[Path, list[str]]
) -> None:
    file, told = failing
    server = serve(file)
    for fields in ((), (BROWSER,)):
        page = server.get("/lots/7", *fields)
        assert page.status == 500
        assert not [text for text in ("no such lot", "price", file.name) if text in page.text]
    server.until_logged("no such lot: 7")
    for text in told:
        server.until_logged(re.escape(text))
    log = server.log()
    assert "no such lot: caught" not in log
    assert not re.search(r"^ *\|.*(Parkade/\w+\.pm|-e line|parkade/_)", log, re.MULTILINE)


def test_the_help_says_what_is_watched() -> None:
    told = run("dev", "--help").stdout
    assert "--watch" in told
    assert "--ignore" in told
