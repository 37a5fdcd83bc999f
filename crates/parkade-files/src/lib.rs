//! Files for HTTP clients: which file a path names, and what is answered for a file and a request (RFC 9110).
//!
//! Decisions only: nothing here opens a file, reads a clock or knows a connection. What a file is like, and what time it
//! is, are arguments.

mod answer;
mod asked;
mod conditions;
mod content_type;
mod encoding;
mod location;
mod range;
mod validators;

pub use answer::{FileAnswer, FileBody, answer};
pub use asked::Asked;
pub use conditions::{Conditions, Precondition};
pub use content_type::content_type;
pub use encoding::{Encoding, Encodings};
pub use location::{FileLocation, LocationRules};
pub use range::{ByteRange, Selected};
pub use validators::{FileFacts, Validators};
