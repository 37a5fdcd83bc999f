//! The languages of applications: which one a target is written in, and which program runs it.
//!
//! | language | targets | program |
//! |---|---|---|
//! | Python | `app.py`, `module:name`, and whatever is not Perl | `--python`, the `python` next to this binary, `python3` |
//! | Perl | `app.psgi`, `app.pl`, `Some::Module`, a file whose first line runs Perl, others with `--interface psgi` | `--perl`, `perl` |
//! | any | all, with `--worker COMMAND` | that command; the target is its last argument |

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::{Interface, WorkerSettings};

/// Bytes of a file's first line that are read.
const FIRST_LINE_BYTES: u64 = 128;

/// Finds the modules of a checkout, or of an installation, if the interpreter has none of its own.
const PERL_START: &str = "push @INC, shift; require Parkade::Worker; Parkade::Worker::run(@ARGV)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Perl,
}

/// A program that runs the application: it gets the target as its last argument.
#[derive(Debug, Clone)]
pub struct Program {
    /// Absolute, or found in `PATH`.
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, &'static str)>,
    /// What must be there for it to work.
    pub needs: &'static str,
    /// What to do if it cannot be run.
    pub advice: &'static str,
}

impl Language {
    /// By its name, and otherwise by what the operator says it is written for, or by its first line.
    #[must_use]
    pub fn of(target: &str, interface: Interface) -> Self {
        let path = Path::new(target);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("psgi" | "pl") => Self::Perl,
            Some("py") => Self::Python,
            _ if target.contains("::") || interface == Interface::Psgi || runs_perl(path) => Self::Perl,
            _ => Self::Python,
        }
    }
}

impl Program {
    /// The one that runs this target.
    #[must_use]
    pub fn of(settings: &WorkerSettings, target: &str, interface: Interface) -> Self {
        if let Some(command) = &settings.worker {
            return Self::told(command);
        }
        match Language::of(target, interface) {
            Language::Python => Self::python(settings.interpreter()),
            Language::Perl => Self {
                path: settings.perl.clone().unwrap_or_else(|| "perl".into()),
                arguments: vec!["-e".into(), PERL_START.into(), perl_modules().into()],
                environment: Vec::new(),
                needs: "where the distribution Parkade must be installed",
                advice: "install Perl, or use --perl to name an interpreter",
            },
        }
    }

    /// The worker in Python, run by this interpreter.
    #[must_use]
    pub fn python(path: PathBuf) -> Self {
        Self {
            path,
            arguments: vec!["-m".into(), "parkade".into()],
            environment: vec![("PYTHONUNBUFFERED", "1")],
            needs: "where the package parkade must be installed",
            advice: "use --python to name an interpreter that has the package parkade",
        }
    }

    fn told(command: &str) -> Self {
        let mut words = command.split_whitespace();
        Self {
            path: words.next().unwrap_or_default().into(),
            arguments: words.map(OsString::from).collect(),
            environment: Vec::new(),
            needs: "which has to speak the protocol of Parkade",
            advice: "name a program with --worker",
        }
    }
}

fn runs_perl(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FIRST_LINE_BYTES).read_to_end(&mut start));
    let first = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && first.starts_with(b"#!") && first.windows(4).any(|word| word == b"perl")
}

/// The folder of the modules next to this binary: in a checkout, or below the prefix of an installation.
fn perl_modules() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    let folders = binary.ancestors().skip(1).take(4);
    let mut candidates =
        folders.flat_map(|folder| ["workers/perl/lib", "share/parkade/perl"].map(|end| folder.join(end)));
    candidates.find(|folder| folder.join("Parkade/Worker.pm").is_file()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_target_tells_its_language() {
        for target in ["app.psgi", "script/app.pl", "My::App", "lib/a.b/app.psgi"] {
            assert_eq!(Language::of(target, Interface::Auto), Language::Perl, "{target}");
        }
        for target in ["app.py", "module:app", "package.module:app", "nowhere", "shop", "app.py:other"] {
            assert_eq!(Language::of(target, Interface::Auto), Language::Python, "{target}");
        }
        assert_eq!(Language::of("Shop", Interface::Psgi), Language::Perl);
        assert_eq!(Language::of("shop.py", Interface::Psgi), Language::Python, "which says that it is none");
    }

    #[test]
    fn a_script_tells_its_language_in_its_first_line() {
        let script = std::env::temp_dir().join(format!("parkade-language-{}", std::process::id()));
        let language = |content: &str| {
            fs::write(&script, content).unwrap();
            Language::of(script.to_str().unwrap(), Interface::Auto)
        };
        assert_eq!(language("#!/usr/bin/env perl\nuse strict;\n"), Language::Perl);
        assert_eq!(language("#!/usr/bin/perl -w\n"), Language::Perl);
        assert_eq!(language("#!/usr/bin/env python3\n# perl\n"), Language::Python);
        assert_eq!(language(""), Language::Python);
        fs::remove_file(&script).unwrap();
    }

    #[test]
    fn a_command_is_split_into_its_words() {
        let program = Program::told("/opt/worker  --fast yes");
        assert_eq!(program.path, PathBuf::from("/opt/worker"));
        assert_eq!(program.arguments, ["--fast", "yes"]);
    }
}
