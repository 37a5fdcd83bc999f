"""Reads Rust files as far as `house.py` needs it: their items, without comments and tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""
    r"""|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*\""""
    r"""|b?'(?:\\(?:u\{[^}]*\}|x[0-9a-fA-F]{2}|.)|[^\\'\n])'""",
    re.DOTALL,
)
BRACKET = re.compile(r"[{}()\[\];]")
ATTRIBUTES = re.compile(r"^(?:\s*#!?\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\]]*\])*\])*\])*\s*")
HEADER = re.compile(
    r"(?:pub(?:\s*\([^)]*\))?\s+)?(?:(?:default|unsafe|async|extern\s*\"[^\"]*\")\s+)*(?:const\s+(?=(?:unsafe\s+|async\s+)*fn\b))?"
    r"(?:(?:unsafe|async)\s+)*(?P<keyword>\w+)\b(?P<rest>.*)",
    re.DOTALL,
)
TYPES = ("struct", "enum", "union", "trait", "type")
UNTIL_SEMICOLON = ("use", "const", "static", "type", "extern")


@dataclass(frozen=True, slots=True)
class Item:
    """`header` has no attributes. `body` is the text between the outermost braces, if there are any."""

    keyword: str
    header: str
    body: str
    start: int
    end: int
    is_test: bool

    @property
    def name(self) -> str:
        found = re.search(rf"\b{self.keyword}\s+(\w+)", self.header)
        return found[1] if found else ""


@dataclass(slots=True)
class Source:
    path: Path
    crate: str
    module: tuple[str, ...]
    text: str
    """Without comments and tests; strings are kept."""
    bare: str
    """The same without the contents of strings."""
    lines: int
    """Lines outside tests, including comments and blank lines."""
    items: list[Item]
    children: set[str] = field(default_factory=set)

    @property
    def types(self) -> list[Item]:
        return [item for item in self.items if item.keyword in TYPES]


def blanked(text: str, keeps_strings: bool) -> str:
    """Of the same length, with the same line breaks."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if keeps_strings and not found.startswith("/"):
            return found
        return re.sub(r"[^\n\"]" if not found.startswith("/") else r"[^\n]", " ", found)

    return NOISE.sub(blank, text)


def items(bare: str, offset: int = 0) -> Iterator[Item]:
    """The items at the outermost level of `bare`, in order."""
    start = depth = 0
    head: int | None = None
    for match in BRACKET.finditer(bare):
        bracket, at = match[0], match.start()
        ends = False
        if bracket in "{([":
            if bracket == "{" and depth == 0 and head is None:
                head = at
            depth += 1
        elif bracket == ";":
            ends = depth == 0
        else:
            depth -= 1
            ends = bracket == "}" and depth == 0 and not runs_until_semicolon(bare[start:at])
        if ends:
            yield item(bare, start, head, match.end(), offset)
            start, head = match.end(), None


def runs_until_semicolon(text: str) -> bool:
    header = HEADER.match(ATTRIBUTES.sub("", text, count=1))
    return header is not None and header["keyword"] in UNTIL_SEMICOLON


def item(bare: str, start: int, head: int | None, end: int, offset: int) -> Item:
    whole = bare[start:end]
    attributes = ATTRIBUTES.match(whole)
    skipped = attributes.end() if attributes else 0
    header = bare[start + skipped : end if head is None else head]
    found = HEADER.match(header)
    keyword = found["keyword"] if found else ""
    if keyword in UNTIL_SEMICOLON:
        header, head = whole[skipped:], None
    body = "" if head is None else bare[head + 1 : end - 1]
    is_test = bool(attributes) and "cfg(test)" in re.sub(r"\s", "", whole[:skipped])
    return Item(keyword, header.strip(), body, offset + start, offset + end, is_test)


def source(path: Path, root: Path) -> tuple[Source, set[Path]]:
    """The file without its tests, and the files that it declares as tests."""
    raw = path.read_text()
    code, bare = blanked(raw, keeps_strings=True), blanked(raw, keeps_strings=False)
    crate, _, *rest = path.relative_to(root / "crates").parts
    names = [*rest[:-1], rest[-1].removesuffix(".rs")]
    module = tuple(names[:-1] if names[-1] in ("mod", "lib", "main") else names)
    found, tests, lines = [], set(), raw.count("\n")
    for one in items(bare):
        if not one.is_test:
            found.append(one)
            continue
        start = one.start + len(bare[one.start :]) - len(bare[one.start :].lstrip())
        lines -= bare[start : one.end].count("\n") + 1
        gap = re.sub(r"[^\n]", " ", bare[one.start : one.end])
        bare = bare[: one.start] + gap + bare[one.end :]
        code = code[: one.start] + gap + code[one.end :]
        if one.keyword == "mod" and not one.body:
            folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
            tests |= {folder / f"{one.name}.rs", folder / one.name}
    children = {one.name for one in found if one.keyword == "mod" and one.header.rstrip().endswith(";")}
    return Source(path, crate, module, code, bare, lines, found, children), tests


@dataclass(slots=True)
class House:
    root: Path
    sources: list[Source]

    def of(self, crate: str, *module: str) -> list[Source]:
        return [
            source for source in self.sources if source.crate == crate and source.module[: len(module)] == tuple(module)
        ]

    def short(self, source: Source) -> str:
        return str(source.path.relative_to(self.root / "crates"))


def read(root: Path) -> House:
    """Every file below `crates/*/src` that is not a test."""
    found, tests = [], set()
    for path in sorted((root / "crates").glob("*/src/**/*.rs")):
        one, its_tests = source(path, root)
        found.append(one)
        tests |= its_tests
    return House(root, [one for one in found if one.path not in tests and not tests & set(one.path.parents)])
