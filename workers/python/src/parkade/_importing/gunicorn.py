"""The settings of Gunicorn: a Python file, which is read and not run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from .constants import Constants, Unclear
from .draft import (
    BY_SYSTEMD,
    HEAD_BYTES_MAX,
    HEADER_COUNT_MAX,
    IN_A_PROXY,
    IN_THE_ENVIRONMENT,
    NOT_NEEDED,
    Draft,
    Unreadable,
)

HOOK = "code at import does it, or the lifespan of ASGI; there are no hooks of the server"
ANY_SETTING = "any setting may be set here, by its name: write down what is"
ONLY_PROTO = "only X-Forwarded-Proto (or, if chosen, Forwarded) is read: let the proxy set it to https"
LOGS = "the log goes to standard error; logging of the application works as it is"

REASONS = {
    NOT_NEEDED: "backlog worker_connections proc_name default_proc_name worker_tmp_dir tmp_upload_dir "
    "strip_header_spaces reuse_port check_config print_config sendfile capture_output enable_stdio_inheritance "
    "casefold_http_method permit_unconventional_http_method permit_unconventional_http_version permit_obsolete_folding "
    "header_map forwarder_headers spew control_socket control_socket_mode control_socket_disable "
    "http_protocols http_parser http2_cleartext http2_initial_window_size http2_max_concurrent_streams "
    "http2_max_frame_size http2_max_header_list_size asgi_loop asgi_lifespan config",
    "each worker loads the application": "preload_app",
    BY_SYSTEMD: "daemon pidfile user group umask initgroups",
    IN_THE_ENVIRONMENT: "raw_env",
    IN_A_PROXY: "keyfile certfile ssl_version cert_reqs ca_certs suppress_ragged_eofs do_handshake_on_connect ciphers "
    "proxy_protocol proxy_allow_ips",
    "all addresses speak HTTP: in nginx, proxy_pass instead of uwsgi_pass": "protocol uwsgi_allow_ips",
    "a job does it: docs/jobs.md": "dirty_apps dirty_workers dirty_timeout dirty_threads dirty_graceful_timeout",
    "websocket-limit limits the messages of clients, to 16 MiB by default": "websocket_max_message_size",
    "on-disconnect says what happens to code whose client has left: docs/asgi.md": "asgi_disconnect_grace_period",
    "parkade dev reloads on change": "reload reload_engine reload_extra_files",
    LOGS: "errorlog logger_class logconfig logconfig_dict logconfig_json syslog syslog_addr syslog_prefix "
    "syslog_facility disable_redirect_access_to_syslog",
    "set access-log to text, json or combined": "access_log_format",
    "admin has /metrics for Prometheus": "statsd_host statsd_prefix dogstatsd_tags enable_backlog_metric",
    "paste is not supported": "paste raw_paste_global_conf",
    HOOK: "on_starting on_reload when_ready pre_fork post_fork post_worker_init worker_int worker_abort pre_exec "
    "pre_request post_request child_exit worker_exit nworkers_changed on_exit ssl_context "
    "on_dirty_starting dirty_post_fork dirty_worker_init dirty_worker_exit",
}
WHY = {name: why for why, names in REASONS.items() for name in names.split()}

CORES = {"cpu_count", "process_cpu_count"}
LAST = {"max_requests_jitter", "pythonpath"}  # what they become depends on other settings, wherever these are


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: object
    line: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What a line says of a setting."""

    number: int
    line: str
    write: Callable[[Draft], None]


class Said:
    """What the file says of each setting. As in Python, an assignment replaces what was said before."""

    __slots__ = ("_by_name", "_count")

    def __init__(self) -> None:
        self._by_name: dict[str, list[Statement]] = {}
        self._count = 0

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def assign(self, name: str, line: str, write: Callable[[Draft], None]) -> None:
        self._by_name.pop(name, None)
        self._add(name, line, write)

    def delete(self, name: str) -> None:
        self._by_name.pop(name, None)

    def leave(self, name: str, line: str, why: str) -> None:
        if not any(before.line == line for before in self._by_name.get(name, [])[-1:]):
            self._add(name, line, lambda draft: draft.leave(line, why))

    def leave_all(self, name: str, line: str, why: str) -> None:
        """With the lines that have assigned what `line` changes."""
        for before in self._by_name.pop(name, []):
            self.leave(name, before.line, "a line below changes it")
        self.leave(name, line, why)

    def write(self, draft: Draft) -> None:
        in_order = [(name in LAST, each.number, each) for name, said in self._by_name.items() for each in said]
        for _, _, statement in sorted(in_order, key=lambda one: one[:2]):
            statement.write(draft)

    def _add(self, name: str, line: str, write: Callable[[Draft], None]) -> None:
        self._count += 1
        self._by_name.setdefault(name, []).append(Statement(self._count, line, write))


class Reading:
    """The names that have been assigned so far, and what the file says of those that are settings."""

    __slots__ = ("constants", "lines", "said")

    def __init__(self, text: str) -> None:
        self.constants = Constants()
        self.lines = text.splitlines()
        self.said = Said()

    def line(self, node: ast.stmt | ast.expr) -> str:
        return f"line {node.lineno}: {self.lines[node.lineno - 1].strip()}"


