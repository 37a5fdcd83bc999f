"""`python -m parkade import`: settings files of other servers become a parkade.toml that is accepted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tomllib

from .harness.importing import imported, project_folder, settings, translated


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_folder(tmp_path)


DJANGO_UWSGI = """\
# mysite_uwsgi.ini, as in the documentation of Django and uWSGI
[uwsgi]
base            = {project}
chdir           = %(base)
module          = mysite.wsgi
home            = {home}
master          = true
processes       = 10
socket          = %(base)/mysite.sock
chmod-socket    = 664
chown-socket    = www-data:www-data
vacuum          = true
harakiri        = 20
max-requests    = 5000
max-requests-delta = 500
env             = DJANGO_SETTINGS_MODULE=mysite.settings
"""


def test_a_django_project_of_uwsgi(project: Path) -> None:
    printed = imported(project, "uwsgi.ini", DJANGO_UWSGI)
    assert settings(project, printed) == {
        "directory": str(project),
        "workers": 10,
        "bind": [f"unix:{project}/mysite.sock"],
        "socket-mode": "664",
        "socket-group": "www-data",
        "deadline": "20s",
        "max-requests": 5000,
        "recycle-jitter": "10%",
        "python": f"{sys.prefix}/bin/python",
        "target": "mysite.wsgi:application",
    }
    assert "# line 7: master          = true\n" not in printed, "spaces are shown once"
    assert "# line 7: master = true\n#     not needed\n" in printed
    assert "# line 16: env = DJANGO_SETTINGS_MODULE=mysite.settings\n#     set it in the environment" in printed
    assert "proxy_pass instead of uwsgi_pass" in printed


FLASK_UWSGI = """\
[uwsgi]
http = :9090
wsgi-file = app.py
callable = create_app()
threads = 2
workers = %k
; sizes
buffer-size = 65535
reload-on-rss = 250
limit-post = 10485760
worker-reload-mercy = 60
stats = 127.0.0.1:9191
py-autoreload = 1
no-such-option = 7
logto = /var/log/uwsgi/%n.log
if-env = PRODUCTION
"""


def test_a_flask_application_of_uwsgi(project: Path) -> None:
    printed = imported(project, "uwsgi.ini", FLASK_UWSGI)
    assert settings(project, printed) == {
        "bind": [":9090"],
        "workers": "auto",
        "threads": 2,
        "header-limit": "65535",
        "max-memory": "250MiB",
        "body-limit": "10485760",
        "grace": "60s",
        "admin": ["9191"],
        "target": "app.py:create_app",
        "factory": True,
    }
    for left in ("py-autoreload = 1", "no-such-option = 7", "logto = /var/log/uwsgi/%n.log", "if-env"):
        assert f": {left}" in printed


PLACEHOLDERS_UWSGI = """\
[uwsgi]
project_name = shop
base = {project}
chdir = %(base)
module = mysite.wsgi
chdir2 = /tmp
uid = www-data
socket = %(base)/%(project_name).sock
protocol = http
chown-socket = %(uid):%(uid)
stats = /run/%(project_name)/stats.sock
stats-http = true
add-header = Connection: Keep-Alive
log-x-forwarded-for = true
log-format = %(addr) - %(user)
cheaper-algo = busyness
emperor-tyrant = true
route-run = header:Vary: Origin
hook-pre-app = exec:./migrate
php-index = index.php
import = mysite.tasks
set-placeholder = timeout=15
harakiri = %(timeout)
"""


def test_options_are_those_of_uwsgi(project: Path) -> None:
    """Names with underscores are placeholders, or nothing; families are known by their prefix."""
    printed = imported(project, "uwsgi.ini", PLACEHOLDERS_UWSGI)
    assert settings(project, printed) == {
        "directory": str(project),
        "bind": [f"unix:{project}/shop.sock"],
        "socket-group": "www-data",
        "admin": ["unix:/run/shop/stats.sock"],
        "deadline": "15s",
        "target": "mysite.wsgi:application",
        "workers": 1,
    }
    assert "proxy_pass" not in printed, "this socket has spoken HTTP"
    for line, why in (
        ("chdir2 = /tmp", "after loading"),
        ("uid = www-data", "systemd"),
        ("stats-http = true", "/metrics"),
        ("add-header = Connection: Keep-Alive", "a middleware"),
        ("log-x-forwarded-for = true", "`trust`"),
        ("log-format = %(addr) - %(user)", "standard error"),
        ("cheaper-algo = busyness", "fixed"),
        ("emperor-tyrant = true", "systemd"),
        ("route-run = header:Vary: Origin", "a proxy in front"),
        ("hook-pre-app = exec:./migrate", "ExecStartPre="),
        ("php-index = index.php", "only Python and Perl"),
        ("import = mysite.tasks", "import it in the module"),
    ):
        [after] = [part for part in printed.split("# line ")[1:] if part.partition(": ")[2].startswith(line)]
        assert why in after, after
    assert "project_name = shop\n" not in printed


def test_an_option_of_uwsgi_with_underscores_is_not_carried_over(project: Path) -> None:
    printed = imported(project, "uwsgi.ini", "[uwsgi]\nmodule = mysite.wsgi\nmax_requests = 7\n")
    assert settings(project, printed) == {"target": "mysite.wsgi:application", "workers": 1}
    assert "max_requests = 7\n#     uwsgi ignores it: the option is called max-requests" in printed


CONDITIONAL_UWSGI = """\
[uwsgi]
module = mysite.wsgi
processes = 2
if-exists = %d/production
  processes = 8
  http = :80
  logto = /var/log/uwsgi.log
  base = /srv
