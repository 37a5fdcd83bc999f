//! The table of all settings for the documentation, made from the declaration itself.

use std::fmt::Write;

use clap::{Arg, Command};

use super::layers::{arguments, name, variable};

/// Every setting as Markdown, a table for each group.
#[must_use]
pub fn settings_table(settings: &Command) -> String {
    let mut table = String::new();
    let mut group = None;
    for arg in arguments(settings).filter(|arg| arg.get_long().is_some()) {
        let heading = arg.get_help_heading().unwrap_or("General");
        if group.replace(heading) != Some(heading) {
            let _ = write!(
                table,
                "\n### {heading}\n\n| flag and key | environment | default | meaning |\n|---|---|---|---|\n"
            );
        }
        let _ = writeln!(table, "| `{}` | `{}` | {} | {} |", name(arg), variable(arg), default(arg), meaning(arg));
    }
    table.trim_start().to_owned()
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if values.is_empty() { "none".into() } else { values.join(", ") }
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<_> = arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let help = if choices.is_empty() { help } else { format!("{help}: {}", choices.join(", ")) };
    help.replace('|', "\\|")
}
