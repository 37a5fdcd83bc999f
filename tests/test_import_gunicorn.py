"""`python -m parkade import gunicorn.conf.py`: what Python makes of the file, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

from .harness.importing import imported, project_folder, settings


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_folder(tmp_path)


GUNICORN = '''\
"""As NetBox, and many projects, have it."""
import multiprocessing
import os

port = os.environ.get("PORT", "8001")
bind = f"127.0.0.1:{port}"
workers = multiprocessing.cpu_count() * 2 + 1
threads = 3
timeout = 2 * 60
max_requests = 5000
max_requests_jitter = 500
graceful_timeout: int = int(os.getenv("GRACEFUL", "40"))
forwarded_allow_ips = "10.0.0.1, 10.0.0.2"
accesslog = "-"
loglevel = "warning"
preload_app = True
worker_class = "gevent"
keepalive = compute()
secure = {"X": "y"}
if os.path.exists("/dev/shm"):
    worker_tmp_dir = "/dev/shm"
    limit_request_fields = 50

def post_fork(server, worker):
    server.log.info("worker spawned")

def helper():
    return 1
'''


def test_a_settings_file_of_gunicorn(project: Path) -> None:
    printed = imported(project, "gunicorn.conf.py", GUNICORN)
    assert settings(project, printed) == {
        "bind": ["127.0.0.1:8001"],
        "workers": "auto",
        "threads": 3,
        "deadline": "120s",
        "max-requests": 5000,
        "recycle-jitter": "10%",
        "grace": "40s",
        "trust": ["10.0.0.1", "10.0.0.2"],
        "access-log": "combined",
        "log-level": "warn",
    }
    assert '# target = "mysite.wsgi:application"\n' in printed
    assert "# line 18: keepalive = compute()\n#     not a constant" in printed
    assert "# line 22: limit_request_fields = 50\n#     it depends on the code above" in printed
    assert "# line 12: graceful_timeout" in printed
    assert "the default of the variable GRACEFUL was taken" in printed
    for left in ("preload_app = True", 'worker_class = "gevent"', "def post_fork(server, worker):"):
        assert f": {left}" in printed
    assert "helper" not in printed


def test_the_application_of_gunicorn_may_be_a_factory(project: Path) -> None:
    printed = imported(
        project, "gunicorn.conf.py", 'wsgi_app = "app:create_app()"\nbind = ["[::1]:80", "unix:/run/a"]\n'
    )
    found = settings(project, printed)
    assert found == {
        "target": "app:create_app",
        "factory": True,
        "bind": ["[::1]:80", "unix:/run/a"],
        "trust": ["127.0.0.1", "::1", "unix"],
        "workers": 1,
    }


def test_what_gunicorn_s_file_unpacks_or_takes_from_elsewhere_is_carried_over_or_named(project: Path) -> None:
    lines = [
        "from base import *",
        "max_requests, max_requests_jitter = 1000, 50",
        "timeout, keepalive = load()",
        "for name, value in os.environ.items():",
        "    locals()[name.lower()] = value",
    ]
    printed = imported(project, "gunicorn.conf.py", "\n".join(lines))
    assert settings(project, printed).items() >= {"max-requests": 1000, "recycle-jitter": "5%"}.items()
    for line in (lines[0], lines[2], lines[4].strip()):
        assert f": {line}\n" in printed


def test_proxies_that_gunicorn_trusts_by_default_are_named(project: Path) -> None:
    printed = imported(project, "gunicorn.conf.py", 'root_path = "/shop"\n')
    assert settings(project, printed) == {"root-path": "/shop", "trust": ["127.0.0.1", "::1"], "workers": 1}
    assert "here nobody is trusted by default" in printed
    for told in ("", "10.0.0.1", "*"):
        printed = imported(project, "gunicorn.conf.py", f'forwarded_allow_ips = "{told}"\n')
        assert settings(project, printed).get("trust", []) == ([told] if told else [])
    unclear = "if x:\n    forwarded_allow_ips = '10.0.0.1'\n"
    assert "trust" not in settings(project, imported(project, "gunicorn.conf.py", unclear))


@pytest.mark.parametrize(
    ("text", "key", "value", "left"),
    [
        ('bind = [":80"]\nbind = [":81"]\n', "bind", [":81"], []),
        ('bind = ":80"\nbind = ":81,:82"\n', "bind", [":81", ":82"], []),
        ('bind = ["fd://3"]\nbind = [":81"]\n', "bind", [":81"], []),
        ('forwarded_allow_ips = "10.0.0.1"\nforwarded_allow_ips = "10.0.0.2"\n', "trust", ["10.0.0.2"], []),
        ('forwarded_allow_ips = "10.0.0.1"\nforwarded_allow_ips = ""\n', "trust", None, []),
        ("threads = 2\nthreads = load()\n", "threads", None, ["threads = load()"]),
        ("threads = load()\nthreads = 2\n", "threads", 2, []),
        ("if x:\n    threads = 3\nthreads = 2\n", "threads", 2, []),
        ("threads = 2\nif x:\n    threads = 3\n", "threads", 2, ["threads = 3"]),
        ("threads = 2\ndel threads\n", "threads", None, []),
        ("threads = 2\nthreads *= 3\n", "threads", 6, []),
        ("threads = 2\nthreads += load()\n", "threads", None, ["threads = 2", "threads += load()"]),
        ('bind = ":80"\nbind += ",:81"\n', "bind", [":80", ":81"], []),
        ('bind = [":80"]\nbind += [":81"]\n', "bind", [":80", ":81"], []),
        ('bind = (":80",)\nbind += (":81",)\n', "bind", [":80", ":81"], []),
        ('bind = [":80"]\nbind += load()\n', "bind", None, ['bind = [":80"]', "bind += load()"]),
        ('bind = [":80"]\nmine = bind\nmine += [":81"]\n', "bind", [":80", ":81"], []),
        ('bind = (":80",)\nmine = bind\nmine += (":81",)\n', "bind", [":80"], []),
        ('bind = [":80"]\nmine = bind + [":81"]\n', "bind", [":80"], []),
        ('bind = [":80"]\nbind.append(":81")\n', "bind", [":80"], ['bind.append(":81")']),
        ('bind = [":80"]\nmine = bind\nmine.append(":81")\n', "bind", [":80"], ['mine.append(":81")']),
        ('bind = [":80"]\nbind[0] = ":81"\n', "bind", [":80"], ['bind[0] = ":81"']),
        ('bind = [":80"]\nif x:\n    bind.append(":81")\n', "bind", [":80"], ['bind.append(":81")']),
        ("max_requests_jitter = 10\nmax_requests = 100\n", "recycle-jitter", "10%", []),
        ('a = "x"\n' + "a = a + a\n" * 60 + "chdir = a\n", "directory", None, ["chdir = a"]),
        ("a = 9\n" + "a = a * a\n" * 60 + "threads = a\n", "threads", None, ["threads = a"]),
    ],
)
def test_the_last_assignment_counts(project: Path, text: str, key: str, value: object, left: list[str]) -> None:
    """As in Python; what cannot be followed is left with a reason."""
    printed = imported(project, "gunicorn.conf.py", text)
    assert tomllib.loads(printed).get(key) == value, printed
    quoted = [line.partition(": ")[2] for line in printed.splitlines() if line.startswith("# line ")]
    assert quoted == left, printed


def test_a_default_of_the_environment_is_named_wherever_it_ends_up(project: Path) -> None:
    text = 'import os\nhost = os.environ.get("HOST", "[::1]")\nbind = [host + ":80"]\nbind += [":81"]\n'
    printed = imported(project, "gunicorn.conf.py", text)
    assert settings(project, printed)["bind"] == ["[::1]:80", ":81"]
    assert printed.count("the default of the variable HOST was taken") == 1


def test_only_the_usual_header_tells_the_scheme(project: Path) -> None:
    for value in ('{"X-FORWARDED-PROTOCOL": "ssl"}', '{"X-FORWARDED-PROTO": "on"}', "{}", "load()", "{**load()}"):
        printed = imported(project, "gunicorn.conf.py", f"secure_scheme_headers = {value}\n")
        assert f"= {value}\n#     only X-Forwarded-Proto" in printed
    printed = imported(project, "gunicorn.conf.py", 'secure_scheme_headers = {"X-Forwarded-Proto": "https"}\n')
    assert '"https"}\n#     not needed\n' in printed
