//! What a command prints for the person, or the pipe, behind it.

use std::io::{self, Write};

/// Prints a text and a line end. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(format!("{}\n", text.trim_end()).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}
