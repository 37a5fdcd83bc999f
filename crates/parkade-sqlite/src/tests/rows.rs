//! Results: shapes, values, parameters.

use parkade_sql::{FailureKind, Int8, Parameter, Shape};

use super::owner::{Owner, failed, options};

fn check(setup: &[&str], cases: &[(&str, Shape, &str)]) {
    let mut owner = Owner::new(options());
    for text in setup {
        owner.run(text).unwrap();
    }
    for (text, shape, json) in cases {
        assert_eq!(owner.run_as(text, *shape, Int8::Number), Ok((*json).into()), "{text}");
    }
}

#[test]
fn each_shape_has_its_text() {
    check(
        &["CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 'x'), (2, NULL)"],
        &[
            ("SELECT * FROM t ORDER BY a", Shape::Rows, "[{\"a\":1,\"b\":\"x\"},\n{\"a\":2,\"b\":null}]"),
            ("SELECT * FROM t WHERE a = 9", Shape::Rows, "[]"),
            ("SELECT * FROM t WHERE a = 2", Shape::One, "{\"a\":2,\"b\":null}"),
            ("SELECT * FROM t WHERE a = 9", Shape::One, "null"),
            ("SELECT count(*) FROM t", Shape::Value, "2"),
            ("SELECT a FROM t WHERE a = 9", Shape::Value, "null"),
            ("INSERT INTO t VALUES (3, 'y') RETURNING a", Shape::One, "{\"a\":3}"),
            ("UPDATE t SET b = 'z' WHERE a < 3", Shape::Rows, "{\"command\":\"UPDATE\",\"rows\":2}"),
            ("CREATE INDEX i ON t (a)", Shape::Rows, "{\"command\":\"CREATE INDEX\",\"rows\":0}"),
            ("WITH x AS (SELECT 1) DELETE FROM t", Shape::Rows, "{\"command\":\"DELETE\",\"rows\":3}"),
            ("VACUUM", Shape::Rows, "{\"command\":\"VACUUM\",\"rows\":0}"),
            ("PRAGMA user_version = 7", Shape::Rows, "{\"command\":\"PRAGMA\",\"rows\":0}"),
            ("PRAGMA user_version", Shape::Value, "7"),
            ("PRAGMA journal_mode", Shape::Value, "\"wal\""),
            ("PRAGMA synchronous", Shape::Value, "2"),
            ("PRAGMA foreign_keys", Shape::Value, "1"),
        ],
    );
}

#[test]
fn each_value_is_written_as_what_it_is() {
    check(
        &[
            "CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB, f BOOLEAN, j JSON, d DATE)",
            "INSERT INTO t VALUES (9007199254740993, 0.5, 'ü\"', x'666f6f', 1, ' {\"a\": [1]} ', '2026-11-22')",
            "INSERT INTO t VALUES (-1, 1e999, '', x'', 0, 'no', NULL)",
            "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, 2, 7, 1.0)",
        ],
        &[(
            "SELECT * FROM t ORDER BY rowid",
            Shape::Rows,
            "[{\"i\":9007199254740993,\"r\":0.5,\"s\":\"ü\\\"\",\"b\":\"Zm9v\",\"f\":true,\"j\": {\"a\": [1]} ,\"d\":\"2026-11-22\"},\n\
             {\"i\":-1,\"r\":\"Infinity\",\"s\":\"\",\"b\":\"\",\"f\":false,\"j\":\"no\",\"d\":null},\n\
             {\"i\":null,\"r\":null,\"s\":null,\"b\":null,\"f\":2,\"j\":7,\"d\":1}]",
        )],
    );
}

#[test]
fn integers_are_strings_where_that_is_wanted() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (i INTEGER, f BOOL, r REAL)").unwrap();
    owner.run("INSERT INTO t VALUES (5, 1, 5)").unwrap();
    let json = owner.run_as("SELECT *, 1 + 1 AS e FROM t", Shape::One, Int8::Text);
    assert_eq!(json, Ok("{\"i\":\"5\",\"f\":true,\"r\":5.0,\"e\":\"2\"}".into()));
}

