//! Tables whose keys are ids of our own.

use rustc_hash::FxBuildHasher;

/// For keys that no client can choose: small numbers, and ids of jobs that the store has given. The standard hasher, which withstands keys chosen
/// to collide, takes several times as long; a job needs some twenty look-ups.
pub type IdMap<K, V> = std::collections::HashMap<K, V, FxBuildHasher>;

/// The same without values.
pub type IdSet<K> = std::collections::HashSet<K, FxBuildHasher>;
