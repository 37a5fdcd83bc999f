//! The table of kinds: number, name, the stream it belongs on. The types [`crate::FromWorker`] and [`crate::FromCore`] say which end writes which.

use std::fmt;

/// Where a kind of frame belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameScope {
    /// Stream 0, the link itself.
    Link,
    /// The stream of a request or of a job, 1 or more.
    Request,
    Either,
}

macro_rules! kinds {
    ($($variant:ident = $number:literal, $name:literal, $place:ident;)*) => {
        /// A kind of frame that this version knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind { $($variant = $number,)* }

        impl Kind {
            /// All kinds, in the order of the page.
            pub const ALL: &[Kind] = &[$(Kind::$variant,)*];

            /// The kind with this number; `None` means that the frame is skipped.
            #[must_use]
            pub const fn of(number: u8) -> Option<Kind> {
                match number { $($number => Some(Kind::$variant),)* _ => None }
            }

            /// The name that the page uses.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }

            /// On which stream it belongs.
            #[must_use]
            pub const fn place(self) -> FrameScope {
                match self { $(Kind::$variant => FrameScope::$place,)* }
            }
        }
    };
}

kinds! {
    Hello      = 0x01, "HELLO",       Link;
    Ready      = 0x02, "READY",       Link;
    Failed     = 0x03, "FAILED",      Link;
    Request    = 0x10, "REQUEST",     Request;
    Response   = 0x11, "RESPONSE",    Request;
    Data       = 0x12, "DATA",        Request;
    Window     = 0x13, "WINDOW",      Request;
    Error      = 0x14, "ERROR",       Request;
    Began      = 0x15, "BEGAN",       Request;
    EarlyHints = 0x16, "EARLY_HINTS", Request;
    Trailers   = 0x17, "TRAILERS",    Request;
    Park       = 0x20, "PARK",        Request;
    Resume     = 0x21, "RESUME",      Link;
    Publish    = 0x22, "PUBLISH",     Either;
    Cancel     = 0x23, "CANCEL",      Request;
    Unpark     = 0x24, "UNPARK",      Request;
    Credit     = 0x30, "CREDIT",      Link;
    Drain      = 0x31, "DRAIN",       Link;
    Ping       = 0x32, "PING",        Link;
    Pong       = 0x33, "PONG",        Link;
    Goodbye    = 0x34, "GOODBYE",     Link;
    Enqueue    = 0x38, "ENQUEUE",     Either;
    Run        = 0x39, "RUN",         Request;
    Result     = 0x3a, "RESULT",      Request;
    Progress   = 0x3b, "PROGRESS",    Request;
    Message    = 0x40, "MESSAGE",     Request;
    Close      = 0x41, "CLOSE",       Request;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(*kind as u8), Some(*kind));
        }
        assert_eq!(Kind::of(0x7f), None);
    }
}
