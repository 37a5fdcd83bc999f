// Seeded fuzzing for `cargo test`: inputs of a corpus are changed at random and combined with words of their language.
// The crates that read untrusted input include this file (`#[path]`), so that it is not a crate on which others could
// depend.
//
// The default is a few thousand inputs; with `PARKADE_FUZZ_SECONDS` it runs for that long, each time with a new seed.
// An input that fails is printed: add it to the corpus.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const INPUTS_COUNT: usize = 5_000;
const INPUT_BYTES_MAX: usize = 4_096;

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("a usize has 64 bits") % bound.max(1)
    }
}

/// Calls `check` with inputs made of `words` and of the files in `fuzz/corpus/<corpus>`; the unchanged files come
/// first.
pub fn fuzz(corpus: &str, words: &[&[u8]], check: impl Fn(&[u8])) {
    let seeds = read(corpus);
    for seed in &seeds {
        tried(seed, &check);
    }
    let seconds: Option<u64> = std::env::var("PARKADE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut random = Random(if until.is_some() { now() | 1 } else { 0x9e37_79b9_7f4a_7c15 });
    let mut count = 0;
    while until.map_or(count < INPUTS_COUNT, |until| Instant::now() < until) {
        tried(&input(&seeds, words, &mut random), &check);
        count += 1;
    }
    println!("{corpus}: {count} inputs");
}

fn read(corpus: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let files = std::fs::read_dir(&folder).expect("the corpus is in the repository");
    let mut paths: Vec<_> = files.map(|file| file.expect("the corpus can be read").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus has files");
    paths.iter().map(|path| std::fs::read(path).expect("the corpus can be read")).collect()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) ^ since.as_secs() << 20
}

fn input(seeds: &[Vec<u8>], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.splice(at..end, words[random.below(words.len())].iter().copied())),
            1 => drop(bytes.splice(at..at, words[random.below(words.len())].iter().copied())),
            2 => drop(bytes.drain(at..end)),
            3 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).expect("it is below 256"),
            4 => {
                let again = bytes[at..end].repeat(1 + random.below(8));
                bytes.splice(at..at, again);
            }
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn tried(input: &[u8], check: &impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        println!("it fails with b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}
