//! The built-in types of PostgreSQL (`pg_type.dat` of PostgreSQL 15), whose OIDs are the same in every database.

use super::scalar::Scalar;

/// A type, and its array type.
pub struct BuiltIn {
    pub oid: u32,
    pub name: &'static str,
    pub scalar: Scalar,
    /// 0: it has none.
    pub array: u32,
    pub array_name: &'static str,
    /// Separates the elements of an array.
    pub delimiter: u8,
}

macro_rules! types {
    ($($oid:literal $array:literal $name:literal $scalar:ident $($delimiter:literal)?;)*) => {
        &[$(BuiltIn {
            oid: $oid,
            name: $name,
            scalar: Scalar::$scalar,
            array: $array,
            array_name: concat!("_", $name),
            delimiter: [$($delimiter,)? b','][0],
        }),*]
    };
}

// Transaction numbers (`xid`, `cid`, `xid8`) are strings: they are not used in arithmetic, and `xid8` has 64 bits.
// So is `numeric`: it has more digits than JSON readers keep, and code that passes on a `Decimal` writes a string, too.
pub static TYPES: &[BuiltIn] = types! {
    16 1000 "bool" Bool;
    17 1001 "bytea" Bytea;
    18 1002 "char" Text;
    19 1003 "name" Text;
    20 1016 "int8" Int8;
    21 1005 "int2" Number;
    22 1006 "int2vector" Text;
    23 1007 "int4" Number;
    24 1008 "regproc" Text;
    25 1009 "text" Text;
    26 1028 "oid" Number;
    27 1010 "tid" Text;
    28 1011 "xid" Text;
    29 1012 "cid" Text;
    30 1013 "oidvector" Text;
    114 199 "json" Json;
    142 143 "xml" Text;
    194 0 "pg_node_tree" Text;
    600 1017 "point" Text;
    601 1018 "lseg" Text;
    602 1019 "path" Text;
    603 1020 "box" Text b';';
    604 1027 "polygon" Text;
    628 629 "line" Text;
    650 651 "cidr" Text;
    700 1021 "float4" Number;
    701 1022 "float8" Number;
    705 0 "unknown" Text;
    718 719 "circle" Text;
    774 775 "macaddr8" Text;
    790 791 "money" Text;
    829 1040 "macaddr" Text;
    869 1041 "inet" Text;
    1033 1034 "aclitem" Text;
    1042 1014 "bpchar" Text;
    1043 1015 "varchar" Text;
    1082 1182 "date" Text;
    1083 1183 "time" Text;
    1114 1115 "timestamp" Text;
    1184 1185 "timestamptz" Timestamptz;
    1186 1187 "interval" Text;
    1266 1270 "timetz" Text;
    1560 1561 "bit" Text;
    1562 1563 "varbit" Text;
    1700 1231 "numeric" Text;
    1790 2201 "refcursor" Text;
    2202 2207 "regprocedure" Text;
    2203 2208 "regoper" Text;
    2204 2209 "regoperator" Text;
    2205 2210 "regclass" Text;
    2206 2211 "regtype" Text;
    2249 2287 "record" Text;
    2275 1263 "cstring" Text;
    2277 0 "anyarray" Text;
    2278 0 "void" Text;
    2950 2951 "uuid" Text;
    2970 2949 "txid_snapshot" Text;
    3220 3221 "pg_lsn" Text;
    3361 0 "pg_ndistinct" Text;
    3402 0 "pg_dependencies" Text;
    3614 3643 "tsvector" Text;
    3615 3645 "tsquery" Text;
    3642 3644 "gtsvector" Text;
    3734 3735 "regconfig" Text;
    3769 3770 "regdictionary" Text;
    3802 3807 "jsonb" Json;
    3904 3905 "int4range" Text;
    3906 3907 "numrange" Text;
    3908 3909 "tsrange" Text;
    3910 3911 "tstzrange" Text;
    3912 3913 "daterange" Text;
    3926 3927 "int8range" Text;
    4072 4073 "jsonpath" Text;
    4089 4090 "regnamespace" Text;
    4096 4097 "regrole" Text;
    4191 4192 "regcollation" Text;
    4451 6150 "int4multirange" Text;
    4532 6151 "nummultirange" Text;
    4533 6152 "tsmultirange" Text;
    4534 6153 "tstzmultirange" Text;
    4535 6155 "datemultirange" Text;
    4536 6157 "int8multirange" Text;
    4600 0 "pg_brin_bloom_summary" Text;
    4601 0 "pg_brin_minmax_multi_summary" Text;
    5017 0 "pg_mcv_list" Text;
    5038 5039 "pg_snapshot" Text;
    5069 271 "xid8" Text;
};
