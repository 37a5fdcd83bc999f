//! The vectors, read from `protocol/vectors`.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use parkade_wire::{Decoder, Receive, Violation};
use serde_json::Value;

pub mod describe;
mod jobs;

/// All vectors of one folder, each with a name that finds it again.
pub fn vectors(folder: &str) -> Vec<(String, Value)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/vectors")
}

fn read(file: &Path) -> Vec<(String, Value)> {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    match serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap() {
        Value::Array(vectors) => vectors.into_iter().map(|v| (format!("{stem}: {}", text(&v["name"])), v)).collect(),
        session => vec![(stem.to_owned(), session)],
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// `0a0b 61*3` is `0a 0b 61 61 61`
pub fn bytes_of(hex: &str) -> Vec<u8> {
    hex.split_whitespace().flat_map(part).collect()
}

fn part(part: &str) -> Vec<u8> {
    let (hex, times) = part.split_once('*').map_or((part, 1), |(hex, times)| (hex, times.parse().unwrap()));
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    bytes.repeat(times)
}

/// All frames in the bytes, given whole.
pub fn whole<F: Receive>(bytes: &[u8]) -> Result<Vec<F>, Violation> {
    let mut buffer = BytesMut::from(bytes);
    let mut decoder = Decoder::<F>::default();
    let frames = drain(&mut decoder, &mut buffer)?;
    assert!(buffer.is_empty() || buffer.len() < 12, "bytes are left");
    Ok(frames)
}

/// All frames in the bytes, given one at a time.
pub fn bytewise<F: Receive>(bytes: &[u8]) -> Result<Vec<F>, Violation> {
    let mut buffer = BytesMut::new();
    let mut decoder = Decoder::<F>::default();
    let mut frames = Vec::new();
    for byte in bytes {
        buffer.extend_from_slice(&[*byte]);
        frames.extend(drain(&mut decoder, &mut buffer)?);
    }
    Ok(frames)
}

fn drain<F: Receive>(decoder: &mut Decoder<F>, buffer: &mut BytesMut) -> Result<Vec<F>, Violation> {
    std::iter::from_fn(|| decoder.next(buffer).transpose()).collect()
}

/// Random numbers from a seed (`SplitMix64`): the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}
