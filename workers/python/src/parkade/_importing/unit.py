"""The configuration of NGINX Unit: JSON, which may have comments."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from .draft import BY_SYSTEMD, IN_A_PROXY, IN_THE_ENVIRONMENT, NO_THREADS, Draft, Unreadable

Table = dict[str, Any]

COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+|/\*.*?\*/', re.DOTALL)
ONE_SERVER_EACH = "one server for each application: write a parkade.toml of its own"


def read(text: str, draft: Draft) -> None:
    try:
        whole = json.loads(COMMENT.sub(without_comment, text))
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno}: this is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise Unreadable("line 1: this is nested too deeply") from error
    if not isinstance(whole, dict):
        raise Unreadable("line 1: a configuration of Unit is an object, with listeners and applications")
    configuration = whole.get("config", whole)
    applications = table(configuration, "applications")
    if not applications:
        raise Unreadable("line 1: there are no applications in it")
    draft.unclear_target = "there is no application of type python in it"
    python = [name for name, one in applications.items() if isinstance(one, dict) and is_python(one)]
    chosen = python[0] if python else None
    if chosen is not None:
        application(draft, f"applications.{chosen}", applications[chosen])
    for name, one in applications.items():
        if name in python[1:]:
            draft.leave(f"applications.{name}", ONE_SERVER_EACH)
        elif name != chosen:
            kind = str(one.get("type")) if isinstance(one, dict) else "?"
            why = "docs/perl.md shows how Perl is served" if kind.startswith("perl") else "only Python is carried over"
            draft.leave(f"applications.{name}, of type {kind}", why)
    listeners(draft, configuration, chosen, is_only=len(applications) == 1)
    http(draft, table(table(configuration, "settings"), "http"))
    for key, value in configuration.items():
        if key == "access_log":
            access_log(draft, value)
        elif key in {"routes", "upstreams"}:
            draft.leave(key, IN_A_PROXY)
        elif key not in {"applications", "listeners", "settings"}:
            draft.leave(key, "parkade import does not know it")
    for key in whole if configuration is not whole else ():
        if key != "config":
            draft.leave(key, IN_A_PROXY)


def without_comment(match: re.Match[str]) -> str:
    """The lines stay, so that errors have the right number."""
    found = match[0]
    return found if found.startswith('"') else "\n" * found.count("\n") or " "


def table(parent: Table, key: str) -> Table:
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}


def is_python(one: Table) -> bool:
    return str(one.get("type", "")).split(" ")[0] == "python"


def application(draft: Draft, where: str, one: Table) -> None:
    target = one
    targets = table(one, "targets")
    if targets:
        first, *others = targets
        target = {**one, **targets[first]} if isinstance(targets[first], dict) else one
        for other in others:
            draft.leave(f"{where}.targets.{other}", ONE_SERVER_EACH)
    if isinstance(target.get("module"), str):
        name = f"{target['module']}:{target.get('callable', 'application')}"
        draft.carry("target", name)
        if target.get("factory") is True:
            draft.carry("factory", True)
        if target.get("prefix") is not None:
            draft.leave(f"{where} prefix {target['prefix']}", "the application is at /: a proxy in front takes it off")
    folders(draft, where, target)
    for key, value in one.items():
        line = f"{where}.{key} = {json.dumps(value)}"
        if key in CARRIED:
            CARRIED[key](draft, line, value)
        elif key in WHY:
            draft.leave(line, WHY[key])
        elif key not in {"type", "module", "callable", "factory", "targets", "path", "working_directory", "prefix"}:
            draft.leave(line, "parkade import does not know it: docs/migrate.md may")


def folders(draft: Draft, where: str, one: Table) -> None:
    paths = one.get("path")
    paths = paths if isinstance(paths, list) else [paths] if isinstance(paths, str) else []
    chosen = one.get("working_directory", paths[0] if paths else None)
    if isinstance(chosen, str):
        draft.carry("directory", chosen)
    for path in paths:
        if path != chosen:
            draft.leave(f"{where}.path = {path}", "set PYTHONPATH in the environment of the command")


def processes(draft: Draft, line: str, value: object) -> None:
    if isinstance(value, dict):
        draft.workers(line, value.get("max", 1))
        draft.leave(line, "the number of workers is fixed: max was taken")
    else:
        draft.workers(line, value)


def limits(draft: Draft, line: str, value: object) -> None:
    for key, limit in value.items() if isinstance(value, dict) else ():
        if key == "timeout":
            draft.seconds("deadline", line, limit, zero="0")
        elif key == "requests":
            draft.whole("max-requests", line, limit)
        else:
            draft.leave(line, f"there is no such limit here as {key}")


def protocol(draft: Draft, line: str, value: object) -> None:
    if value in {"wsgi", "asgi"}:
        draft.carry("interface", str(value))
    else:
        draft.leave(line, "`interface` is wsgi or asgi")


def home(draft: Draft, _line: str, value: object) -> None:
    draft.carry("python", f"{str(value).rstrip('/')}/bin/python", "it must have the package parkade")


CARRIED: dict[str, Callable[[Draft, str, Any], None]] = {
    "processes": processes,
    "limits": limits,
    "protocol": protocol,
    "home": home,
}
WHY = {
    "threads": NO_THREADS,
    "thread_stack_size": NO_THREADS,
    "environment": IN_THE_ENVIRONMENT,
    "user": BY_SYSTEMD,
    "group": BY_SYSTEMD,
    "isolation": BY_SYSTEMD,
    "stdout": BY_SYSTEMD,
    "stderr": BY_SYSTEMD,
}


def listeners(draft: Draft, configuration: Table, chosen: str | None, *, is_only: bool) -> None:
    for address, listener in table(configuration, "listeners").items():
        listener = listener if isinstance(listener, dict) else {}
        passed = str(listener.get("pass", ""))
        if not is_only and passed.startswith("applications/") and passed.split("/")[1] != chosen:
            draft.leave(f"listeners.{address}", ONE_SERVER_EACH)
            continue
        draft.bind(f"listeners.{address}", address)
        if passed.startswith("routes"):
            draft.leave(f"listeners.{address}.pass = {passed}", "every path is the application's here")
        for key, value in listener.items():
            line = f"listeners.{address}.{key} = {json.dumps(value)}"
            if key == "forwarded" and isinstance(value, dict):
                forwarded(draft, line, value)
            elif key == "tls":
                draft.leave(line, IN_A_PROXY)
            elif key != "pass":
                draft.leave(line, "parkade import does not know it")


def forwarded(draft: Draft, line: str, value: Table) -> None:
    if str(value.get("client_ip", "X-Forwarded-For")).lower() != "x-forwarded-for":
        draft.leave(line, "`forwarded` is x-forwarded (X-Forwarded-For and -Proto) or forwarded")
        return
    sources = value.get("source", [])
    for source in sources if isinstance(sources, list) else [sources]:
        if is_network(source):
            draft.carry("trust", [source])
        else:
            draft.leave(line, f"`trust` takes addresses and networks, not {source}")


def is_network(source: object) -> bool:
    try:
        ipaddress.ip_network(str(source), strict=False)
    except ValueError:
        return False
    return True


def http(draft: Draft, settings: Table) -> None:
    times = {
        "idle_timeout": "keep-alive",
        "header_read_timeout": "header-timeout",
        "body_read_timeout": "body-timeout",
        "send_timeout": "stall-timeout",
    }
    for key, value in settings.items():
        line = f"settings.http.{key} = {json.dumps(value)}"
        if key in times:
            draft.seconds(times[key], line, value)
        elif key == "max_body_size":
            draft.size("body-limit", line, value)
        elif key in {"server_version", "log_route"}:
            draft.leave(line, "not needed")
        else:
            draft.leave(line, "a proxy in front does it" if key == "static" else "there is no such setting here")


def access_log(draft: Draft, value: object) -> None:
    path = value.get("path") if isinstance(value, dict) else value
    if isinstance(path, str):
        draft.carry("access-log", "combined")
        draft.carry("access-log-file", path)
    for key in value if isinstance(value, dict) else ():
        if key != "path":
            draft.leave(f"access_log.{key}", "set access-log to text, json or combined")