def read(text: str, draft: Draft) -> None:
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(f"line {error.lineno or 1}: this is not Python: {error.msg}") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise Unreadable(f"line 1: this is not Python that can be read: {error}") from error
    draft.unclear_target = "the command line of gunicorn names the application, not this file"
    reading = Reading(text)
    for statement in module.body:
        _read(draft, reading, statement)
    reading.said.write(draft)
    _trusted_by_default(draft, reading)
    is_said = "workers" in reading.said
    draft.one_worker("Gunicorn, unless WEB_CONCURRENCY or its command line says more", is_said=is_said)


def _read(draft: Draft, reading: Reading, statement: ast.stmt) -> None:
    line = reading.line(statement)
    match statement:
        case ast.Assign(targets=[*targets], value=value):
            for target in targets:
                _unpacked(draft, reading, target, value, line)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            _assigned(reading, name, value, line)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            _augmented(reading, name, op, value, line)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in KNOWN:
            reading.said.assign(name, line, _left(line, WHY.get(name, HOOK)))
        case ast.Delete(targets=[ast.Name(id=name)]):
            reading.constants.forget(name)
            reading.said.delete(name)
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            draft.leave(line, "settings may come from there: import that file, too")
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            pass
        case _:
            _conditional(draft, reading, statement)


def _left(line: str, why: str) -> Callable[[Draft], None]:
    return lambda draft: draft.leave(line, why)


