//! The known types of a database: the built-in ones, and those that were looked up.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use parkade_sql::Int8;

use super::scalar::Scalar;
use super::{Form, ValueWriter, built_in};

/// Maximum depth of references between types (an array of a domain over an array…). Then: strings.
const REFERENCE_COUNT_MAX: usize = 16;

/// The types of one database by OID.
#[derive(Debug)]
pub struct Types {
    known: HashMap<u32, Type>,
}

#[derive(Debug)]
struct Type {
    name: Cow<'static, str>,
    make: Make,
}

/// How a type is defined.
#[derive(Debug, Clone, Copy)]
enum Make {
    Scalar(Scalar),
    Array { element: u32, delimiter: u8 },
    Domain { base: u32 },
}

/// The catalogue's description of a type: a row of [`Types::LOOKUP`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub oid: u32,
    pub name: Box<str>,
    /// `b` base, `c` composite, `d` domain, `e` enum, `m` multirange, `p` pseudo, `r` range.
    pub kind: u8,
    pub element: u32,
    pub delimiter: u8,
    pub base: u32,
}

impl Described {
    /// From the columns as text. `None` if the row is malformed.
    #[must_use]
    pub fn parse(columns: &[Option<&[u8]>]) -> Option<Self> {
        let &[Some(oid), Some(name), Some(kind), Some(element), Some(delimiter), Some(base)] = columns else {
            return None;
        };
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
        Some(Self {
            oid: number(oid)?,
            name: String::from_utf8_lossy(name).into(),
            kind: *kind.first()?,
            element: number(element)?,
            delimiter: *delimiter.first()?,
            base: number(base)?,
        })
    }
}

impl Default for Types {
    fn default() -> Self {
        Self::new()
    }
}

impl Types {
    /// Looks types up by an array of OIDs.
    pub const LOOKUP: &str =
        "select oid, typname, typtype, typelem, typdelim, typbasetype from pg_catalog.pg_type where oid = any($1)";

    #[must_use]
    pub fn new() -> Self {
        let mut known = HashMap::new();
        for built_in in built_in::TYPES {
            let make = Make::Scalar(built_in.scalar);
            known.insert(built_in.oid, Type { name: built_in.name.into(), make });
            let make = Make::Array { element: built_in.oid, delimiter: built_in.delimiter };
            known.insert(built_in.array, Type { name: built_in.array_name.into(), make });
        }
        known.remove(&0); // of those that have no array
        Self { known }
    }

    /// The types that must be looked up before values of these types can be written. Call it again after
    /// [`learn`](Self::learn): an array is known before its elements are.
    #[must_use]
    pub fn unknown(&self, oids: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut unknown: Vec<u32> = oids.into_iter().filter_map(|oid| self.unknown_behind(oid)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    fn unknown_behind(&self, mut oid: u32) -> Option<u32> {
        for _ in 0..REFERENCE_COUNT_MAX {
            let Some(known) = self.known.get(&oid) else { return Some(oid) };
            match known.make {
                Make::Scalar(_) => return None,
                Make::Array { element, .. } => oid = element,
                Make::Domain { base } => oid = base,
            }
        }
        None
    }

    /// Stores the database's answer about the types in `asked`. Types that the database does not know either are
    /// written as strings, so that they are looked up only once.
    pub fn learn(&mut self, asked: &[u32], rows: impl IntoIterator<Item = Described>) {
        for row in rows {
            let make = match row.kind {
                b'd' => Make::Domain { base: row.base },
                b'b' if row.element != 0 => Make::Array { element: row.element, delimiter: row.delimiter },
                _ => Make::Scalar(Scalar::Text),
            };
            self.known.entry(row.oid).or_insert(Type { name: row.name.into_string().into(), make });
        }
        for &oid in asked {
            self.known.entry(oid).or_insert(Type { name: "".into(), make: Make::Scalar(Scalar::Text) });
        }
    }

    /// The name in the database: `timestamptz`, `_int4`. Empty if unknown.
    #[must_use]
    pub fn name(&self, oid: u32) -> &str {
        self.known.get(&oid).map_or("", |known| &known.name)
    }

    /// The writer for values of this type. Unknown types are written as strings.
    #[must_use]
    pub fn writer(&self, oid: u32, int8: Int8) -> ValueWriter {
        self.writer_behind(oid, int8, 0)
    }

    fn writer_behind(&self, oid: u32, int8: Int8, references: usize) -> ValueWriter {
        let make = self.known.get(&oid).map_or(Make::Scalar(Scalar::Text), |known| known.make);
        match make {
            Make::Scalar(Scalar::Int8) if int8 == Int8::Text => ValueWriter(Form::Scalar(Scalar::Text)),
            Make::Scalar(scalar) => ValueWriter(Form::Scalar(scalar)),
            Make::Array { .. } | Make::Domain { .. } if references == REFERENCE_COUNT_MAX => {
                ValueWriter(Form::Scalar(Scalar::Text))
            }
            Make::Array { element, delimiter } => {
                let element = Arc::new(self.writer_behind(element, int8, references + 1));
                ValueWriter(Form::Array { element, delimiter })
            }
            Make::Domain { base } => self.writer_behind(base, int8, references + 1),
        }
    }
}
