"""The settings of Gunicorn: a Python file, which is read and not run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass

from .draft import (
    BY_SYSTEMD,
    HEAD_BYTES_MAX,
    HEADER_COUNT_MAX,
    IN_A_PROXY,
    IN_THE_ENVIRONMENT,
    NOT_NEEDED,
    Draft,
    Unreadable,
    as_number,
)

HOOK = "code at import does it, or the lifespan of ASGI; there are no hooks of the server"
ANY_SETTING = "any setting may be set here, by its name: write down what is"
LOGS = "the log goes to standard error; logging of the application works as it is"

REASONS = {
    NOT_NEEDED: "backlog worker_connections proc_name default_proc_name worker_tmp_dir tmp_upload_dir "
    "strip_header_spaces reuse_port check_config print_config sendfile capture_output enable_stdio_inheritance "
    "casefold_http_method permit_unconventional_http_method permit_unconventional_http_version permit_obsolete_folding "
    "header_map forwarder_headers spew secure_scheme_headers control_socket control_socket_mode control_socket_disable "
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

ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
CORES = {"cpu_count", "process_cpu_count"}
NESTED_MAX = 50  # levels of an expression. Then: not a constant


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: object
    line: str


class Unclear(Exception):
    """An expression whose value only a running program knows."""


class Reading:
    """The names that have been assigned so far, and those of them whose values are known."""

    __slots__ = ("_known", "mentioned", "notes")

    def __init__(self) -> None:
        self._known: dict[str, object] = {}
        self.mentioned: set[str] = set()
        self.notes: list[str] = []

    def assign(self, name: str, value: object) -> None:
        self._known[name] = value

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    def value(self, node: ast.expr, level: int = 0) -> object:
        if level > NESTED_MAX:
            raise Unclear
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self._known:
                return self._known[name]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item, level + 1) for item in items]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return self._computed(op, self.value(left, level + 1), self.value(right, level + 1))
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part, level) for part in parts)
            case ast.Call():
                return self._call(node, level)
            case ast.BoolOp(op=ast.Or(), values=[first, *_]):
                return self.value(first, level + 1) or self.value(node.values[-1], level + 1)
            case _:
                raise Unclear

    def _computed(self, op: ast.operator, left: object, right: object) -> object:
        if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
            return left + right
        if isinstance(left, int | float) and isinstance(right, int | float):
            try:
                return ARITHMETIC[type(op)](left, right)
            except (ArithmeticError, ValueError) as error:
                raise Unclear from error
        raise Unclear

    def _part(self, part: ast.expr, level: int) -> str:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion != -1:
                raise Unclear
            part = part.value
        return str(self.value(part, level + 1))

    def _call(self, node: ast.Call, level: int) -> object:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [self.value(argument, level + 1) for argument in node.args]
        match name, arguments:
            case ("int" | "float", [value]):
                number = as_number(value)
                if number is None:
                    raise Unclear
                return int(number) if name == "int" else number
            case ("str", [value]):
                return str(value)
            case ("getenv" | "get", [variable, default]):
                self.notes.append(f"the default of the variable {variable}")
                return default
            case _:
                raise Unclear


def read(text: str, draft: Draft) -> None:
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(f"line {error.lineno or 1}: this is not Python: {error.msg}") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise Unreadable(f"line 1: this is not Python that can be read: {error}") from error
    draft.unclear_target = "the command line of gunicorn names the application, not this file"
    reading = Reading()
    for statement in module.body:
        line = f"line {statement.lineno}: {(ast.get_source_segment(text, statement) or '').splitlines()[0]}"
        match statement:
            case ast.Assign(targets=[*targets], value=value):
                for target in targets:
                    _unpacked(draft, reading, target, value, line)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                _assigned(draft, reading, name, value, line)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in KNOWN:
                draft.leave(line, WHY.get(name, HOOK))
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try() | ast.AugAssign():
                _conditional(draft, reading, statement, text)
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                draft.leave(line, "settings may come from there: import that file, too")
            case _:
                pass  # imports, and functions that are not hooks
    _trusted_by_default(draft, reading)


def _unpacked(draft: Draft, reading: Reading, target: ast.expr, value: ast.expr, line: str) -> None:
    match target, value:
        case ast.Name(id=name), _:
            _assigned(draft, reading, name, value, line)
        case ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=values) | ast.List(elts=values) if len(
            names
        ) == len(values):
            for inner, part in zip(names, values, strict=True):
                _unpacked(draft, reading, inner, part, line)
        case ast.Subscript(), _ if _is_any_setting(target):
            draft.leave(line, ANY_SETTING)
        case _:
            # Whatever is unpacked or called, these names get what only a running program knows.
            for name in (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and _is_stored(node)):
                _assigned(draft, reading, name, value, line)


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_any_setting(node: ast.AST) -> bool:
    """`locals()[name] = …`: what a file does that takes settings from the environment."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="locals" | "globals" | "vars")), ctx=ast.Store()):
            return True
        case _:
            return False