def _unpacked(draft: Draft, reading: Reading, target: ast.expr, value: ast.expr, line: str) -> None:
    match target, value:
        case ast.Name(id=name), _:
            _assigned(reading, name, value, line)
        case ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=values) | ast.List(elts=values) if len(
            names
        ) == len(values):
            for inner, part in zip(names, values, strict=True):
                _unpacked(draft, reading, inner, part, line)
        case ((ast.Subscript() | ast.Attribute()), _):
            _conditional(draft, reading, target)
        case _:
            # Whatever is unpacked or called, these names get what only a running program knows.
            for name in (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and _is_stored(node)):
                _assigned(reading, name, value, line)


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_any_setting(node: ast.AST) -> bool:
    """`locals()[name] = …`, or `globals().update(…)`: what a file does that takes settings from the environment."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="locals" | "globals" | "vars")), ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="locals" | "globals" | "vars")))):
            return True
        case _:
            return False


def _trusted_by_default(draft: Draft, reading: Reading) -> None:
    """Gunicorn believes proxies on this machine, and everyone at a Unix socket. Here nobody is trusted by default."""
    addresses = draft.value("bind")
    is_unix = isinstance(addresses, list) and any(address.startswith("unix:") for address in addresses)
    if "forwarded_allow_ips" not in reading.said:
        draft.carry("trust", ["127.0.0.1", "::1"], "the default of Gunicorn; here nobody is trusted by default")
    if is_unix:
        draft.carry("trust", ["unix"])


def _conditional(draft: Draft, reading: Reading, code: ast.stmt | ast.expr) -> None:
    """What is assigned here depends on something, and lists that are named here may change."""
    for inner in ast.walk(code):
        if isinstance(inner, ast.Subscript | ast.Call) and _is_any_setting(inner):
            draft.leave(reading.line(inner), ANY_SETTING)
        if not isinstance(inner, ast.Name):
            continue
        for name in reading.constants.names_of_list(inner.id):
            reading.constants.forget(name)
            if name in KNOWN:
                reading.said.leave(name, reading.line(inner), f"it may change `{name}`: write down its value")
        if _is_stored(inner):
            reading.constants.forget(inner.id)
            if inner.id in KNOWN:
                why = "it depends on the code above: write down its value"
                reading.said.leave(inner.id, reading.line(inner), why)


def _augmented(reading: Reading, name: str, op: ast.operator, node: ast.expr, line: str) -> None:
    try:
        changed, notes = reading.constants.augment(name, op, node)
    except Unclear:
        for one in {name, *reading.constants.names_of_list(name)}:
            reading.constants.forget(one)
            if one in KNOWN:
                reading.said.leave_all(one, line, "not a constant: write down the whole value")
        return
    for one in changed:
        _settled(reading, Setting(one, reading.constants.known(one), line), notes)


def _assigned(reading: Reading, name: str, node: ast.expr, line: str) -> None:
    if name == "workers" and _counts_cores(node):
        reading.constants.forget(name)
        note = "one for each core: slow clients occupy no worker"
        reading.said.assign(name, line, lambda draft: draft.carry("workers", "auto", note))
        return
    try:
        value, notes = reading.constants.evaluated(node)
    except Unclear:
        reading.constants.forget(name)
        if name in KNOWN:
            unclear = ONLY_PROTO if name == "secure_scheme_headers" else "not a constant: write down its value"
            reading.said.assign(name, line, _left(line, WHY.get(name, unclear)))
        return
    reading.constants.assign(name, value, notes)
    _settled(reading, Setting(name, value, line), notes)


def _settled(reading: Reading, setting: Setting, notes: tuple[str, ...]) -> None:
    """A setting whose value is known. Lists may still be changed: they are read when the whole file has been."""

    def write(draft: Draft) -> None:
        if setting.value is not None:
            CARRIED[setting.name](draft, setting)
            for note in notes:
                draft.leave(setting.line, f"{note} was taken; {OWN_VARIABLES}")

    if setting.name in WHY:
        reading.said.assign(setting.name, setting.line, _left(setting.line, WHY[setting.name]))
    elif setting.name in CARRIED:
        reading.said.assign(setting.name, setting.line, write)


OWN_VARIABLES = "variables such as PARKADE_WORKERS override parkade.toml"


def _counts_cores(node: ast.expr) -> bool:
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any((call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")) in CORES for call in calls)


def _bind(draft: Draft, setting: Setting) -> None:
    addresses = setting.value if isinstance(setting.value, list | tuple) else str(setting.value).split(",")
    for address in addresses:
        whole = f"{address}:8000" if ":" not in str(address) and "/" not in str(address) else str(address)
        draft.bind(setting.line, whole)


def _class(draft: Draft, setting: Setting) -> None:
    name = str(setting.value).rsplit(".", 1)[-1].lower()
    if name in {"gevent", "eventlet", "tornado", "geventpywsgiworker", "ggeventworker"}:
        draft.leave(setting.line, "a view that waits is parked instead: docs/hosted.md")
    elif name == "gthread":
        draft.leave(setting.line, f"{NOT_NEEDED}: `threads` says how many requests a worker runs at once")
    else:
        draft.leave(setting.line, f"{NOT_NEEDED}: the application shows what it is")


def _trust(draft: Draft, setting: Setting) -> None:
    peers = setting.value if isinstance(setting.value, list | tuple) else str(setting.value).split(",")
    kept = [str(peer).strip() for peer in peers if str(peer).strip()]
    if kept:
        draft.carry("trust", kept)


def _schemes(draft: Draft, setting: Setting) -> None:
    fields = setting.value if isinstance(setting.value, dict) else {}
    is_usual = [(str(name).lower(), value) for name, value in fields.items()] == [("x-forwarded-proto", "https")]
    draft.leave(setting.line, NOT_NEEDED if is_usual else ONLY_PROTO)


def _access_log(draft: Draft, setting: Setting) -> None:
    draft.carry("access-log", "combined")
    if setting.value != "-":
        draft.carry("access-log-file", str(setting.value))


def _log_level(draft: Draft, setting: Setting) -> None:
    level = {"warning": "warn", "critical": "error"}.get(str(setting.value).lower(), str(setting.value).lower())
    if level in {"error", "warn", "info", "debug"}:
        draft.carry("log-level", level)
    else:
        draft.leave(setting.line, "`log-level` is error, warn, info, debug or trace")


def _jitter(draft: Draft, setting: Setting) -> None:
    draft.jitter(setting.line, setting.value)


def _path(draft: Draft, setting: Setting) -> None:
    folders = str(setting.value).split(",")
    if draft.value("directory") is None and len(folders) == 1:
        draft.carry("directory", folders[0])
    elif folders != [draft.value("directory")]:
        draft.leave(setting.line, "set PYTHONPATH in the environment of the command")


def _application(draft: Draft, setting: Setting) -> None:
    name = str(setting.value)
    draft.target(setting.line, name if ":" in name else f"{name}:application")


CARRIED: dict[str, Callable[[Draft, Setting], None]] = {
    "wsgi_app": _application,
    "bind": _bind,
    "workers": lambda d, s: d.workers(s.line, s.value),
    "threads": lambda d, s: d.threads(s.line, s.value),
    "worker_class": _class,
    "timeout": lambda d, s: d.seconds("deadline", s.line, s.value, zero="0"),
    "graceful_timeout": lambda d, s: d.seconds("grace", s.line, s.value),
    "keepalive": lambda d, s: d.seconds("keep-alive", s.line, s.value),
    "max_requests": lambda d, s: d.whole("max-requests", s.line, s.value),
    "max_requests_jitter": _jitter,
    "limit_request_line": lambda d, s: d.leave(s.line, "header-limit is the limit of the whole head, 32 KiB"),
    "limit_request_field_size": lambda d, s: d.size("header-limit", s.line, s.value, most=HEAD_BYTES_MAX),
    "limit_request_fields": lambda d, s: d.whole("header-count", s.line, s.value, least=1, most=HEADER_COUNT_MAX),
    "chdir": lambda d, s: d.carry("directory", str(s.value)),
    "pythonpath": _path,
    "forwarded_allow_ips": _trust,
    "secure_scheme_headers": _schemes,
    "root_path": lambda d, s: d.carry("root-path", str(s.value)),
    "accesslog": _access_log,
    "loglevel": _log_level,
}
KNOWN = CARRIED.keys() | WHY.keys()