#[test]
fn decimals_are_strings() {
    check(
        &[
            "CREATE TABLE t (price DECIMAL(10, 2), n numeric)",
            "INSERT INTO t VALUES (69.5, 7), ('no', 1e999), (NULL, -0.25)",
        ],
        &[(
            "SELECT * FROM t ORDER BY rowid",
            Shape::Rows,
            "[{\"price\":\"69.5\",\"n\":\"7\"},\n{\"price\":\"no\",\"n\":\"Infinity\"},\n{\"price\":null,\"n\":\"-0.25\"}]",
        )],
    );
}

#[test]
fn the_columns_are_told_with_their_declared_types() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a Varchar(10), b)").unwrap();
    let summary = owner.summary("SELECT a, b, 1 AS c FROM t");
    let columns: Vec<_> = summary.columns.iter().map(|column| (&*column.name, &*column.kind)).collect();
    assert_eq!(columns, [("a", "varchar(10)"), ("b", ""), ("c", "")]);
    assert_eq!((&*summary.command, summary.rows), ("SELECT", 0));
}

#[test]
fn a_statement_sees_the_columns_that_came_since_it_was_prepared() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    owner.run("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(owner.run("SELECT * FROM t"), Ok("[{\"a\":1}]".into()));
    owner.run("ALTER TABLE t ADD COLUMN b DEFAULT 2").unwrap();
    assert_eq!(owner.run("SELECT * FROM t"), Ok("[{\"a\":1,\"b\":2}]".into()));
}

#[test]
fn placeholders_are_numbered_in_every_way() {
    let (one, two) = (Parameter::Int(1), Parameter::Text("two".into()));
    let both = [one, two];
    let mut owner = Owner::new(options());
    for (text, json) in [
        ("SELECT $1 AS a, $2 AS b", "[{\"a\":1,\"b\":\"two\"}]"),
        ("SELECT $2 AS a, $1 AS b, $2 AS c", "[{\"a\":\"two\",\"b\":1,\"c\":\"two\"}]"),
        ("SELECT ?2 AS a, ?1 AS b", "[{\"a\":\"two\",\"b\":1}]"),
        ("SELECT ? AS a, ? AS b", "[{\"a\":1,\"b\":\"two\"}]"),
        ("SELECT $2 AS a", "[{\"a\":\"two\"}]"),
    ] {
        assert_eq!(owner.run_with(text, &both), Ok(json.into()), "{text}");
    }
}

#[test]
fn each_parameter_is_a_value_of_sqlite() {
    let mut owner = Owner::new(options());
    for (parameter, json) in [
        (Parameter::Null, "[{\"t\":\"null\",\"v\":null}]"),
        (Parameter::Bool(true), "[{\"t\":\"integer\",\"v\":1}]"),
        (Parameter::Int(i64::MIN), "[{\"t\":\"integer\",\"v\":-9223372036854775808}]"),
        (Parameter::Float(0.5), "[{\"t\":\"real\",\"v\":0.5}]"),
        (Parameter::Text("é".into()), "[{\"t\":\"text\",\"v\":\"é\"}]"),
        (Parameter::Blob([0, 255].into()), "[{\"t\":\"blob\",\"v\":\"AP8=\"}]"),
        (Parameter::Json("{}".into()), "[{\"t\":\"text\",\"v\":\"{}\"}]"),
    ] {
        assert_eq!(owner.run_with("SELECT typeof($1) AS t, $1 AS v", &[parameter]), Ok(json.into()));
    }
    let array = Parameter::Array(vec![Parameter::Int(1)]);
    assert_eq!(owner.run_with("SELECT $1", &[array]), failed(FailureKind::Unsupported));
}

#[test]
fn a_wrong_count_of_parameters_names_both_numbers() {
    let mut owner = Owner::new(options());
    for (text, wanted) in [("SELECT 1", 0), ("SELECT $1, $3", 3), ("SELECT ?, ?, ?", 3)] {
        let query = owner
            .submit(parkade_sql::DatabaseWork::Alone(super::owner::query(text, &[Parameter::Null, Parameter::Null])));
        let message = format!("placeholders in the statement: {wanted}, parameters given: 2");
        assert_eq!(owner.message(query), message);
    }
    assert_eq!(owner.run_with("SELECT :name", &[Parameter::Null]), failed(FailureKind::Unsupported));
}
