//! Sets of bytes, as a table: a question costs one look, whatever the set is.

/// For each byte, whether it is one of these.
pub const fn of(members: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < members.len() {
        table[members[at] as usize] = true;
        at += 1;
    }
    table
}
