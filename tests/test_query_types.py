"""PostgreSQL's values become JSON according to the rules: the reference is `psql`, read by `harness/shown.py`.

The core writes the JSON; no worker takes part.
"""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from .conftest import Serve
from .harness.postgres import Postgres
from .harness.server import Server
from .harness.shown import Number, Oracle, exactly

DATABASE = "types"

# Whatever the settings of a database, the core requests a format that it can read.
HOSTILE = {
    "datestyle": "'German, DMY'",
    "timezone": "'Asia/Kolkata'",
    "intervalstyle": "'iso_8601'",
    "bytea_output": "'escape'",
    "extra_float_digits": "0",
}

SAMPLES: dict[str, list[str]] = {
    "bool": ["t", "f"],
    "int2": ["0", "-32768", "32767"],
    "int4": ["0", "-2147483648", "2147483647"],
    "int8": ["0", "-9223372036854775808", "9223372036854775807"],
    "oid": ["0", "4294967295"],
    "float4": ["0.1", "-0", "1e20", "1e-20", "3.4028235e38", "NaN", "Infinity", "-Infinity"],
    "float8": ["0.1", "-0", "1e300", "5e-324", "123456789012345680000", "NaN", "Infinity", "-Infinity"],
    "numeric": ["0", "0.10", "-1e40", "1e-40", "12345678901234567890.1234567890", "NaN", "Infinity", "-Infinity"],
    "money": ["1234.5", "-0.01"],
    "text": ["", " ", "NULL", "null", "ü€𝄞", 'a"b\\c', "{a,b}", "a,b", "line\nbreak\r\ttab", "\x01\x7f", "'"],
    "varchar": ["", "a b"],
    "bpchar": ["", "a "],
    "name": ["", "a name"],
    "char": ["a", "", '"', "\\"],
    "bytea": ["\\x", "\\x00", "\\xdeadbeef", "\\x5c5c6869", "\\x" + bytes(range(256)).hex()],
    "json": ["null", "1.50", '{"a" : [1, {"b": null}],\n "a": 2}', '"\\u00fc\\ud834\\udd1e"', "[]", " [1 ] "],
    "jsonb": ["null", "1.50", '{"a": [1, {"b": null}]}', '"a\\nb"', "[]", "1e3"],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "xml": ['<a b="c">d &amp; e</a>'],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["2026-11-22", "0044-03-15 BC", "infinity", "-infinity", "5874897-12-31", "0001-01-01"],
    "time": ["00:00", "23:59:59.999999", "24:00:00"],
    "timetz": ["03:04:05.678+05:30", "03:04:05-08"],
    "timestamp": ["2026-11-22 03:04:05.678", "0044-03-15 12:00 BC", "infinity", "-infinity", "294276-12-31 23:59:59"],
    "timestamptz": [
        "2026-11-22 03:04:05.678+00",
        "2026-11-22 03:04:05+05:30",
        "2026-11-22 00:00:00-08",
        "1800-01-01 00:00 Europe/Berlin",
        "0044-03-15 12:00+00 BC",
        "0001-01-01 00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "10000-01-01 00:00+00",
        "infinity",
        "-infinity",
    ],
    "interval": ["0", "1 year 2 mons -3 days 04:05:06.789", "-00:00:01"],
    "inet": ["192.168.0.1/24", "::1"],
    "cidr": ["10.0.0.0/8", "2001:db8::/32"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit": ["101", "0"],
    "varbit": ["", "10101"],
    "point": ["(1.5,-2)", "(NaN,Infinity)"],
    "line": ["{1,2,3}"],
    "lseg": ["[(0,0),(1,1)]"],
    "box": ["(2,2),(1,1)"],
    "path": ["((0,0),(1,1))", "[(0,0),(1,1)]"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(0,0),1.5>"],
    "tsvector": ["'a':1A 'b c':2,3", ""],
    "tsquery": ["'a' & !'b c':*", ""],
    "int4range": ["[1,5)", "empty", "(,)"],
    "int8range": ["[1,5)"],
    "numrange": ["(0.5,]", "[NaN,NaN]"],
    "daterange": ["[2026-11-22,infinity]"],
    "tsrange": ['["2026-11-22 03:04:05",)'],
    "tstzrange": ['["2026-11-22 03:04:05+00",)'],
    "int4multirange": ["{}", "{[1,3),[5,9)}"],
    "int8multirange": ["{[1,3)}"],
    "nummultirange": ["{(0.5,1]}"],
    "datemultirange": ["{[2026-11-22,2026-11-24)}"],
    "tsmultirange": ['{["2026-11-22 03:04:05",)}'],
    "tstzmultirange": ['{["2026-11-22 03:04:05+00",)}'],
    "pg_lsn": ["0/16B3748"],
    "pg_snapshot": ["10:20:10,14,15"],
    "txid_snapshot": ["10:20:10,14,15"],
    "tid": ["(0,1)"],
    "xid": ["7", "4294967295"],
    "cid": ["7"],
    "xid8": ["7", "18446744073709551615"],
    "refcursor": ["a cursor"],
    "aclitem": ["postgres=r/postgres"],
    "regproc": ["-", "pg_typeof"],
    "regprocedure": ['pg_typeof("any")'],
    "regoper": ["||/"],
    "regoperator": ["+(integer,integer)"],
    "regclass": ["pg_class", "-"],
    "regtype": ["timestamp with time zone"],
    "regrole": ["postgres"],
    "regnamespace": ["pg_catalog"],
    "regconfig": ["simple"],
    "regdictionary": ["simple"],
    "regcollation": ['"C"'],
}

# Values that no text can create are taken from where they exist; missing types have a reason.
EXPRESSIONS = {
    "pg_node_tree": "(select proargdefaults from pg_proc where proargdefaults is not null order by oid limit 1)",
    "pg_ndistinct": "(select stxdndistinct from pg_statistic_ext_data)",
    "pg_dependencies": "(select stxddependencies from pg_statistic_ext_data)",
    "pg_mcv_list": "(select stxdmcv from pg_statistic_ext_data)",
}
UNPRINTED = {
    "gtsvector": "lives inside of an index",
    "pg_brin_bloom_summary": "lives inside of an index",
    "pg_brin_minmax_multi_summary": "lives inside of an index",
}

OWN_TYPES = """
create type mood as enum ('sad', 'ok', 'very happy', 'NULL', '');
create domain share as numeric check (value >= 0);
create domain half as share;
create domain pair as int4[];
create domain moment as timestamptz;
create type address as (street text, number int4, since moment, tags text[]);
create type span as range (subtype = float8, multirange_type_name = spans);
create schema other;
create domain other.int4 as text;
create type other.bool as enum ('t', 'f');
"""

OWN = {
    "an enum": ["'very happy'::mood", "''::mood", "array['sad', 'NULL', null, 'very happy']::mood[]"],
    "a domain": ["0.50::share", "'NaN'::share", "array[0.50, null]::share[]", "null::share"],
    "a domain of a domain": ["0.50::half", "array[array[0.50], array['Infinity']]::half[]"],
    "a domain of arrays": ["'{1,2}'::pair", """'{"{1,2}","{}",NULL,"{{1},{NULL}}"}'::pair[]"""],
    "a domain of moments": ["'2026-11-22 03:04+00'::moment", "array['infinity'::moment, '2026-11-22 03:04+00']"],
    "a composite": [
        """row('a "b", (c)', 1, '2026-11-22 03:04+00', array['x y', null])::address""",
        "array[row('a', null, null, null)::address, null]",
        "row(1, 'a', null)",
        "array[row(1, 'a b')]",
    ],
    "a range": ["'[0.5,1e20)'::span", "array['empty'::span]", "'{[0.5,1),[2,3)}'::spans", "array['{}'::spans]"],
    "a type that is called as a built-in one": [
        "'5'::other.int4",
        "array['5', null]::other.int4[]",
        "'t'::other.bool",
        "array['t', 'f']::other.bool[]",
    ],
    "what stands for other types": [
        "'a'",
        "(select most_common_vals from pg_stats where most_common_vals is not null limit 1)",
    ],
    "a whole row": ["(select d from pg_database d where datname = 'types')"],
}


@pytest.fixture(scope="module")
def oracle(postgres: Postgres) -> Oracle:
    postgres.psql(f"drop database if exists {DATABASE} with (force)")
    postgres.psql(f"create database {DATABASE}")
    settings = "".join(f"alter database {DATABASE} set {name} = {value};" for name, value in HOSTILE.items())
    statistics = """
        create table sampled as select n % 2 as a, n % 2 as b from generate_series(1, 100) n;
        create statistics sampling on a, b from sampled;
        analyze sampled;
    """
    postgres.psql(settings + OWN_TYPES + statistics, DATABASE)
    return Oracle(postgres, DATABASE)


@pytest.fixture(scope="module")
def shared(serve_for_all: Serve, postgres: Postgres, oracle: Oracle) -> Server:
    return serve_for_all("queries", database=postgres.url_of(DATABASE), database_slots=2)


def asked(server: Server, sql: str, shape: str = "one", **more: object) -> Any:
    """The response over HTTP, with its numbers as texts."""
    answer = server.post(f"/{shape}", json.dumps({"sql": sql, **more}).encode())
    assert answer.status == 200, answer.text
    return exactly(answer.body)


def check(server: Server, oracle: Oracle, *values: str) -> None:
    columns = ", ".join(f"{value} as v{number}" for number, value in enumerate(values))
    got = asked(server, f"select {columns}")
    for value, want, have in zip(values, oracle.rows(*values), got.values(), strict=True):
        assert have == want, value


def has_xml(postgres: Postgres) -> bool:
    try:
        return bool(postgres.psql("select '<a/>'::xml"))
    except AssertionError:
        return False


def literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize("name", SAMPLES)
def test_each_built_in_type_its_null_and_its_arrays_are_what_psql_shows(
    server: Server, oracle: Oracle, name: str
) -> None:
    if name == "xml" and not has_xml(oracle.postgres):
        pytest.skip("this PostgreSQL was built without libxml")
    kind = f'pg_catalog."{name}"'
    values = [f"{literal(text)}::{kind}" for text in SAMPLES[name]]
    first, last = values[0], values[-1]
    arrays = [
        f"array[{', '.join(values)}, null]",
        f"array[array[{first}, null], array[null, {last}]]",
        f"array_fill({last}, array[2, 1], array[-1, 5])",
        f"(array[{first}])[2:1]",
    ]
    check(server, oracle, *values, f"null::{kind}", *arrays)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_type_without_input_is_what_psql_shows(server: Server, oracle: Oracle, name: str) -> None:
    check(server, oracle, EXPRESSIONS[name])


def test_vectors_are_strings_and_their_arrays_arrays(server: Server, oracle: Oracle) -> None:
    check(server, oracle, "'1 2'::int2vector", "'1 2'::oidvector", """'{"1 2",NULL}'::_int2vector""")
    assert asked(server, "select '1 2'::int2vector", "value") == "1 2"


def test_no_built_in_type_is_left_out(postgres: Postgres) -> None:
    sql = "select typname from pg_type where oid < 16384 and typtype in ('b', 'r', 'm') and typcategory <> 'A'"
    names = {name for (name,) in postgres.psql(sql)}
    assert names == {*SAMPLES, *EXPRESSIONS, *UNPRINTED}


@pytest.mark.parametrize("what", OWN)
def test_a_type_of_ones_own_is_what_psql_shows(server: Server, oracle: Oracle, what: str) -> None:
    check(server, oracle, *OWN[what])


def test_a_type_that_is_made_while_the_server_runs_is_known(server: Server, oracle: Oracle, postgres: Postgres) -> None:
    asked(server, "select 1")
    postgres.psql("create domain late as int4[]", DATABASE)
    check(server, oracle, "array['{1}'::late]", "'{2}'::late")


def test_int8_comes_as_text_where_that_is_asked_for(server: Server) -> None:
    sql = "select 1::int8 as a, array[1, null]::int8[] as b, 1::int4 as c, 1::numeric as d"
    told = asked(server, sql, int8="string")
    assert told == {"a": "1", "b": ["1", None], "c": Number("1"), "d": "1"}


@pytest.mark.parametrize("seed", range(4))
def test_random_values_are_what_psql_shows(server: Server, oracle: Oracle, seed: int) -> None:
    chance = random.Random(seed)
    alphabet = "aü€𝄞 \t\n\r\"'\\{}[](),;:=NULL\x01\x7f"

    def text() -> str:
        return "".join(chance.choices(alphabet, k=chance.randrange(12)))

    def array(kind: str, values: list[str]) -> str:
        return f"array[{', '.join(literal(value) for value in values)}]::{kind}[]"

    floats = [repr(struct.unpack("d", chance.randbytes(8))[0]) for _ in range(50)]
    seconds = [f"{chance.uniform(-2.1e11, 2.5e11):.6f}" for _ in range(50)]
    check(
        server,
        oracle,
        array("text", [text() for _ in range(50)]),
        *(literal(text()) for _ in range(20)),
        array("jsonb", [json.dumps({text(): [text(), chance.random()]}) for _ in range(20)]),
        array("bytea", ["\\x" + chance.randbytes(chance.randrange(9)).hex() for _ in range(50)]),
        array("float8", floats),
        f"array(select to_timestamp(s) from unnest({array('float8', seconds)}) s)",
        f"(select array_agg(row(t, n)) from unnest({array('text', [text() for _ in range(20)])}, "
        f"{array('float8', floats)}) as v(t, n))",
    )
