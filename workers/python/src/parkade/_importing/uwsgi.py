"""The settings of uWSGI: an `.ini` in its own dialect. Keys repeat, keys without a value are switches, and `%(name)`
stands for the value of an earlier key. Names have dashes; uWSGI ignores an option that is written with underscores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .draft import HEAD_BYTES_MAX, NOT_NEEDED, UNKNOWN, Draft, Unreadable
from .uwsgi_reasons import WHY, reason

PLACEHOLDERS_MAX = 100  # substitutions in one line, so that keys that name each other end. Then: left
EXPANDED_CHARACTERS_MAX = 4_096  # of a value. Then: left

PLACEHOLDER = {"set-placeholder", "set-ph", "set"}
CONDITIONS = {"ifenv", "ifexists", "ifdir", "ifplugin", "else", "for", "for-glob", "for-times", "for-readline"}
ENDS = {"end", "endif", "end-if", "endfor", "end-for"}


@dataclass(frozen=True, slots=True)
class Option:
    number: int
    name: str
    value: str
    written: str

    @property
    def line(self) -> str:
        return f"line {self.number}: {self.written}"

    @property
    def placeholder(self) -> str:
        """What `%(…)` calls it."""
        return self.value.partition("=")[0].strip() if self.name in PLACEHOLDER else self.name


def read(text: str, draft: Draft) -> None:
    used = set(re.findall(r"%\(([^)]+)\)", text))
    known: dict[str, str] = {}
    found: dict[str, Option] = {}
    names: set[str] = set()
    sockets, speaks_http = False, False
    for option, condition in conditional(lines(text, draft)):
        names.add(option.name)
        if condition is not None:
            why = None if option.name in TARGET or option.name in CARRIED else reason(option.name)
            draft.leave(option.line, why or f"it depends on line {condition.number}: write down what is")
            known.pop(option.placeholder, None)
            continue
        value = expanded(option.value, known)
        if value is None:
            computed = "uwsgi computes it when it starts: write down the result"
            draft.leave(option.line, reason(option.name) or computed)
            continue
        known[option.name] = value
        option = Option(option.number, option.name, value, option.written)
        if option.name in PLACEHOLDER:
            name, _, of_it = value.partition("=")
            known[name.strip()] = of_it.strip()
        elif option.name in TARGET:
            found[option.name] = option
        elif option.name in CARRIED:
            CARRIED[option.name](draft, option)
            sockets |= option.name in {"socket", "uwsgi-socket"}
        elif option.name in {"protocol", "socket-protocol"}:
            speaks_http = value == "http"
            draft.leave(option.line, f"{NOT_NEEDED}: all addresses speak HTTP")
        elif option.name in WHY:
            draft.leave(option.line, WHY[option.name])
        elif option.name not in used:
            draft.leave(option.line, reason(option.name) or _misspelt(option.name) or UNKNOWN)
    if sockets and not speaks_http:
        draft.leave("the protocol uwsgi", "it is HTTP now: in nginx, proxy_pass instead of uwsgi_pass")
    _target(draft, found)
    draft.one_worker("uWSGI", is_said=not names.isdisjoint({"processes", "workers"}))


def conditional(options: Iterable[Option]) -> Iterator[tuple[Option, Option | None]]:
    """Each option with the `if-…`, `else` or `for` that it depends on. These do not nest: a second one takes the place
    of the first, and any end ends it. Without an end, the rest of the file depends on it.
    """
    condition: Option | None = None
    for option in options:
        if option.name in CONDITIONS or option.name.startswith("if-"):
            condition = option
            yield option, None
        elif option.name in ENDS:
            condition = None
        else:
            yield option, condition


def _misspelt(name: str) -> str | None:
    dashed = name.replace("_", "-")
    if dashed != name and (dashed in CARRIED or dashed in TARGET or reason(dashed)):
        return f"uwsgi ignores it: the option is called {dashed}"
    return None


def lines(text: str, draft: Draft) -> Iterator[Option]:
    section, sections = "", 0
    for number, written in enumerate(text.split("\n"), 1):
        line = written.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise Unreadable(f"line {number}: a section has to end with ]")
            section = line[1:-1].strip()
            sections += section == "uwsgi"
            if section != "uwsgi":
                draft.leave(f"line {number}: {line}", "only the section [uwsgi] is read")
            continue
        if not section:
            raise Unreadable(f"line {number}: a setting before the section [uwsgi]")
        if section != "uwsgi":
            continue
        name, has_value, value = line.partition("=")
        name = name.strip()
        if not name:
            raise Unreadable(f"line {number}: there is no name before =")
        yield Option(number, name, value.strip() if has_value else "true", line)
    if not sections:
        raise Unreadable("line 1: there is no section [uwsgi]")


def expanded(value: str, known: dict[str, str]) -> str | None:
    """`%(name)` replaced; none if something is left that only a running uwsgi knows."""
    for _ in range(PLACEHOLDERS_MAX):
        match = re.search(r"%\(([^)]+)\)", value)
        if match is None:
            break
        if match[1] not in known or len(value) > EXPANDED_CHARACTERS_MAX:
            return None
        value = value[: match.start()] + known[match[1]] + value[match.end() :]
    if value == "%k":
        return value
    return None if re.search(r"%[a-zA-Z(]|\$\(|@\(", value) else value


def _workers(draft: Draft, option: Option) -> None:
    if option.value == "%k":
        draft.carry("workers", "auto")
    else:
        draft.workers(option.line, option.value)


def _socket_mode(draft: Draft, option: Option) -> None:
    mode = "666" if option.value in {"true", "1"} else option.value
    if re.fullmatch(r"0?[0-7]{3}", mode):
        draft.carry("socket-mode", mode[-3:])
    else:
        draft.leave(option.line, "`socket-mode` takes three octal digits, such as 660")


def _socket_group(draft: Draft, option: Option) -> None:
    _, _, group = option.value.partition(":")
    if group:
        draft.carry("socket-group", group, "the owner is the user of the server")
    else:
        draft.leave(option.line, "the owner is the user of the server; `socket-group` is for the group")


def _admin(draft: Draft, option: Option) -> None:
    host, _, port = option.value.rpartition(":")
    if port.isdigit() and host in {"", "127.0.0.1", "0.0.0.0"}:
        draft.carry("admin", [port], "a page, JSON and metrics; only for this machine")
    elif "/" in option.value:
        draft.carry("admin", [f"unix:{option.value}"], "a page, JSON and metrics")
    else:
        draft.leave(option.line, "`admin` takes a port, host:port or unix:FILE")


def _jitter(draft: Draft, option: Option) -> None:
    draft.jitter(option.line, option.value)


def _python(draft: Draft, option: Option) -> None:
    draft.carry("python", f"{option.value.rstrip('/')}/bin/python", "it must have the package parkade")


def _directory(draft: Draft, option: Option) -> None:
    draft.carry("directory", option.value)


def _path(draft: Draft, option: Option) -> None:
    chosen = draft.value("directory")
    if chosen is None:
        draft.carry("directory", option.value)
    elif chosen != option.value:
        draft.leave(
            option.line, "set PYTHONPATH in the environment of the command, if the folder of chdir is not enough"
        )


CARRIED: dict[str, Callable[[Draft, Option], None]] = {
    **dict.fromkeys(
        ["socket", "uwsgi-socket", "http", "http-socket", "http11-socket", "httprouter"],
        lambda d, o: d.bind(o.line, o.value),
    ),
    **dict.fromkeys(["processes", "workers"], _workers),
    "threads": lambda d, o: d.threads(o.line, o.value),
    "chdir": _directory,
    **dict.fromkeys(["pythonpath", "python-path", "pp"], _path),
    **dict.fromkeys(["home", "virtualenv", "venv", "pyhome"], _python),
    **dict.fromkeys(["chmod-socket", "chmod"], _socket_mode),
    "chown-socket": _socket_group,
    "harakiri": lambda d, o: d.seconds("deadline", o.line, o.value, zero="0"),
    "max-requests": lambda d, o: d.whole("max-requests", o.line, o.value),
    "max-requests-delta": _jitter,
    "max-worker-lifetime": lambda d, o: d.seconds("max-age", o.line, o.value, zero="0"),
    **dict.fromkeys(
        ["reload-on-rss", "evil-reload-on-rss"], lambda d, o: d.size("max-memory", o.line, o.value, unit="MiB")
    ),
    "buffer-size": lambda d, o: d.size("header-limit", o.line, o.value, most=HEAD_BYTES_MAX),
    "limit-post": lambda d, o: d.size("body-limit", o.line, o.value),
    **dict.fromkeys(["worker-reload-mercy", "reload-mercy"], lambda d, o: d.seconds("grace", o.line, o.value)),
    **dict.fromkeys(["stats", "stats-server"], _admin),
}

MODULE = ("module", "wsgi")
FILE = ("wsgi-file", "file")
PERL = ("psgi",)
TARGET = {*MODULE, *FILE, *PERL, "callable"}


def _target(draft: Draft, found: dict[str, Option]) -> None:
    callable_ = found["callable"].value if "callable" in found else "application"
    chosen = next((found[name] for name in (*MODULE, *FILE, *PERL) if name in found), None)
    if chosen is None:
        if "callable" in found:
            draft.leave(found["callable"].line, "it belongs to `target`, as in module:callable")
        return
    for other in found.values():
        if other is not chosen and other.name != "callable":
            draft.leave(other.line, f"line {chosen.number} says what is served")
    if chosen.name in PERL:
        draft.carry("target", chosen.value)
        return
    name, _, attribute = chosen.value.partition(":")
    note = "" if "callable" in found or attribute else "uwsgi takes the name `application`"
    draft.target(chosen.line, f"{name}:{attribute or callable_}", note)