def _trusted_by_default(draft: Draft, reading: Reading) -> None:
    """Gunicorn believes proxies on this machine, and everyone at a Unix socket. Here nobody is trusted by default."""
    addresses = draft.value("bind")
    is_unix = isinstance(addresses, list) and any(address.startswith("unix:") for address in addresses)
    if "forwarded_allow_ips" not in reading.mentioned:
        draft.carry("trust", ["127.0.0.1", "::1"], "the default of Gunicorn; here nobody is trusted by default")
    if is_unix:
        draft.carry("trust", ["unix"])


def _conditional(draft: Draft, reading: Reading, statement: ast.stmt, text: str) -> None:
    """What is assigned here depends on something."""
    lines = text.splitlines()
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Subscript) and _is_any_setting(inner):
            draft.leave(f"line {inner.lineno}: {lines[inner.lineno - 1].strip()}", ANY_SETTING)
        if isinstance(inner, ast.Name) and _is_stored(inner):
            reading.forget(inner.id)
            reading.mentioned.add(inner.id)
            if inner.id in KNOWN:
                line = f"line {inner.lineno}: {lines[inner.lineno - 1].strip()}"
                draft.leave(line, "it depends on the code above: write down its value")


def _assigned(draft: Draft, reading: Reading, name: str, node: ast.expr, line: str) -> None:
    reading.notes.clear()
    reading.mentioned.add(name)
    if name == "workers" and _counts_cores(node):
        draft.carry("workers", "auto", "one for each core: slow clients occupy no worker")
        return
    if name in WHY:
        draft.leave(line, WHY[name])
    try:
        value = reading.value(node)
    except Unclear:
        reading.forget(name)
        if name in CARRIED:
            draft.leave(line, "not a constant: write down its value")
        return
    reading.assign(name, value)
    if name in CARRIED and value is not None:
        CARRIED[name](draft, Setting(name, value, line))
        for note in reading.notes:
            draft.leave(line, f"{note} was taken; {OWN_VARIABLES}")


OWN_VARIABLES = "variables such as PARKADE_WORKERS override parkade.toml"


def _counts_cores(node: ast.expr) -> bool:
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any((call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")) in CORES for call in calls)


def _bind(draft: Draft, setting: Setting) -> None:
    addresses = setting.value if isinstance(setting.value, list) else str(setting.value).split(",")
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
    peers = setting.value if isinstance(setting.value, list) else str(setting.value).split(",")
    kept = [str(peer).strip() for peer in peers if str(peer).strip()]
    if kept:
        draft.carry("trust", kept)


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
    "root_path": lambda d, s: d.carry("root-path", str(s.value)),
    "accesslog": _access_log,
    "loglevel": _log_level,
}
KNOWN = CARRIED.keys() | WHY.keys()
