//! WebSocket as a server has it (RFC 6455, RFC 7692), without I/O: bytes into messages, messages into bytes.
//!
//! Nothing here opens a socket, reads a clock or decides how long to wait. A socket on which nothing is under way keeps
//! one pointer here (`MessageReader`).
//!
//! | question | file |
//! |---|---|
//! | which requests become a WebSocket, and what is answered | `upgrade_request` |
//! | which compression both ends agree on | `compression`, `window_bits` |
//! | how a frame begins, and which frames break the rules | `frame` |
//! | how frames become messages, whatever pieces they arrive in | `message_reader` |
//! | how messages become frames | `outbound`; `fragments` for one that comes in parts |
//! | why a socket is closed | `close` |
//! | what breaks the rules, and how the socket is closed then | `socket_fault` |

mod close;
mod compression;
mod deflate;
mod fragments;
mod frame;
mod inflate;
mod limits;
mod mask;
mod message_kind;
mod message_reader;
mod outbound;
mod socket_fault;
mod text;
mod upgrade_request;
mod window_bits;

pub use close::Close;
pub use compression::{Compression, CompressionOffers};
pub use deflate::Deflater;
pub use fragments::UnfinishedMessage;
pub use inflate::Inflater;
pub use limits::{CLOSE_TEXT_MAX, CONTROL_MAX};
pub use message_kind::MessageKind;
pub use message_reader::{Incoming, MessageReader, Rules};
pub use outbound::{close, compressed, message, ping, pong};
pub use socket_fault::SocketFault;
pub use upgrade_request::{UpgradeFault, UpgradeRequest};
pub use window_bits::WindowBits;
