//! Memory for large pieces of bodies, used again when nobody holds the piece that was in it: the processor has it in its
//! cache, and the kernel need not make pages for it.

use bytes::Bytes;

/// Buffers that are kept: a turn reads several pieces before it sends them. Then: those of the oldest pieces are freed
/// with their pieces.
const BUFFER_COUNT_MAX: usize = 6;

#[derive(Debug)]
pub struct RecycledBuffers {
    size: usize,
    /// The last pieces, the latest at the end.
    pieces: Vec<Bytes>,
    /// Whether there was a piece since the last rest.
    is_in_use: bool,
}

impl RecycledBuffers {
    /// Buffers of this size.
    pub const fn of(size: usize) -> Self {
        Self { size, pieces: Vec::new(), is_in_use: false }
    }

    /// Memory for a piece of this many bytes. A longer piece than a buffer, or a short one, has memory of its own size.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        if self.is_short(bytes) || bytes > self.size {
            return vec![0; bytes];
        }
        self.is_in_use = true;
        let free = self.pieces.iter().rposition(Bytes::is_unique).map(|at| self.pieces.remove(at));
        let mut buffer = free.and_then(|piece| piece.try_into_mut().ok()).map_or_else(Vec::new, Vec::from);
        buffer.reserve_exact(self.size.saturating_sub(buffer.len()));
        buffer.resize(bytes, 0);
        buffer
    }

    /// The piece at the beginning of such memory. A short one is copied: kept for somebody who does not read, it would
    /// hold more than twice its size otherwise.
    pub fn piece(&mut self, mut buffer: Vec<u8>, bytes: usize) -> Bytes {
        if buffer.capacity() != self.size {
            buffer.truncate(bytes);
            return buffer.into();
        }
        let copied = self.is_short(bytes).then(|| Bytes::copy_from_slice(&buffer[..bytes]));
        if copied.is_none() {
            buffer.truncate(bytes);
        }
        let kept = Bytes::from(buffer);
        let piece = copied.unwrap_or_else(|| kept.clone());
        if self.pieces.len() == BUFFER_COUNT_MAX {
            self.pieces.remove(0);
        }
        self.pieces.push(kept);
        piece
    }

    /// To be called from time to time: buffers that are not used are freed. They may lie above memory that has become
    /// free, which the allocator can only give back when they are gone.
    pub fn rest(&mut self) {
        if !std::mem::take(&mut self.is_in_use) {
            self.pieces = Vec::new();
        }
    }

    const fn is_short(&self, bytes: usize) -> bool {
        bytes < self.size / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 65_536;

    fn piece_of(buffers: &mut RecycledBuffers, room: usize, bytes: usize) -> Bytes {
        let mut buffer = buffers.take(room);
        assert_eq!(buffer.len(), room);
        buffer.fill(7);
        let piece = buffers.piece(buffer, bytes);
        assert!(piece.len() == bytes && piece.iter().all(|byte| *byte == 7));
        piece
    }

    #[test]
    fn memory_is_used_again_when_nobody_holds_its_piece() {
        let mut buffers = RecycledBuffers::of(SIZE);
        let held = piece_of(&mut buffers, SIZE, SIZE);
        let first = piece_of(&mut buffers, SIZE, 40_000);
        let (place, part) = (first.as_ptr(), first.slice(100..));
        drop(first);
        assert_ne!(piece_of(&mut buffers, SIZE, SIZE).as_ptr(), place, "a part of it is held");
        assert_eq!(part, vec![7; 39_900]);
        drop(part);
        buffers.pieces.pop();
        assert_eq!(piece_of(&mut buffers, 50_000, 50_000).as_ptr(), place);
        assert_eq!(held, vec![7; SIZE]);
    }

    #[test]
    fn pieces_that_are_held_do_not_stop_others_from_being_recycled() {
        let mut buffers = RecycledBuffers::of(SIZE);
        let held: Vec<_> = (0..100).map(|_| piece_of(&mut buffers, SIZE, SIZE)).collect();
        assert_eq!(buffers.pieces.len(), BUFFER_COUNT_MAX);
        let place = piece_of(&mut buffers, SIZE, SIZE).as_ptr();
        assert_eq!(piece_of(&mut buffers, SIZE, SIZE).as_ptr(), place);
        drop(held);
    }

    #[test]
    fn a_piece_that_turns_out_to_be_short_is_copied_and_its_memory_used_again() {
        let mut buffers = RecycledBuffers::of(SIZE);
        let held = piece_of(&mut buffers, SIZE, 1_000);
        let first = buffers.take(SIZE);
        let place = first.as_ptr();
        assert_ne!(place, held.as_ptr());
        assert!(buffers.piece(first, 0).is_empty());
        let second = buffers.take(SIZE);
        assert_eq!(second.as_ptr(), place);
    }

    #[test]
    fn buffers_that_are_not_used_are_freed() {
        let mut buffers = RecycledBuffers::of(SIZE);
        let held = piece_of(&mut buffers, SIZE, SIZE);
        buffers.rest();
        assert_eq!(buffers.pieces.len(), 1, "it has just been used");
        buffers.rest();
        assert_eq!(buffers.pieces.capacity(), 0);
        assert_eq!(held, vec![7; SIZE]);
    }

    #[test]
    fn short_and_very_long_pieces_have_memory_of_their_own_size() {
        let mut buffers = RecycledBuffers::of(SIZE);
        for bytes in [0, 1, SIZE / 2 - 1, SIZE + 1, 1_000_000] {
            let buffer = buffers.take(bytes);
            assert_eq!(buffer.capacity(), bytes);
            buffers.piece(buffer, bytes);
        }
        assert!(buffers.pieces.is_empty());
    }
}
