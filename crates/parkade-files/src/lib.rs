//! Files for HTTP clients: which file a path names, and what is answered for a file and a request (RFC 9110).
//!
//! Decisions only: nothing here opens a file, reads a clock or knows a connection. What a file is like, and what time it
//! is, are arguments.
//!
//! | question | where |
//! |---|---|
//! | which file a path names | `location` |
//! | what is answered: the status (200, 206, 304, 412, 416), the fields, which bytes | `answer` |
//! | a `Range` header: what it asks for; what is answered | `range`; `answer` |
//! | `If-None-Match` and the others; what they are compared with | `conditions`; `validators` |
//! | which encoding is sent; its type | `encoding`; `content_type` |

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
