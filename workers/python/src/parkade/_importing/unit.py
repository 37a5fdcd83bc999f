"""The configuration of NGINX Unit: JSON, which may have comments. The names are those of `nxt_conf_validation.c`."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from .draft import (
    BY_SYSTEMD,
    IN_A_PROXY,
    IN_THE_ENVIRONMENT,
    NOT_NEEDED,
    STACK_SIZE,
    UNKNOWN,
    Draft,
    Unreadable,
    as_number,
)

Table = dict[str, Any]

COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+|/\*.*?\*/', re.DOTALL)
ONE_SERVER_EACH = (
    "one server for each application, with a parkade.toml of its own, or a [[mount]] for each (docs/mounts.md)"
)


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
    draft.unclear_target = "there is no application of type python or perl in it"
    served = [name for name, one in applications.items() if language(one) in {"python", "perl"}]
    chosen = served[0] if served else None
    if chosen is not None:
        application(draft, f"applications.{chosen}", applications[chosen])
        draft.one_worker("Unit", is_said="processes" in applications[chosen])
    for name, one in applications.items():
        if name in served[1:]:
            draft.leave(f"applications.{name}", ONE_SERVER_EACH)
        elif name != chosen:
            draft.leave(f"applications.{name}, of type {language(one)}", "only Python and Perl are served")
    listeners(draft, configuration, chosen, is_only=len(applications) == 1)
    for key, value in table(configuration, "settings").items():
        if key == "http" and isinstance(value, dict):
            http(draft, value)
        elif key == "telemetry" and isinstance(value, dict):
            telemetry(draft, value)
        else:
            draft.leave(f"settings.{key}", SETTINGS.get(key, UNKNOWN))
    for key, value in configuration.items():
        if key == "access_log":
            access_log(draft, value)
        elif key in {"routes", "upstreams"}:
            draft.leave(key, IN_A_PROXY)
        elif key not in {"applications", "listeners", "settings"}:
            draft.leave(key, UNKNOWN)
    for key in whole if configuration is not whole else ():  # what the control API answers
        if key not in {"config", "status"}:
            draft.leave(key, IN_A_PROXY)


def without_comment(match: re.Match[str]) -> str:
    """The lines stay, so that errors have the right number."""
    found = match[0]
    return found if found.startswith('"') else "\n" * found.count("\n") or " "


def table(parent: Table, key: str) -> Table:
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}


def language(one: object) -> str:
    """`python` of the type `python 3.11`."""
    kind = one.get("type") if isinstance(one, dict) else None
    return str(kind).split(" ")[0] if kind else "?"


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
        if isinstance(target.get("prefix"), str):
            draft.carry("root-path", target["prefix"])
    elif isinstance(one.get("script"), str):
        draft.carry("target", one["script"])
    folders(draft, where, target)
    for key, value in one.items():
        line = f"{where}.{key} = {json.dumps(value)}"
        if key in CARRIED:
            CARRIED[key](draft, line, value)
        elif key in WHY:
            draft.leave(line, WHY[key])
        elif key not in OF_THE_TARGET:
            draft.leave(line, UNKNOWN)


OF_THE_TARGET = {"type", "module", "callable", "factory", "targets", "path", "working_directory", "prefix", "script"}


def folders(draft: Draft, where: str, one: Table) -> None:
    paths = one.get("path")
    paths = paths if isinstance(paths, list) else [paths] if isinstance(paths, str) else []
    chosen = one.get("working_directory", paths[0] if paths else None)
    if isinstance(chosen, str):
        draft.carry("directory", chosen)
    for path in paths:
        if path != chosen:
            draft.leave(f"{where}.path = {path}", "set PYTHONPATH in the environment of the command")


SETTINGS = {
    "listen_threads": NOT_NEEDED,
    "js_module": "there are no scripts in the settings here",
}


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
            draft.leave(line, f"there is no limit like {key} here")


def protocol(draft: Draft, line: str, value: object) -> None:
    if value in {"wsgi", "asgi"}:
        draft.carry("interface", str(value))
    else:
        draft.leave(line, "`interface` is wsgi or asgi")


def home(draft: Draft, _line: str, value: object) -> None:
    draft.carry("python", f"{str(value).rstrip('/')}/bin/python", "it must have the package parkade")


CARRIED: dict[str, Callable[[Draft, str, Any], None]] = {
    "processes": processes,
    "threads": lambda draft, line, value: draft.threads(line, value),
    "limits": limits,
    "protocol": protocol,
    "home": home,
}
WHY = {
    "thread_stack_size": STACK_SIZE,
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
            draft.leave(f"listeners.{address}.pass = {passed}", "here the application serves every path")
        for key, value in listener.items():
            line = f"listeners.{address}.{key} = {json.dumps(value)}"
            if key in {"forwarded", "client_ip"} and isinstance(value, dict):
                forwarded(draft, line, value)
            elif key == "tls":
                draft.leave(line, IN_A_PROXY)
            elif key == "backlog":
                draft.leave(line, NOT_NEEDED)
            elif key not in {"pass", "application"}:
                draft.leave(line, UNKNOWN)


def forwarded(draft: Draft, line: str, value: Table) -> None:
    """Before Unit 1.28 it was `client_ip`, with the name of the field in `header`."""
    names = (str(value.get(key, "x-forwarded-for")).lower() for key in ("client_ip", "header"))
    if any(name != "x-forwarded-for" for name in names):
        draft.leave(line, "`forwarded` is x-forwarded (X-Forwarded-For and -Proto) or forwarded")
        return
    sources = value.get("source", [])
    for source in sources if isinstance(sources, list) else [sources]:
        if is_network(source):
            draft.carry("trust", [source])
        else:
            draft.leave(line, f"`trust` takes addresses and networks, not {source}")


def is_network(source: object) -> bool:
    if source == "unix":
        return True
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
        else:
            draft.leave(line, HTTP.get(key, UNKNOWN))


HEAD = "`header-limit` is for the whole head of a request"
HTTP = {
    "server_version": NOT_NEEDED,
    "log_route": NOT_NEEDED,
    "discard_unsafe_fields": f"{NOT_NEEDED}: fields whose names have an underscore do not reach the application",
    "chunked_transform": f"{NOT_NEEDED}: bodies may come in chunks",
    "large_header_buffer_size": HEAD,
    "large_header_buffers": HEAD,
    "body_buffer_size": f"{NOT_NEEDED}: requests-limit is for the memory of all requests",
    "body_temp_path": f"{NOT_NEEDED}: bodies are not kept in files",
    "websocket": "docs/asgi.md says what of WebSocket is supported",
    "static": IN_A_PROXY,
    "compression": IN_A_PROXY,
}


def telemetry(draft: Draft, settings: Table) -> None:
    for key, value in settings.items():
        line = f"settings.telemetry.{key} = {json.dumps(value)}"
        ratio = as_number(value)
        if key == "endpoint" and settings.get("protocol") == "http" and isinstance(value, str):
            draft.carry("otlp-endpoint", value.removesuffix("/").removesuffix("/v1/traces"))
        elif key == "endpoint":
            draft.leave(line, "traces are sent over HTTP, usually to port 4318: docs/tracing.md")
        elif key == "sampling_ratio" and ratio is not None and ratio <= 1:
            draft.carry("trace-ratio", f"{ratio:g}")
        elif key == "protocol":
            draft.leave(line, f"{NOT_NEEDED}: traces are sent over HTTP")
        else:
            draft.leave(line, NOT_NEEDED)


def access_log(draft: Draft, value: object) -> None:
    path = value.get("path") if isinstance(value, dict) else value
    if isinstance(path, str):
        draft.carry("access-log", "combined")
        draft.carry("access-log-file", path)
    for key in value if isinstance(value, dict) else ():
        if key != "path":
            draft.leave(f"access_log.{key}", "set access-log to text, json or combined")
