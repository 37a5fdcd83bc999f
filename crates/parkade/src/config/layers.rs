//! Values from the settings file and the environment, which flags override.
//!
//! Both become default values of the flags, so that one declaration and one parser serve all three. A flag beats the environment, which
//! beats the file, which beats the default.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::nearest::advice;

/// Kubernetes and Docker set these for a service that is called `parkade`; workers read the last one.
const FOREIGN_VARIABLES: [&str; 5] =
    ["PARKADE_SERVICE_", "PARKADE_PORT_", "PARKADE_PORT=", "PARKADE_INJECT_", "PARKADE_ACCELERATOR="];

/// Values for flags that were not given, each with its source; and the applications that the file mounts.
#[derive(Debug, Default)]
pub struct Layers {
    layers: BTreeMap<String, Layer>,
    /// The tables of `[[mount]]`, and the file that has them.
    mounts: Option<(PathBuf, toml::Value)>,
}

#[derive(Debug)]
struct Layer {
    values: Vec<String>,
    origin: SettingSource,
}

#[derive(Debug)]
enum SettingSource {
    Variable(String),
    File(PathBuf),
}

/// A settings file or an environment that cannot be used: the operator has to correct it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the settings file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not valid TOML{}: {source}", path.display(), translated(path))]
    Syntax { path: PathBuf, source: Box<toml::de::Error> },
    #[error("{}: unknown key `{key}`; {advice}", path.display())]
    UnknownKey { path: PathBuf, key: String, advice: String },
    #[error("{}: `{key}` takes {expected}", path.display())]
    WrongType { path: PathBuf, key: String, expected: &'static str },
    #[error("{}: [[mount]]{mount}: {why}", path.display())]
    Mount { path: PathBuf, mount: String, why: String },
    #[error("unknown environment variable {name}; {advice}")]
    UnknownVariable { name: String, advice: String },
}

/// What to do with a settings file of another server.
fn translated(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("py" | "ini" | "json") => " (`parkade import` translates the settings files of other servers)",
        _ => "",
    }
}

impl Layers {
    /// Reads the environment and then the file: `chosen`, else the one that `PARKADE_CONFIG` names, else `parkade.toml`
    /// if it exists.
    ///
    /// `settings` is the command whose flags are the table of settings.
    pub fn read(
        settings: &Command,
        variables: impl IntoIterator<Item = (String, String)>,
        chosen: Option<PathBuf>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        layers.add_variables(settings, variables)?;
        let named = || layers.layers.get("config").and_then(|layer| layer.values.first()).map(PathBuf::from);
        let usual = || Some(PathBuf::from("parkade.toml")).filter(|path| path.exists());
        if let Some(path) = chosen.or_else(named).or_else(usual) {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
            layers.add_file(settings, &path, &text)?;
        }
        Ok(layers)
    }

    fn add_variables(
        &mut self,
        settings: &Command,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (name, value) in variables {
            let ours = name.starts_with("PARKADE_") && !value.is_empty();
            if !ours || FOREIGN_VARIABLES.iter().any(|prefix| format!("{name}=").starts_with(prefix)) {
                continue;
            }
            let Some(arg) = arguments(settings).find(|arg| variable(arg) == name) else {
                let known: Vec<_> = arguments(settings).map(variable).collect();
                let advice = advice(&name, &known);
                return Err(ConfigError::UnknownVariable { name, advice });
            };
            let values = match arg.get_value_delimiter() {
                Some(comma) => value.split(comma).map(|value| value.trim().to_owned()).collect(),
                None => vec![value],
            };
            self.layers.insert(arg.get_id().to_string(), Layer { values, origin: SettingSource::Variable(name) });
        }
        Ok(())
    }

    fn add_file(&mut self, settings: &Command, path: &Path, text: &str) -> Result<(), ConfigError> {
        let table: toml::Table =
            text.parse().map_err(|source| ConfigError::Syntax { path: path.into(), source: Box::new(source) })?;
        for (key, value) in table {
            if key == "mount" {
                self.mounts = Some((path.into(), value));
                continue;
            }
            let mut known = arguments(settings).filter(|arg| arg.get_id() != "config");
            let Some(arg) = known.find(|arg| name(arg) == key) else {
                let known: Vec<_> = arguments(settings).map(name).filter(|name| name != "config").collect();
                let advice = advice(&key, &known);
                return Err(ConfigError::UnknownKey { path: path.into(), key, advice });
            };
            let values = match value {
                toml::Value::Boolean(value) if arg.get_value_parser().type_id() == TypeId::of::<bool>() => {
                    Ok(vec![value.to_string()])
                }
                value => values(value, arg.get_value_delimiter().is_some()),
            };
            let values = values.map_err(|expected| ConfigError::WrongType { path: path.into(), key, expected })?;
            let layer = Layer { values, origin: SettingSource::File(path.into()) };
            self.layers.entry(arg.get_id().to_string()).or_insert(layer);
        }
        Ok(())
    }

    /// The tables of applications that the settings file mounts, and that file.
    #[must_use]
    pub fn mounts(&self) -> Option<&(PathBuf, toml::Value)> {
        self.mounts.as_ref()
    }

    /// Where the value of a flag comes from, unless it is the declared default.
    #[must_use]
    pub fn origin(&self, id: &str) -> Option<impl fmt::Display> {
        self.layers.get(id).map(|layer| &layer.origin)
    }

    /// Makes the values the defaults of the flags of `command`.
    #[must_use]
    pub fn lay_under(&self, command: Command) -> Command {
        self.layers.iter().fold(command, |command, (id, layer)| {
            command.mut_arg(id, |arg| arg.default_values(layer.values.clone()).required(false))
        })
    }

    /// Adds to the refusal of a value that it came from a layer, if it did.
    #[must_use]
    pub fn explain(&self, error: clap::Error) -> clap::Error {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let origin = || {
            let shown = text(ContextKind::InvalidArg)?;
            let flag =
                shown.split([' ', '[', '=']).next()?.trim_matches(['-', '<', '>']).to_lowercase().replace('-', "_");
            let layer = self.layers.get(&flag)?;
            let value = text(ContextKind::InvalidValue)?;
            layer.values.iter().any(|laid| laid == value).then_some(&layer.origin)
        };
        match origin() {
            Some(origin) => {
                let told = error.to_string();
                let told = told.strip_prefix("error: ").unwrap_or(&told).split("\n\nFor more").next().unwrap_or(&told);
                clap::Error::raw(
                    ErrorKind::ValueValidation,
                    format!("{}\n\nThe value comes from {origin}.\n", told.trim_end()),
                )
            }
            None => error,
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The flags that are settings; `--check` and `--help`, for example, are not.
pub fn arguments(settings: &Command) -> impl Iterator<Item = &Arg> {
    settings.get_arguments().filter(|arg| arg.get_action().takes_values())
}

/// The key in the settings file: the flag without its dashes.
pub fn name(arg: &Arg) -> String {
    arg.get_long().map_or_else(|| arg.get_id().to_string(), str::to_owned)
}

/// The environment variable.
pub fn variable(arg: &Arg) -> String {
    format!("PARKADE_{}", name(arg).to_uppercase().replace('-', "_"))
}

fn values(value: toml::Value, list: bool) -> Result<Vec<String>, &'static str> {
    let one = |value| match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        _ if list => Err("a string, a number or a list of them"),
        _ => Err("a string or a number"),
    };
    match value {
        toml::Value::Array(items) if list => items.into_iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}
