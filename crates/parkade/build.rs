//! What `parkade --version` says: the version, the commit of a release build, and the target.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PARKADE_COMMIT");
    let target = env::var("TARGET").unwrap_or_default();
    let commit = env::var("PARKADE_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(commit);
    let build = commit.map_or_else(|| target.clone(), |commit| format!("{commit}, {target}"));
    println!("cargo:rustc-env=PARKADE_BUILD={build}");
}

/// Of a checkout. Only release builds ask for it: the others would be compiled anew after each commit.
fn commit() -> Option<String> {
    let out = env::var("OUT_DIR").ok()?;
    let is_release = Path::new(&out).ancestors().nth(3)?.file_name()? == "release";
    if !is_release {
        return None;
    }
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo:rerun-if-changed={head}\ncargo:rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8(said.stdout).ok()?.trim().to_owned())
}
