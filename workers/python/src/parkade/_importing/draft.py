"""A `parkade.toml` that is being written: what was carried over, and why the rest was not."""

from __future__ import annotations

import json
import re

Value = str | int | bool | list[str]

HEAD_BYTES_MAX = 512 * 1024  # the most that `header-limit` takes
HEADER_COUNT_MAX = 256  # the most that `header-count` takes
WORKERS_MAX = 1_024
THREADS_MAX = 1_024
SECONDS_MAX = 365 * 86_400
SHOWN_CHARACTERS_MAX = 200  # of a line that is quoted in a comment. Then: cut

IN_A_PROXY = "missing: a proxy in front does it, such as nginx"
BY_SYSTEMD = "systemd does it: docs/operations.md has a unit"
IN_THE_ENVIRONMENT = "set it in the environment of the command, such as Environment= of systemd"
NOT_NEEDED = "not needed"
STACK_SIZE = "threading.stack_size(…) of Python sets it"
UNKNOWN = "parkade import does not know it: docs/migrate.md may"


class Unreadable(Exception):
    """A file that is not what its name says. The text names the line."""


class Draft:
    """Settings in the order in which they were found, and lines that became none."""

    __slots__ = ("_left", "_settings", "_source", "unclear_target")

    def __init__(self, source: str) -> None:
        self._source = source
        self._settings: dict[str, tuple[Value, str]] = {}
        self._left: list[tuple[str, str]] = []
        self.unclear_target = "the command line names the application, not this file"

    def carry(self, key: str, value: Value, note: str = "") -> None:
        """The last one counts, except for lists, which grow."""
        if isinstance(value, list) and key in self._settings:
            before, earlier = self._settings[key]
            if isinstance(before, list):
                value, note = before + [one for one in value if one not in before], note or earlier
        self._settings[key] = (value, note)

    def leave(self, line: str, why: str) -> None:
        """`line` as the file has it, with where it is."""
        self._left.append((line, why))

    def jitter(self, line: str, value: object) -> None:
        """`value`: requests by which the number of `max-requests` varies. Here it is a share of that."""
        requests, jitter = self.value("max-requests"), as_number(value)
        if isinstance(requests, int) and requests > 0 and jitter is not None:
            self.carry("recycle-jitter", f"{min(100, round(100 * jitter / requests))}%")
        else:
            self.leave(line, "`recycle-jitter` is a share of max-requests, such as 10%")

    def target(self, line: str, target: str, note: str = "") -> None:
        """`module:name`, or with `name()` for a factory."""
        called = re.fullmatch(r"(?P<factory>[^()]+)\(\)", target)
        if called:
            self.carry("target", called["factory"], note)
            self.carry("factory", True)
        elif "(" in target:
            self.leave(line, "a factory is called without arguments: write one that needs none, and set factory = true")
        else:
            self.carry("target", target, note)

    def value(self, key: str) -> Value | None:
        return self._settings[key][0] if key in self._settings else None

    # Values that have a unit or a range here. Each is left with a reason if it has no meaning.

    def whole(self, key: str, line: str, value: object, least: int = 0, most: int | None = None) -> None:
        number = as_number(value)
        if number is None or number != int(number) or number < least:
            self.leave(line, f"`{key}` takes a whole number from {least}")
        elif most is not None and number > most:
            self.carry(key, most, f"{int(number)} is more than {key} takes")
        else:
            self.carry(key, int(number))

    def seconds(self, key: str, line: str, value: object, zero: str | None = None) -> None:
        """`zero` is what to write for 0; without it, 0 has no meaning here."""
        number = as_number(value)
        if number is None or number < 0 or number > SECONDS_MAX:
            self.leave(line, f"`{key}` takes a time, such as 30s")
        elif number == 0 and zero is None:
            self.leave(line, f"`{key}` cannot be 0")
        else:
            self.carry(key, zero if number == 0 and zero is not None else f"{number:g}s")

    def size(self, key: str, line: str, value: object, unit: str = "", most: int | None = None) -> None:
        number = as_number(value)
        if number is None or number != int(number) or number <= 0:
            self.leave(line, f"`{key}` takes a size, such as 16MiB")
        elif most is not None and number > most:
            self.carry(key, str(most), f"{int(number)} is more than {key} takes")
        else:
            self.carry(key, f"{int(number)}{unit}")

    def bind(self, line: str, address: str) -> None:
        """An address as most servers write it: `host:port`, `:port`, `*:port`, `unix:FILE` or a path."""
        here = own_address(address)
        if here is None:
            self.leave(line, "`bind` takes host:port, :port or unix:FILE")
        else:
            self.carry("bind", [here])

    def workers(self, line: str, value: object) -> None:
        self.whole("workers", line, value, least=1, most=WORKERS_MAX)

    def one_worker(self, server: str, *, is_said: bool) -> None:
        """What `server` starts unless the file says otherwise. The default here is one for each core, each with a
        memory of its own, which an application notices that keeps something in memory.
        """
        if self.value("workers") is None:
            origin = "how many is not clear, see below" if is_said else f"the default of {server}"
            advice = '"auto" is one for each core: for applications without state in memory'
            self.carry("workers", 1, f"{origin}. {advice}")

    def threads(self, line: str, value: object) -> None:
        self.whole("threads", line, value, least=1, most=THREADS_MAX)

    def text(self) -> str:
        lines = [
            f"# From {self._source}, by parkade import. Check it: parkade serve --check --config parkade.toml",
            "",
        ]
        if "target" not in self._settings:
            lines += [f"# {self.unclear_target}:", '# target = "mysite.wsgi:application"']
        for key, (value, note) in self._settings.items():
            lines.append(f"{key} = {toml(value)}" + (f"  # {one_line(note)}" if note else ""))
        if self._left:
            lines += ["", "# Not translated:"]
        for line, why in self._left:
            lines += [f"# {one_line(line)}", f"#     {one_line(why)}"]
        return "\n".join(lines) + "\n"


def own_address(address: str) -> str | None:
    address = address.strip()
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//") if address.startswith("unix://") else address[5:]
        return f"unix:{path}" if path and not path.startswith("@") else None
    if "://" in address:  # fd:// and others
        return None
    found = re.fullmatch(r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]*|\*):(?P<port>\d{1,5})", address)
    if found and int(found["port"]) < 1 << 16:
        return f"{'' if found['host'] == '*' else found['host']}:{found['port']}"
    return f"unix:{address}" if "/" in address or address.endswith((".sock", ".socket")) else None


def as_number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,6})?", text) else None


def toml(value: Value) -> str:
    """A string of JSON is one of TOML, apart from DEL and lone surrogates."""
    if isinstance(value, list):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return text.encode("utf-8", "replace").decode()
    return str(value).lower()


def one_line(text: str) -> str:
    """Without what cannot be in a comment of TOML."""
    text = re.sub(r"[\x00-\x1f\x7f\ud800-\udfff\s]+", " ", text).strip()
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + " …"
