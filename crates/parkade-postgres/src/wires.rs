//! Which socket belongs to which connection, and which connection a poll's token belongs to.
//!
//! A socket is stored under its [`Line`], which is never reused: a reused number can never lead to another connection's
//! socket. Tokens are reused, so each has the generation of its place. A token of an earlier generation belongs to
//! nothing.

use parkade_sql::IdMap;

use crate::line::Line;

/// How many tokens there are before they are reused. The simulation has few, so that everything is reused all the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// Maximum number of connections that have a socket at the same time. Then: the next one is refused, like an
    /// address that does not answer.
    pub(crate) places: usize,
    pub(crate) generations: usize,
}

/// 65,535 connections are more than PostgreSQL can handle. A place would have to be taken four billion times before an
/// old token of it was accepted, and that would only cost a read that finds nothing.
/// would only cost a read that finds nothing.
pub(crate) const SPACE: Space = Space { places: 1 << 16, generations: 1 << 32 };

impl Space {
    /// Every token is less than this.
    pub(crate) const fn tokens(self) -> usize {
        self.places * self.generations
    }
}

#[derive(Debug)]
pub(crate) struct Wires<T> {
    space: Space,
    held: IdMap<Line, HeldSocket<T>>,
    /// By number. The first is unused: token 0 is the resolver's.
    places: Vec<TokenPlace>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct HeldSocket<T> {
    place: usize,
    socket: T,
}

#[derive(Debug, Default)]
struct TokenPlace {
    generation: usize,
    line: Option<Line>,
}

/// All places are taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<T> Wires<T> {
    pub(crate) fn new(space: Space) -> Self {
        Self { space, held: IdMap::default(), places: vec![TokenPlace::default()], free: Vec::new() }
    }

    /// The only way from a connection to its socket.
    fn key(&self, line: Line) -> Line {
        // Only for the proof: numbers that are reused, as before.
        if cfg!(feature = "without-owner") { Line(line.0 % (self.space.places as u64 - 1)) } else { line }
    }

    pub(crate) fn insert(&mut self, line: Line, socket: T) -> Result<(), Full> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < self.space.places => {
                self.places.push(TokenPlace::default());
                self.places.len() - 1
            }
            None => return Err(Full),
        };
        self.places[place].line = Some(line);
        let before = self.held.insert(self.key(line), HeldSocket { place, socket });
        debug_assert!(before.is_none() || cfg!(feature = "without-owner"), "a line is opened once");
        Ok(())
    }

    pub(crate) fn get(&self, line: Line) -> Option<&T> {
        self.held.get(&self.key(line)).map(|held| &held.socket)
    }

    pub(crate) fn get_mut(&mut self, line: Line) -> Option<&mut T> {
        let key = self.key(line);
        self.held.get_mut(&key).map(|held| &mut held.socket)
    }

    pub(crate) fn remove(&mut self, line: Line) -> Option<T> {
        let HeldSocket { place, socket } = self.held.remove(&self.key(line))?;
        let left = &mut self.places[place];
        left.line = None;
        left.generation = (left.generation + 1) % self.space.generations;
        self.free.push(place);
        Some(socket)
    }

    /// The token of that connection.
    pub(crate) fn token(&self, line: Line) -> Option<usize> {
        let held = self.held.get(&self.key(line))?;
        Some(self.places[held.place].generation * self.space.places + held.place)
    }

    /// The connection of a token; `None` if it has been closed.
    pub(crate) fn line_of(&self, token: usize) -> Option<Line> {
        let place = self.places.get(token % self.space.places)?;
        place.line.filter(|_| place.generation == token / self.space.places)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
#[cfg(not(feature = "without-owner"))]
mod tests {
    use super::*;

    const SMALL: Space = Space { places: 4, generations: 3 };

    #[test]
    fn a_line_that_stays_keeps_its_socket_however_many_come_and_go() {
        let mut wires = Wires::new(SMALL);
        wires.insert(Line(1), 1).unwrap();
        let token = wires.token(Line(1));
        for line in 2..1000 {
            wires.insert(Line(line), line).unwrap();
            assert_ne!(wires.token(Line(line)), token);
            assert_eq!(wires.remove(Line(line)), Some(line));
            assert_eq!((wires.get(Line(1)), wires.token(Line(1))), (Some(&1), token), "behind line {line}");
        }
    }

    #[test]
    fn a_token_of_a_line_that_is_closed_is_about_nobody() {
        let mut wires = Wires::new(SMALL);
        wires.insert(Line(1), ()).unwrap();
        let old = wires.token(Line(1)).unwrap();
        wires.remove(Line(1));
        assert_eq!(wires.line_of(old), None);
        wires.insert(Line(2), ()).unwrap();
        assert_eq!(wires.line_of(old), None, "its place has another");
        assert_eq!(wires.line_of(wires.token(Line(2)).unwrap()), Some(Line(2)));
        assert_eq!(wires.line_of(0), None, "the resolver's");
    }

    #[test]
    fn when_every_place_is_taken_the_next_line_is_refused() {
        let mut wires = Wires::new(SMALL);
        for line in 1..4 {
            wires.insert(Line(line), ()).unwrap();
        }
        assert_eq!(wires.insert(Line(4), ()), Err(Full));
        wires.remove(Line(2));
        assert_eq!(wires.insert(Line(5), ()), Ok(()));
    }
}
