"""Path patterns, and which route a path takes: the rules of PROTOCOL.md, section 2, which the core has too.

A worker needs them only where the core does not decide: for `fallback`, in `parkade.testing`, and to check patterns
when the application loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from .._requests.percent import percent_decode
from ..errors import SignatureError


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in a pattern: its name, and its kind (`str`, `int`, `float`, `uuid`, `path`)."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern: a text for each fixed segment, a `Parameter` for each other."""

    path: str
    segments: tuple[str | Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names in order."""
        return tuple(segment.name for segment in self.segments if isinstance(segment, Parameter))

    @property
    def types(self) -> tuple[type, ...]:
        """What each parameter is for a handler that does not annotate it."""
        return tuple(_TYPES.get(segment.kind, str) for segment in self.segments if isinstance(segment, Parameter))

    @property
    def ends_with_rest(self) -> bool:
        """Whether its last parameter takes all that is left of a path."""
        last = self.segments[-1]
        return isinstance(last, Parameter) and last.kind == "path"

    @property
    def place(self) -> tuple[str, ...]:
        """What it matches: two patterns that differ only in their parameters' names are one place."""
        return tuple(segment if isinstance(segment, str) else f"{{{segment.kind}}}" for segment in self.segments)

    def fill(self, values: Mapping[str, object]) -> str:
        """A path with these values, encoded. Raises `KeyError` for a missing one."""
        return "/" + "/".join(
            quote(segment, safe="")
            if isinstance(segment, str)
            else quote(str(values[segment.name]), safe="/" if segment.kind == "path" else "")
            for segment in self.segments
        )


def parse(path: str) -> Pattern:
    """Parses a pattern as `/auction/{lot:int}/bids`. Raises `SignatureError` for a malformed one."""
    if not path.startswith("/"):
        raise SignatureError(f"the path {path!r} does not begin with a slash")
    texts = path[1:].split("/")
    segments = tuple(_segment(path, text) for text in texts)
    if any(isinstance(segment, Parameter) and segment.kind == "path" for segment in segments[:-1]):
        raise SignatureError(f"in {path!r}, only the last segment can match the rest of the path")
    pattern = Pattern(path, segments)
    if len(set(pattern.names)) != len(pattern.names):
        raise SignatureError(f"{path!r} has two parameters with the same name")
    return pattern


def join(prefix: str, path: str) -> str:
    """The path of a route under a prefix. `/` is the prefix itself, so that no path ends with a slash by accident."""
    return prefix + path if path not in ("", "/") or not prefix else prefix


def checked_prefix(prefix: str) -> str:
    """A prefix of paths: empty, or as a pattern without a slash at its end. Raises `SignatureError`."""
    if prefix and (prefix.endswith("/") or parse(prefix).ends_with_rest):
        raise SignatureError(f"the prefix {prefix!r} ends with a slash, or with the rest of the path")
    return prefix


@dataclass(frozen=True, slots=True)
class Match:
    """A route's number and its path parameters, decoded, in order."""

    route: int
    parameters: tuple[str, ...]


class RouteTable:
    """Finds the route for a method and a path as sent."""

    def __init__(self, routes: Iterable[tuple[Sequence[str], Pattern]]) -> None:
        self._root = _Node()
        for number, (methods, pattern) in enumerate(routes):
            self._root.add(pattern.segments, frozenset(methods), number)

    def match(self, method: str, path: str) -> Match | None:
        """The route, or None: then `allowed` distinguishes 404 from 405."""
        found = self._first(method, path)
        return self._first("GET", path) if found is None and method == "HEAD" else found

    def allowed(self, path: str) -> list[str]:
        """The methods under which the path has a route; empty means 404."""
        methods = {method for end, _ in self._ends(path) for told, _ in end.routes for method in told}
        return sorted(methods | ({"HEAD"} if "GET" in methods else set()))

    def with_other_slash(self, method: str, path: str) -> str | None:
        """The path with a slash more or less at its end, if that has a route."""
        other = path[:-1] if path.endswith("/") else path + "/"
        # `//host` is no path of this server, where a client is sent to it.
        return other if not other.startswith("//") and self.match(method, other) is not None else None

    def _first(self, method: str, path: str) -> Match | None:
        for end, parameters in self._ends(path):
            for methods, number in end.routes:
                if method in methods:
                    return Match(number, parameters)
        return None

    def _ends(self, path: str) -> Iterator[tuple[_Node, tuple[str, ...]]]:
        segments = _split(path)
        return iter(()) if segments is None else self._root.ends(segments, ())


class _Node:
    """A node in the tree of patterns: its children, and the routes that end here, in order of registration."""

    __slots__ = ("fixed", "parameters", "routes")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.parameters: dict[str, _Node] = {}  # by kind: whatever their names, those of one kind are one place
        self.routes: list[tuple[frozenset[str], int]] = []

    def add(self, segments: Sequence[str | Parameter], methods: frozenset[str], number: int) -> None:
        if not segments:
            self.routes.append((methods, number))
            return
        first, *rest = segments
        followers, key = (self.fixed, first) if isinstance(first, str) else (self.parameters, first.kind)
        followers.setdefault(key, _Node()).add(rest, methods, number)

    def ends(self, segments: Sequence[str], parameters: tuple[str, ...]) -> Iterator[tuple[_Node, tuple[str, ...]]]:
        """Every node that the segments lead to, best first: fixed ones, then parameters in order of registration."""
        if not segments:
            yield self, parameters
            return
        first, *rest = segments
        if first in self.fixed:
            yield from self.fixed[first].ends(rest, parameters)
        for kind, node in self.parameters.items():
            if kind == "path":
                all_left = "/".join(segments)
                if _ACCEPTS["str"].fullmatch(all_left):
                    yield node, (*parameters, all_left)
            elif _ACCEPTS[kind].fullmatch(first):
                yield from node.ends(rest, (*parameters, first))


_FOREIGN = re.compile(r"<(?:[^<>]*:)?(\w+)>|:(\w+)|\*{1,2}")
"""A parameter as Flask, Express and others write it: it would match itself and nothing else."""

_TYPES: dict[str, type] = {"int": int, "float": float, "uuid": UUID}
_KINDS = {"": "str", "str": "str", "int": "int", "float": "float", "uuid": "uuid", "path": "path", "rest": "path"}
_ACCEPTS = {
    "str": re.compile(r"[^/\\].*", re.DOTALL),  # joined to a folder, one that began with a slash would lead anywhere
    "int": re.compile(r"-?[0-9]{1,18}", re.ASCII),
    "float": re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII),
}


