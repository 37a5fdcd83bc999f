//! The languages of applications: the table of what the server knows of each.
//!
//! | | Python | Perl |
//! |---|---|---|
//! | targets | `app.py`, `module:name`, and whatever is not Perl | `app.psgi`, `app.pl`, `Some::Module`, a file whose first line runs Perl, others with `--interface psgi` |
//! | program | `--python`, the `python` next to this binary, `python3` | `--perl`, `perl` |
//! | all else | [`PYTHON`] | [`PERL`] |
//!
//! With `--worker COMMAND` that command runs any target, which is its last argument.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::{Interface, OnDisconnect, ServerSettings, WorkerSettings};

/// Bytes of a file's first line that are read.
const FIRST_LINE_BYTES: u64 = 128;

/// Finds the modules of a checkout, or of an installation, if the interpreter has none of its own.
const PERL_START: &str = "push @INC, shift; eval { require Parkade::Worker } or die $@, qq(Install the distribution \
                          Parkade for this Perl: docs/perl.md says how\\n); Parkade::Worker::run(@ARGV)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Perl,
}

/// A row of the table.
#[derive(Debug)]
pub struct LanguageFacts {
    /// As workers call it in `HELLO`.
    name: &'static str,
    /// Files that are applications in this language.
    pub target_endings: &'static [&'static str],
    /// What a folder is served by: the first of these that is there.
    pub usual_files: &'static [&'static str],
    /// Code, and the templates that only this language has: `parkade dev` reloads when such a file changes.
    pub watched_endings: &'static [&'static str],
    /// Folders of what is installed or built.
    pub ignored_folders: &'static [&'static str],
    /// Whether workers tell which files the application writes (`PARKADE_DEV_FILES`).
    pub tells_own_files: bool,
    /// What `parkade routes` calls a plain function and a coroutine.
    pub functions: Functions,
    /// Settings that change nothing for its applications.
    pub without_effect: &'static [IdleSetting],
    /// Arguments of the interpreter before those of the worker.
    start: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    needs: &'static str,
    advice: &'static str,
}

/// A setting that changes nothing for applications in a language.
#[derive(Debug, Clone, Copy)]
pub struct IdleSetting {
    pub name: &'static str,
    /// Whether it asks for something.
    pub is_given: fn(&ServerSettings) -> bool,
    /// Why it changes nothing, and what does.
    pub advice: &'static str,
}

/// The words of a language for code that handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Functions {
    pub plain: &'static str,
    pub coroutine: &'static str,
}

const PYTHON: LanguageFacts = LanguageFacts {
    name: "python",
    target_endings: &["py"],
    usual_files: &["app.py", "manage.py"],
    watched_endings: &["py", "jinja", "jinja2", "j2"],
    ignored_folders: &["__pycache__", "site-packages", "venv"],
    tells_own_files: true,
    functions: Functions { plain: "def", coroutine: "async def" },
    without_effect: &[],
    start: &["-m", "parkade"],
    environment: &[("PYTHONUNBUFFERED", "1")],
    needs: "where the package parkade must be installed",
    advice: "use --python to name an interpreter that has the package parkade",
};

const PERL: LanguageFacts = LanguageFacts {
    name: "perl",
    target_endings: &["psgi", "pl"],
    usual_files: &["app.psgi"],
    watched_endings: &["pl", "pm", "psgi", "t", "ep", "mt", "tt", "tx"],
    ignored_folders: &["blib", "local"],
    tells_own_files: false,
    functions: Functions { plain: "sub", coroutine: "async sub" },
    without_effect: &[
        IdleSetting {
            name: "threads",
            is_given: |settings| settings.workers.threads > 1,
            advice: "a worker in Perl runs one request at a time, and --workers sets how many run side by side",
        },
        IdleSetting {
            name: "on-disconnect",
            is_given: |settings| settings.loading.on_disconnect == OnDisconnect::Cancel,
            advice: "code in Perl is not cancelled; parkade.on_cancel tells it that its client has left",
        },
    ],
    start: &["-e", PERL_START],
    environment: &[],
    needs: "where the distribution Parkade must be installed",
    advice: "install Perl, or use --perl to name an interpreter",
};

/// Of a worker in a language that is not in the table.
const ANY_FUNCTIONS: Functions = Functions { plain: "function", coroutine: "coroutine" };

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
    const ALL: [Self; 2] = [Self::Python, Self::Perl];

    /// By its name, and otherwise by what the operator says it is written for, or by its first line.
    #[must_use]
    pub fn of(target: &str, interface: Interface) -> Self {
        let path = Path::new(target);
        match Self::of_file(path) {
            Some(language) => language,
            None if target.contains("::") || interface == Interface::Psgi || runs_perl(path) => Self::Perl,
            None => Self::Python,
        }
    }

    /// That of a file, if its name tells it.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Self::ALL.into_iter().find(|language| language.facts().target_endings.contains(&ending))
    }

    #[must_use]
    pub fn facts(self) -> &'static LanguageFacts {
        match self {
            Self::Python => &PYTHON,
            Self::Perl => &PERL,
        }
    }

    /// All rows of the table.
    pub fn all() -> impl Iterator<Item = &'static LanguageFacts> {
        Self::ALL.into_iter().map(Self::facts)
    }

    /// The words for the functions of a worker, by what it calls its language.
    #[must_use]
    pub fn functions(name: Option<&str>) -> Functions {
        Self::all().find(|facts| Some(facts.name) == name).map_or(ANY_FUNCTIONS, |facts| facts.functions)
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
            Language::Perl => {
                let path = settings.perl.clone().unwrap_or_else(|| "perl".into());
                Self::run(path, &PERL, Some(perl_modules().into()))
            }
        }
    }

    /// The worker in Python, run by this interpreter.
    #[must_use]
    pub fn python(path: PathBuf) -> Self {
        Self::run(path, &PYTHON, None)
    }

    fn run(path: PathBuf, language: &LanguageFacts, more: Option<OsString>) -> Self {
        Self {
            path,
            arguments: language.start.iter().map(OsString::from).chain(more).collect(),
            environment: language.environment.to_vec(),
            needs: language.needs,
            advice: language.advice,
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
    fn a_worker_s_functions_have_the_words_of_its_language() {
        for (name, plain, coroutine) in [
            (Some("python"), "def", "async def"),
            (Some("perl"), "sub", "async sub"),
            (Some("ruby"), "function", "coroutine"),
            (None, "function", "coroutine"),
        ] {
            assert_eq!(Language::functions(name), Functions { plain, coroutine });
        }
    }

    #[test]
    fn a_command_is_split_into_its_words() {
        let program = Program::told("/opt/worker  --fast yes");
        assert_eq!(program.path, PathBuf::from("/opt/worker"));
        assert_eq!(program.arguments, ["--fast", "yes"]);
    }
}
