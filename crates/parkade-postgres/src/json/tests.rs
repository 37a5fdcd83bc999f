//! Each kind of type with its texts; the types that are looked up; and random input, which always becomes JSON.

use std::fmt::Write as _;

use bytes::BytesMut;
use parkade_sql::Int8;

use super::*;

/// The types of a database with a few of its own.
fn types() -> Types {
    let described = |oid, name: &str, kind, element, base| Described {
        oid,
        name: name.into(),
        kind,
        element,
        delimiter: b',',
        base,
    };
    let mut types = Types::new();
    let rows = [
        described(20_001, "mood", b'e', 0, 0),
        described(20_002, "_mood", b'b', 20_001, 0),
        described(20_003, "share", b'd', 0, 1700),
        described(20_004, "_share", b'b', 20_003, 0),
        described(20_005, "address", b'c', 0, 0),
        described(20_006, "pair", b'd', 1007, 1007),
        described(20_007, "_pair", b'b', 20_006, 0),
        described(20_008, "round", b'd', 0, 20_008),
    ];
    types.learn(&[], rows);
    types
}

fn oid(name: &str) -> u32 {
    let types = types();
    (1..25_000).find(|oid| types.name(*oid) == name).unwrap_or_else(|| panic!("there is no type {name}"))
}

fn written(oid: u32, int8: Int8, text: &[u8]) -> String {
    let mut out = BytesMut::from(&b"before "[..]);
    types().writer(oid, int8).write(&mut out, text);
    String::from_utf8(out.to_vec()).unwrap().strip_prefix("before ").unwrap().to_owned()
}

fn check(name: &str, cases: &[(&str, &str)]) {
    for (text, json) in cases {
        assert_eq!(written(oid(name), Int8::Number, text.as_bytes()), *json, "{name} {text}");
    }
}

