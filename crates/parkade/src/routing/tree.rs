//! All paths as one tree, with a level for each segment.
//!
//! This is our own tree, because `matchit` has no converters, and does not backtrack from a literal segment to a
//! parameter at the same place; the protocol requires both. Each node is visited at most once, so a search costs no
//! more than there are nodes.

use super::decode::decode;
use super::pattern::{Converter, Segment};

#[derive(Debug, Default)]
pub(super) struct RouteNode {
    /// Sorted by text.
    fixed: Vec<(Box<str>, RouteNode)>,
    /// In the order in which routes first used them.
    parameters: Vec<(Converter, RouteNode)>,
    /// Routes that end here, in order.
    routes: Vec<u32>,
}

impl RouteNode {
    pub(super) fn insert(&mut self, segments: &[Segment], route: u32) {
        match segments {
            [] => self.routes.push(route),
            [segment, rest @ ..] => self.child(segment).insert(rest, route),
        }
    }

    fn child(&mut self, segment: &Segment) -> &mut Self {
        match segment {
            Segment::Fixed(text) => {
                let place = self.fixed.binary_search_by(|(known, _)| known.cmp(text)).unwrap_or_else(|place| {
                    self.fixed.insert(place, (text.clone(), Self::default()));
                    place
                });
                &mut self.fixed[place].1
            }
            Segment::Parameter(converter) => {
                let known = self.parameters.iter().position(|(known, _)| known == converter);
                let place = known.unwrap_or_else(|| {
                    self.parameters.push((*converter, Self::default()));
                    self.parameters.len() - 1
                });
                &mut self.parameters[place].1
            }
        }
    }

    /// Offers the routes of every matching path to `accept`, best first, until it takes one. Arguments: the route's
    /// number, and the raw values of its parameters.
    pub(super) fn search<'p>(
        &self,
        path: Option<&'p str>,
        values: &mut Vec<&'p str>,
        accept: &mut impl FnMut(&[u32]) -> Option<u32>,
    ) -> Option<u32> {
        let Some(path) = path else {
            return if self.routes.is_empty() { None } else { accept(&self.routes) };
        };
        let (raw, rest) = match memchr::memchr(b'/', path.as_bytes()) {
            Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
            None => (path, None),
        };
        let text = decode(raw);
        if let Some(text) = &text
            && let Ok(place) = self.fixed.binary_search_by(|(known, _)| (**known).cmp(text))
            && let Some(route) = self.fixed[place].1.search(rest, values, accept)
        {
            return Some(route);
        }
        self.parameters.iter().find_map(|(converter, node)| {
            let (value, behind) = match converter {
                Converter::Rest => (path, None),
                _ => (raw, rest),
            };
            let accepted = match converter {
                Converter::Rest => decode(path).is_some_and(|text| converter.accepts(&text)),
                _ => text.as_ref().is_some_and(|text| converter.accepts(text)),
            };
            if !accepted {
                return None;
            }
            values.push(value);
            let found = node.search(behind, values, accept);
            if found.is_none() {
                values.pop();
            }
            found
        })
    }
}
