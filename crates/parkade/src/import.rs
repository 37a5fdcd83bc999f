//! `parkade import`: the settings of another server as those of this one. The Python package does it, since a settings
//! file of Gunicorn is Python: only Python can parse it.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::cli::ImportArgs;
use crate::config;
use crate::error::Error;
use crate::language::Program;
use crate::serve;

/// Becomes the interpreter; returns only if that cannot be run.
pub fn import(arguments: &ImportArgs) -> Result<ExitCode, Error> {
    let program = Program::python(config::interpreter(arguments.python.as_deref()));
    serve::runnable(&program)?;
    let why = Command::new(&program.path).args(&program.arguments).arg("import").arg(&arguments.file).exec();
    Err(Error::Io(why))
}