def has_dot_segment(path: str) -> bool:
    """Whether a segment is `.` or `..`, encoded or not, where a backslash counts as a slash: the core refuses that."""
    return any(segment in (b".", b"..") for segment in re.split(rb"[/\\]", percent_decode(path.encode())))


def _segment(path: str, text: str) -> str | Parameter:
    if not text.startswith("{"):
        if (foreign := _FOREIGN.fullmatch(text)) is not None:
            meant = f"{{{foreign[1] or foreign[2]}}}" if foreign.lastindex else "{rest:path}"
            raise SignatureError(f"in {path!r}, {text} is plain text: write {meant} for a parameter")
        if "{" in text or "}" in text:
            raise SignatureError(f"in {path!r}, a parameter is a whole segment")
        return text
    name, _, kind = text[1:-1].partition(":")
    if not text.endswith("}") or not name.isidentifier() or kind not in _KINDS or text.count("{") > 1:
        raise SignatureError(
            f"{path!r}: {text!r} is not a parameter; write {{name}}, or {{name:int}}, float, uuid, path"
        )
    return Parameter(name, _KINDS[kind])


def _split(path: str) -> list[str] | None:
    """The segments, decoded one by one, so that an encoded slash does not separate; None when they are no UTF-8."""
    try:
        return [percent_decode(segment.encode()).decode() for segment in path[1:].split("/")]
    except UnicodeError:
        return None