else =
  callable = test_app
endif =
for = 1 2 3
  http = :808%(_)
endfor =
chdir = %(base)
http = :9090
if-env = TLS
  if-not-env = PROXY
    harakiri = 20
  endif =
  max-requests = 7
ifdir = /srv
set-ph = root=/srv
chdir = %(root)
"""


def test_what_depends_on_something_in_uwsgi_is_left(project: Path) -> None:
    """Blocks do not nest in uWSGI: the first end ends all. One without an end goes on to the end of the file."""
    printed = imported(project, "uwsgi.ini", CONDITIONAL_UWSGI)
    assert settings(project, printed) == {
        "target": "mysite.wsgi:application",
        "workers": 2,
        "bind": [":9090"],
        "max-requests": 7,
    }
    for number, line, on in (
        (5, "processes = 8", 4),
        (6, "http = :80", 4),
        (8, "base = /srv", 4),
        (10, "callable = test_app", 9),
        (13, "http = :808%(_)", 12),
        (19, "harakiri = 20", 18),
        (23, "set-ph = root=/srv", 22),
        (24, "chdir = %(root)", 22),
    ):
        assert f"# line {number}: {line}\n#     it depends on line {on}: write down what is\n" in printed
    assert "# line 4: if-exists = %d/production\n" in printed
    assert "# line 7: logto = /var/log/uwsgi.log\n#     the log goes to standard error" in printed
    assert "# line 15: chdir = %(base)\n#     uwsgi computes it" in printed


@pytest.mark.parametrize(
    ("name", "text", "workers", "told"),
    [
        ("uwsgi.ini", "[uwsgi]\nmodule = mysite.wsgi\n", 1, "the default of uWSGI."),
        ("uwsgi.ini", "[uwsgi]\nmodule = mysite.wsgi\nthreads = 4\ncheaper = 2\n", 1, "the default of uWSGI."),
        ("uwsgi.ini", "[uwsgi]\nmodule = mysite.wsgi\nif-env = X\nworkers = 8\n", 1, "not clear, see below."),
        ("uwsgi.ini", "[uwsgi]\nmodule = mysite.wsgi\nworkers = 4\ncheaper = 2\n", 4, ""),
        ("unit.json", '{"applications": {"a": {"type": "python", "module": "app"}}}', 1, "the default of Unit."),
        (
            "unit.json",
            '{"applications": {"a": {"type": "python", "module": "app", "processes": {"spare": 0}}}}',
            1,
            "max was taken",
        ),
        ("gunicorn.conf.py", "threads = 2\n", 1, "the default of Gunicorn, unless WEB_CONCURRENCY or its command line"),
        ("gunicorn.conf.py", "workers = load()\n", 1, "not clear, see below."),
        ("gunicorn.conf.py", "workers = 3\nif x:\n    workers = 4\n", 3, "it depends on the code above"),
    ],
)
def test_one_process_stays_one(project: Path, name: str, text: str, workers: int, told: str) -> None:
    """An application that keeps something in memory would notice one worker for each core."""
    printed = imported(project, name, text)
    assert settings(project, printed)["workers"] == workers
    assert told in printed
    assert ('"auto" is one for each core' in printed) == told.endswith((".", "line"))


def test_an_application_in_perl(project: Path) -> None:
    printed = imported(project, "uwsgi.ini", "[uwsgi]\npsgi = app.psgi\nworkers = 2\nperl-arg = x\n")
    assert tomllib.loads(printed) == {"workers": 2, "target": "app.psgi"}
    assert "perl-arg = x\n#     docs/perl.md" in printed
    text = '{"applications": {"shop": {"type": "perl 5.36", "script": "/www/shop/app.psgi", "processes": 3}}}'
    printed = imported(project, "unit.json", text)
    assert tomllib.loads(printed) == {"workers": 3, "target": "/www/shop/app.psgi"}


UNIT = """\
{
    // as in the documentation of Unit
    "listeners": {
        "*:8080": {
            "pass": "routes",
            "forwarded": {"client_ip": "X-Forwarded-For", "source": ["192.0.2.0/24", "10.0.0.1"]}
        },
        "127.0.0.1:8081": {"pass": "applications/other"}
    },
    "routes": [
        {"match": {"uri": "/static/*"}, "action": {"share": "/www/$uri"}},
        {"action": {"pass": "applications/django"}}
    ],
    "applications": {
        "django": {
            "type": "python 3.11",
            "path": "{project}",
            "home": "{home}",
            "module": "mysite.wsgi",
            "processes": {"max": 4, "spare": 2, "idle_timeout": 20},
            "threads": 8,
            "limits": {"timeout": 10, "requests": 1000},
            "environment": {"DJANGO_SETTINGS_MODULE": "mysite.settings"},
            "user": "www"
        },
        "other": {"type": "php", "root": "/www"}
    },
    /* how long
       and how much */
    "settings": {"http": {"idle_timeout": 180, "body_read_timeout": 60, "max_body_size": 8388608}},
    "access_log": "access.log"
}
"""


def test_a_configuration_of_unit(project: Path) -> None:
    printed = imported(project, "unit.json", UNIT)
    assert settings(project, printed) == {
        "target": "mysite.wsgi:application",
        "directory": str(project),
        "python": f"{sys.prefix}/bin/python",
        "workers": 4,
        "threads": 8,
        "deadline": "10s",
        "max-requests": 1000,
        "bind": [":8080"],
        "trust": ["192.0.2.0/24", "10.0.0.1"],
        "keep-alive": "180s",
        "body-timeout": "60s",
        "body-limit": "8388608",
        "access-log": "combined",
        "access-log-file": "access.log",
    }
    for left in ("environment", "user", "# routes", "applications.other, of type php", "127.0.0.1:8081"):
        assert left in printed


SETTINGS_OF_UNIT = """\
{
    "config": {
        "listeners": {"*:8080": {
            "pass": "applications/shop",
            "backlog": 1024,
            "client_ip": {"header": "X-Forwarded-For", "source": ["unix", "10.0.0.0/8"]}
        }},
        "applications": {"shop": {
            "type": "python", "path": ["{project}", "/srv/lib"],
            "targets": {"web": {"module": "app", "callable": "create_app", "factory": true, "prefix": "/shop"}}
        }},
        "settings": {
            "listen_threads": 4,
            "telemetry": {"endpoint": "http://127.0.0.1:4318/v1/traces", "protocol": "http", "sampling_ratio": 0.5},
            "http": {"discard_unsafe_fields": false, "compression": {}, "large_header_buffers": 8, "unheard_of": 1}
        },
        "access_log": {"path": "/var/log/access.log", "format": "$remote_addr"}
    },
    "status": {}
}
"""


def test_settings_of_unit(project: Path) -> None:
    printed = imported(project, "unit.json", SETTINGS_OF_UNIT)
    found = tomllib.loads(printed)
    assert found == {
        "target": "app:create_app",
        "factory": True,
        "root-path": "/shop",
        "directory": str(project),
        "workers": 1,
        "bind": [":8080"],
        "trust": ["unix", "10.0.0.0/8"],
        "otlp-endpoint": "http://127.0.0.1:4318",
        "trace-ratio": "0.5",
        "access-log": "combined",
        "access-log-file": "/var/log/access.log",
    }
    settings(project, printed.replace("/var/log", str(project)))
    for left in ("backlog", "path = /srv/lib", "listen_threads", "compression", "large_header_buffers", "log.format"):
        assert left in printed
    assert "unheard_of = 1\n#     parkade import does not know it" in printed
    assert "# status" not in printed


def test_nothing_of_the_file_is_run(project: Path) -> None:
    imported(project, "gunicorn.conf.py", f'open("{project}/made", "w")\nbind = open("{project}/made", "w")\n')
    assert not (project / "made").exists()


def test_what_has_no_meaning_here_is_left_with_a_reason(project: Path) -> None:
    text = 'workers = 0\ntimeout = -1\nkeepalive = "a\\nb = 1"\nbind = "fd://3"\nloglevel = "loud"\n'
    text += "limit_request_fields = 32768\n"
    printed = imported(project, "gunicorn.conf.py", text)
    assert settings(project, printed) == {"header-count": 256, "trust": ["127.0.0.1", "::1"], "workers": 1}
    for number in range(1, 6):
        assert f"# line {number}: " in printed


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("uwsgi.ini", "[uwsgi]\n= 7\n", "line 2: there is no name before ="),
        ("uwsgi.ini", "module = x\n", "line 1: a setting before the section [uwsgi]"),
        ("uwsgi.ini", "[uwsgi\nmodule = x\n", "line 1: a section has to end with ]"),
        ("uwsgi.ini", "[other]\nmodule = x\n", "there is no section [uwsgi]"),
        ("unit.json", '{\n "a": 1,,\n}', "line 2: this is not JSON"),
        ("unit.json", "// one\n/* two\n*/ {]", "line 3: this is not JSON"),
        ("unit.json", "[]", "is an object"),
        ("unit.json", "{}", "there are no applications in it"),
        ("unit.json", "[" * 100_000, "line 1: this is nested too deeply"),
        ("gunicorn.conf.py", "bind = 1\nworkers = = 2\n", "line 2: this is not Python"),
        ("gunicorn.conf.py", "bind = " + "(" * 5_000, "line 1: this is not Python"),
        ("gunicorn.yaml", "", "the name has to end in .ini, .json or .py"),
    ],
)
def test_a_file_that_is_something_else_is_refused_with_the_line(project: Path, name: str, text: str, told: str) -> None:
    file = project / name
    file.write_text(text)
    ended = translated(file)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_file_that_cannot_be_read_is_named(project: Path) -> None:
    missing = translated(project / "uwsgi.ini")
    assert (missing.returncode, missing.stderr) == (
        2,
        f"parkade: cannot read {project}/uwsgi.ini: No such file or directory\n",
    )
    (project / "latin.ini").write_bytes(b"[uwsgi]\nmodule = caf\xe9\n")
    assert "line 2: this is not UTF-8" in translated(project / "latin.ini").stderr


def test_keys_that_name_each_other_end(project: Path) -> None:
    text = "[uwsgi]\na = x%(b)%(b)\nb = %(a)%(a)\nmodule = %(b)\na = %(b)%(b)\nb = %(a)%(a)\nchdir = %(b)\n"
    assert "target" not in tomllib.loads(imported(project, "uwsgi.ini", text))
