//! Which channel keeps how much: the rule with the longest pattern that matches its name.

use crate::limits::CHANNEL_RULES_COUNT_MAX;
use parkade_model::{ChannelName, HistoryLimits};

#[derive(Debug)]
pub struct HistoryRules {
    otherwise: HistoryLimits,
    rules: Vec<HistoryRule>,
}

#[derive(Debug)]
struct HistoryRule {
    pattern: String,
    limits: HistoryLimits,
}

impl HistoryRules {
    pub fn new(otherwise: HistoryLimits) -> Self {
        Self { otherwise, rules: Vec::new() }
    }

    /// Longest patterns first. Whether anything changed.
    pub fn learn(&mut self, pattern: &str, limits: HistoryLimits) -> bool {
        if let Some(rule) = self.rules.iter_mut().find(|rule| rule.pattern == pattern) {
            let changed = rule.limits != limits;
            rule.limits = limits;
            return changed;
        }
        if self.rules.len() >= CHANNEL_RULES_COUNT_MAX {
            return false;
        }
        let place = self.rules.partition_point(|rule| length(&rule.pattern) >= length(pattern));
        self.rules.insert(place, HistoryRule { pattern: pattern.to_owned(), limits });
        true
    }

    /// What applications say is of their channels.
    pub fn limits(&self, name: &ChannelName) -> HistoryLimits {
        if name.is_own() {
            return self.otherwise;
        }
        self.rules.iter().find(|rule| matches(&rule.pattern, name.as_str())).map_or(self.otherwise, |rule| rule.limits)
    }
}

/// How much of a name it fixes; a whole name is longer than the prefix of the same bytes.
fn length(pattern: &str) -> (usize, bool) {
    match pattern.strip_suffix('*') {
        Some(prefix) => (prefix.len(), false),
        None => (pattern.len(), true),
    }
}

pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}
