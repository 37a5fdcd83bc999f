"""The counts of `scripts/house.py`, each row with a small sample."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from .harness.server import ROOT

SCRIPT = ROOT / "scripts" / "house.py"


def load(name: str) -> ModuleType:
    known = importlib.util.spec_from_file_location(name, SCRIPT.with_name(f"{name}.py"))
    assert known
    assert known.loader
    module = importlib.util.module_from_spec(known)
    sys.modules[name] = module
    known.loader.exec_module(module)
    return module


rust = load("rust_sources")
house = load("house")


@pytest.fixture
def built(tmp_path: Path) -> Callable[..., object]:
    """Reads files given as `path below crates/x/src` and text."""

    def build(crate: str = "x", **files: str) -> object:
        for name, text in files.items():
            path = tmp_path / "crates" / crate / "src" / f"{name.replace('__', '/')}.rs"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return rust.read(tmp_path)

    return build


def shorts(found: object, sources: list[object]) -> list[str]:
    return [found.short(source) for source in sources]  # type: ignore[attr-defined]


# Reading


def test_a_file_is_read_item_by_item() -> None:
    text = """
        use a::{b, c};
        #[derive(Debug)]
        pub struct Unit;
        pub(crate) struct Pair(u8, [u8; 2]);
        pub const TABLE: [u8; 2] = [{ 1 }, 2];
        pub const fn large() -> usize { 2 }
        impl<'a, T: Into<String>> Trait<T> for Pair where T: Copy { fn one() {} }
        macro_rules! m { () => {}; }
        type Short = Pair;
    """
    found = [(item.keyword, item.name) for item in rust.items(text)]
    assert [keyword for keyword, _ in found] == [
        *("use", "struct", "struct", "const", "fn", "impl", "macro_rules", "type"),
    ]
    assert [name for keyword, name in found if keyword in rust.TYPES] == ["Unit", "Pair", "Short"]


@pytest.mark.parametrize(
    "noise",
    ['"}"', "'{'", "b'{'", 'r#"a " { "#', "// {\n", "/* { */", '"\\"{"', "'\\''"],
)
def test_brackets_in_strings_and_comments_are_none(noise: str) -> None:
    assert len(list(rust.items(rust.blanked(f"fn a() {{ {noise}; }} fn b<'a>() {{}}", keeps_strings=False)))) == 2


@pytest.mark.parametrize(
    ("header", "owner"),
    [
        ("impl Core", ("Core", False)),
        ("impl<'a, T: Fn(u8) -> u8> Reader<'a, T> where T: Copy", ("Reader", False)),
        ("impl crate::core::Core", ("Core", False)),
        ("impl<T> From<Vec<T>> for Core", ("Core", True)),
        ("impl fmt::Display for &Core", ("Core", True)),
    ],
)
def test_an_impl_has_an_owner(header: str, owner: tuple[str, bool]) -> None:
    assert house.owner(header) == owner


def test_tests_are_not_counted(built: Callable[..., object]) -> None:
    found = built(
        lib="mod a;\n#[cfg(test)]\nmod tests;\nstruct S;\n#[cfg(test)]\nmod more {\n    struct S;\n}\n",
        a="struct A;\n#[cfg(test)]\nmod tests {\n    struct A;\n    fn stored(_: Stored) {}\n}\n",
        tests="struct S;\n",
    )
    assert shorts(found, found.sources) == ["x/src/a.rs", "x/src/lib.rs"]  # type: ignore[attr-defined]
    assert {found.short(one): one.lines for one in found.sources} == {"x/src/a.rs": 1, "x/src/lib.rs": 2}  # type: ignore[attr-defined]
    assert house.names(found) == {}
    assert house.mentions(found, house.WAITS["Stored"]) == []


# Objects

CORE = "pub struct Core;\nimpl Core { fn a() {} }\n"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("use crate::core::Core;\nimpl Core { fn b() {} }", True),
        ("struct Row(u8);\nimpl Core { fn b() {} }", True),
        ("struct Own;\nimpl Own { fn c() {} }\nimpl Core { fn b() {} }", False),
        ("impl std::fmt::Debug for Core { fn fmt() {} }", False),
        ("fn free(core: &mut Core) {}", False),
    ],
    ids=["methods alone", "with plain data", "with an object of its own", "a trait", "free functions"],
)
def test_a_slice_has_methods_of_somebody_else_only(built: Callable[..., object], text: str, is_one: bool) -> None:
    found = built(core=CORE, other=text)
    assert [found.short(source) for source, _ in house.slices(found)] == (  # type: ignore[attr-defined]
        ["x/src/other.rs"] if is_one else []
    )


def test_methods_are_those_of_all_files_but_of_no_trait(built: Callable[..., object]) -> None:
    found = built(
        lib="mod core; mod a; mod b;",
        core=CORE,
        a="use crate::core::Core;\nimpl Core { fn b() { fn inner() {} } pub async fn c() {} const X: u8 = 1; }",
        b="struct Core;\nimpl Core { fn d() {} }\nimpl Drop for Core { fn drop() {} }",
    )
    assert house.methods(found) == {("x/src/core.rs", "Core"): 3, ("x/src/b.rs", "Core"): 1}


def test_a_type_is_found_through_the_imports_of_others(built: Callable[..., object]) -> None:
    found = built(
        lib="pub mod server; pub mod other;",
        other="pub struct Server;",
        server__mod="mod jobs; pub struct Server;",
        server__jobs__mod="use super::Server; mod runs;",
        server__jobs__runs="use super::Server;\nimpl Server { fn a() {} }",
    )
    assert house.methods(found) == {("x/src/server/mod.rs", "Server"): 1}


# Names, words


def test_a_name_that_two_files_declare_is_told(built: Callable[..., object]) -> None:
    found = built(a="enum Place { A }", b="pub(crate) struct Place<T>(T);", c="struct Other; fn f() { struct Place; }")
    assert {name: len(where) for name, where in house.names(found).items()} == {"Place": 2}


def test_a_wait_is_mentioned_in_code(built: Callable[..., object]) -> None:
    found = built(
        a="fn f() { g(Watch::Timer) }",
        b="// Timer\n",
        c='fn f() { "timer" }',
        d="struct Timer(u8); fn f() { x.timer() }",
    )
    assert shorts(found, house.mentions(found, house.WAITS["Timer"])) == ["x/src/a.rs", "x/src/c.rs"]


def test_the_map_names_every_file_that_knows_a_wait() -> None:
    steps = (ROOT / "ARCHITECTURE.md").read_text().partition("**A wait**")[2].partition("**A frame**")[0]
    named = set(re.findall(r"`(parkade[\w-]*/src/[\w/]+\.rs)`", steps))
    found = rust.read(ROOT)
    assert {found.short(source) for source in house.mentions(found, house.WAITS["Stored"])} == named


def test_what_the_core_shows_itself_is_counted(built: Callable[..., object]) -> None:
    found = built(crate="parkade-core", a="pub(crate) struct A { pub(crate) b: u8, c: u8 } // pub(crate)\n")
    assert [count for _, count in house.visible(found)] == [2]


# Cycles


def test_two_files_that_import_each_other_are_a_cycle(built: Callable[..., object]) -> None:
    found = built(lib="mod a; mod b; mod c;", a="use crate::b::B;", b="use crate::{a::A, c::C};", c="struct C;")
    assert [shorts(found, group) for group in house.cycles(found)] == [["x/src/a.rs", "x/src/b.rs"]]


def test_a_path_in_code_is_an_import_too(built: Callable[..., object]) -> None:
    found = built(lib="mod a; mod b;", a="fn f() { crate::b::g() }", b="fn g() { super::a::f() }")
    assert len(house.cycles(found)) == 1


def test_a_re_export_leads_to_the_file_that_declares(built: Callable[..., object]) -> None:
    found = built(
        lib="mod m;",
        m__mod="mod a; mod b; pub use a::A; pub use b::B;",
        m__a="pub struct A; use super::B;",
        m__b="pub struct B; use super::A;",
    )
    assert [shorts(found, group) for group in house.cycles(found)] == [["x/src/m/a.rs", "x/src/m/b.rs"]]


def test_a_module_and_its_part_are_no_cycle(built: Callable[..., object]) -> None:
    found = built(lib="mod m;", m__mod="mod a; use a::A; pub struct M;", m__a="use super::M; pub struct A;")
    assert house.cycles(found) == []


def test_uses_are_trees() -> None:
    assert house.leaves("pub use a::{self, b::{C, D as E}, f::*};") == [
        ("a", ("a",)),
        ("C", ("a", "b", "C")),
        ("E", ("a", "b", "D")),
        ("*", ("a", "f")),
    ]


# The server


def test_a_machine_in_the_server_is_told(built: Callable[..., object]) -> None:
    found = built(
        crate="parkade",
        main="mod server;",
        server__mod="enum Hand { Full, Empty } impl Server { fn a(&mut self) { self.hand = Hand::Empty } }",
        server__jobs="enum Stage { One } struct Pressure; enum Reply { Yes } fn a() -> Reply { Reply::Yes }",
    )
    assert [line.partition(" (")[0] for line in house.machines(found)] == [
        "the COMMIT of a transaction with jobs",
        "back-pressure",
    ]
    assert house.moved(found) == ["Hand (parkade/src/server/mod.rs)"]


# The whole


def test_the_table_has_every_row_of_this_repository() -> None:
    ended = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    assert len(ended.stdout.splitlines()) == 2 + len(house.rows())


@pytest.mark.parametrize("row", [row.key for row in house.rows()])
def test_each_row_says_where_its_number_comes_from(row: str) -> None:
    assert next(one for one in house.rows() if one.key == row).parts(HERE) is not None


HERE = rust.read(ROOT)