#[test]
fn numbers_are_copied() {
    check("int2", &[("-32768", "-32768"), ("0", "0")]);
    check("int8", &[("9223372036854775807", "9223372036854775807")]);
    check("oid", &[("4294967295", "4294967295")]);
    check("float4", &[("0.1", "0.1"), ("1e+20", "1e+20"), ("1e-05", "1e-05"), ("-0", "-0")]);
    check("float8", &[("1.7976931348623157e+308", "1.7976931348623157e+308"), ("NaN", r#""NaN""#)]);
}

#[test]
fn decimals_are_strings() {
    check("numeric", &[("0.10", r#""0.10""#), ("12345678901234567890.5", r#""12345678901234567890.5""#)]);
    check("numeric", &[("NaN", r#""NaN""#), ("Infinity", r#""Infinity""#), ("-Infinity", r#""-Infinity""#)]);
    check("_numeric", &[("{1.50,NULL}", r#"["1.50",null]"#)]);
}

#[test]
fn int8_is_a_string_where_that_is_wanted() {
    for (name, text, json) in
        [("int8", "12", r#""12""#), ("_int8", "{12,NULL}", r#"["12",null]"#), ("int4", "12", "12"), ("oid", "12", "12")]
    {
        assert_eq!(written(oid(name), Int8::Text, text.as_bytes()), json, "{name}");
    }
}

#[test]
fn booleans_and_json_are_themselves() {
    check("bool", &[("t", "true"), ("f", "false"), ("maybe", r#""maybe""#)]);
    check("json", &[("{\"a\":\n [1]}", "{\"a\":\n [1]}"), (" null ", " null "), ("{", r#""{""#), ("", r#""""#)]);
    check("jsonb", &[(r#"{"a": "\u00fc"}"#, r#"{"a": "\u00fc"}"#)]);
}

#[test]
fn half_a_surrogate_pair_becomes_the_replacement_character() {
    check(
        "json",
        &[
            (r#""\ud800""#, r#""\ufffd""#),
            (r#"{"\uDC00":"a\uD83D\uDE00\udbff"}"#, r#"{"\ufffd":"a\uD83D\uDE00\ufffd"}"#),
            (r#"["\ud83d\ud83d\ude00","\\ud800"]"#, r#"["\ufffd\ud83d\ude00","\\ud800"]"#),
        ],
    );
    check("_json", &[(r#"{"\"\\udfff\""}"#, r#"["\ufffd"]"#)]);
}

#[test]
fn everything_else_is_a_string() {
    check("text", &[("", r#""""#), ("ü \"\\\n", r#""ü \"\\\n""#)]);
    check("timestamp", &[("2026-11-22 03:04:05.678", r#""2026-11-22 03:04:05.678""#)]);
    check("interval", &[("1 year 2 mons 3 days 04:05:06", r#""1 year 2 mons 3 days 04:05:06""#)]);
    check("xid8", &[("18446744073709551615", r#""18446744073709551615""#)]);
    check("money", &[("$1,000.00", r#""$1,000.00""#)]);
    check("int4range", &[("[1,5)", r#""[1,5)""#)]);
    check("int2vector", &[("1 2", r#""1 2""#)]);
    check("mood", &[("sad", r#""sad""#)]);
    check("address", &[(r#"("a ""b""",1)"#, r#""(\"a \"\"b\"\"\",1)""#)]);
    assert_eq!(written(99_999, Int8::Number, b"12"), r#""12""#);
    assert_eq!(written(25, Int8::Number, b"a\xffb"), "\"a\u{fffd}b\"");
}

#[test]
fn bytea_is_base64() {
    check("bytea", &[("\\x", r#""""#), ("\\x66", r#""Zg==""#), ("\\xDEADbeef", r#""3q2+7w==""#)]);
    check("bytea", &[("f\\\\\\000\\377", r#""ZlwA/w==""#), ("foo", r#""Zm9v""#)]); // bytea_output = escape
    check("bytea", &[("\\x6", r#""\\x6""#), ("\\xzz", r#""\\xzz""#), ("a\\9", r#""a\\9""#), ("\\477", r#""\\477""#)]);
}

#[test]
fn timestamptz_is_rfc_3339_where_that_can_say_it() {
    check(
        "timestamptz",
        &[
            ("2026-11-22 03:04:05.678+00", r#""2026-11-22T03:04:05.678Z""#),
            ("2026-11-22 03:04:05+00:00", r#""2026-11-22T03:04:05Z""#),
            ("2026-11-22 03:04:05+02", r#""2026-11-22T03:04:05+02:00""#),
            ("2026-11-22 03:04:05-03:30", r#""2026-11-22T03:04:05-03:30""#),
            ("1800-01-01 00:00:00+00:53:28", r#""1800-01-01 00:00:00+00:53:28""#),
            ("0044-03-15 12:00:00+00 BC", r#""0044-03-15 12:00:00+00 BC""#),
            ("12026-11-22 03:04:05+00", r#""12026-11-22 03:04:05+00""#),
            ("infinity", r#""infinity""#),
            ("-infinity", r#""-infinity""#),
            ("Sun 22 Nov 03:04:05 2026 UTC", r#""Sun 22 Nov 03:04:05 2026 UTC""#),
            ("2026-11-22 03:04:05.+00", r#""2026-11-22 03:04:05.+00""#),
            ("2026-11-22 03:04:05", r#""2026-11-22 03:04:05""#),
        ],
    );
}

#[test]
fn arrays_are_arrays() {
    check("_int4", &[("{}", "[]"), ("{1,NULL,-3}", "[1,null,-3]"), ("{{1,2},{3,4}}", "[[1,2],[3,4]]")]);
    check("_int4", &[("[2:4]={1,2,3}", "[1,2,3]"), ("[-1:0][5:5]={{1},{2}}", "[[1],[2]]")]);
    check("_text", &[(r#"{a,"b c","","NULL",NULL,"\"\\{,}"}"#, r#"["a","b c","","NULL",null,"\"\\{,}"]"#)]);
    check("_float8", &[("{0.5,NaN,-Infinity}", r#"[0.5,"NaN","-Infinity"]"#)]);
    check("_bool", &[("{t,f}", "[true,false]")]);
    check("_bytea", &[(r#"{"\\x6869",NULL}"#, r#"["aGk=",null]"#)]);
    check("_jsonb", &[(r#"{"{\"a\": [1, \"}\"]}",null,NULL}"#, r#"[{"a": [1, "}"]},null,null]"#)]);
    check("_timestamptz", &[(r#"{"2026-11-22 03:04:05+00",infinity}"#, r#"["2026-11-22T03:04:05Z","infinity"]"#)]);
    check("_box", &[("{(2,2),(1,1);(4,4),(3,3)}", r#"["(2,2),(1,1)","(4,4),(3,3)"]"#)]);
    check("_mood", &[("{sad,NULL}", r#"["sad",null]"#)]);
    check("_int4range", &[(r#"{"[1,5)",empty}"#, r#"["[1,5)","empty"]"#)]);
}

#[test]
fn a_domain_is_what_it_is_based_on() {
    check("share", &[("0.50", r#""0.50""#)]);
    check("_share", &[("{0.50,NaN}", r#"["0.50","NaN"]"#)]);
    check("pair", &[("{1,2}", "[1,2]")]);
    check("_pair", &[(r#"{"{1,2}","{3,NULL}"}"#, "[[1,2],[3,null]]")]);
    check("round", &[("1", r#""1""#)]);
}

#[test]
fn what_is_no_array_literal_is_a_string() {
    for text in [
        "",
        "{",
        "}",
        "{1",
        "{1,}",
        "{,1}",
        "{1}}",
        "{1},",
        "{{1}",
        "{\"a}",
        "{\"a\\\"}",
        "{\"a\\",
        "[1:2]",
        "[1:2]={",
        "[x]={1}",
        "{a\"b}",
        "1",
        "{{{{{{{1}}}}}}}",
    ] {
        let json = written(oid("_int4"), Int8::Number, text.as_bytes());
        assert_eq!(json, written(oid("text"), Int8::Number, text.as_bytes()));
    }
}

#[test]
fn types_are_learnt_once_with_all_that_they_refer_to() {
    let row = |texts: [&'static str; 6]| Described::parse(&texts.map(|text| Some(text.as_bytes()))).unwrap();
    let mut types = Types::new();
    assert_eq!(types.unknown([23, 1007, 20_002, 25, 20_002]), [20_002]);
    types.learn(&[20_002], [row(["20002", "_even", "b", "20001", ",", "0"])]);
    assert_eq!(types.unknown([20_002]), [20_001]);
    types.learn(&[20_001], [row(["20001", "even", "d", "0", ",", "23"])]);
    assert!(types.unknown([20_001, 20_002]).is_empty());
    assert_eq!((types.name(20_001), types.name(20_002)), ("even", "_even"));

    // One that the database does not know either, because it was dropped in the meantime.
    assert_eq!(types.unknown([30_000]), [30_000]);
    types.learn(&[30_000], []);
    assert_eq!((types.unknown([30_000]), types.name(30_000)), (vec![], ""));
}

#[test]
fn a_row_of_the_catalogue_that_is_none_is_not_taken() {
    let whole: [Option<&[u8]>; 6] = [Some(b"1"), Some(b"a"), Some(b"b"), Some(b"0"), Some(b","), Some(b"0")];
    assert!(Described::parse(&whole).is_some());
    for index in [0, 2, 3, 4, 5] {
        let mut broken = whole;
        broken[index] = Some(b"");
        assert_eq!(Described::parse(&broken), None);
        broken[index] = None;
        assert_eq!(Described::parse(&broken), None);
    }
    assert_eq!(Described::parse(&whole[..5]), None);
}

#[test]
fn whatever_comes_the_result_is_json() {
    let samples: [&[u8]; 8] = [
        br#"{"a\"b",NULL,{1,2},x}"#,
        b"[2:3]={{1,2},{3,4}}",
        b"2026-11-22 03:04:05.678+00",
        b"\\x0123abCD",
        b"a\\\\b\\377\\001",
        b"{\"a\": [1, 2.5e+3, \"\\u00fc\"], \"b\": null}",
        b"-12.50e-07",
        b"{(1,2),(3,4);NULL}",
    ];
    let oids: Vec<u32> = {
        let types = types();
        (1..25_000).filter(|oid| !types.name(*oid).is_empty()).collect()
    };
    let writers: Vec<_> = oids.iter().map(|oid| types().writer(*oid, Int8::Number)).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4_000 {
        let mut text = samples[random.below(samples.len())].to_vec();
        for _ in 0..random.below(6) {
            random.change(&mut text);
        }
        for (writer, oid) in writers.iter().zip(&oids) {
            let mut out = BytesMut::new();
            writer.write(&mut out, &text);
            let is_json =
                serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok() && std::str::from_utf8(&out).is_ok();
            assert!(is_json, "type {oid}: {} became {}", shown(&text), shown(&out));
        }
    }
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % count as u64).unwrap()
    }

    /// A byte is added, removed or changed; usually to one with a special meaning.
    fn change(&mut self, text: &mut Vec<u8>) {
        let special = b"{}[]\",;\\:=+-.0123456789eENULtrufalsx \n\0\xff";
        let byte =
            if self.below(4) == 0 { self.below(256).to_le_bytes()[0] } else { special[self.below(special.len())] };
        let at = self.below(text.len() + 1);
        match self.below(3) {
            0 => text.insert(at, byte),
            1 if at < text.len() => drop(text.remove(at)),
            _ if at < text.len() => text[at] = byte,
            _ => text.truncate(at / 2),
        }
    }
}

fn shown(text: &[u8]) -> String {
    text.iter().fold(String::new(), |mut shown, byte| {
        let _ = write!(shown, "{}", byte.escape_ascii());
        shown
    })
}
