//! The settings in force, for operators: each with its value and where that comes from.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde::Serialize;

use super::layers::{Layers, arguments, name};

/// A setting. Secrets are masked already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingView {
    /// The flag without its dashes.
    pub name: String,
    pub value: String,
    /// `flag`, `default`, or the variable or file that it comes from.
    pub origin: String,
}

/// What stands for a secret.
const MASK: &str = "***";

/// Every setting. `settings`: the command whose flags they are; `chosen`: what it was called with.
#[must_use]
pub fn in_force(settings: &Command, chosen: &ArgMatches, layers: &Layers) -> Vec<SettingView> {
    let all = arguments(settings).filter(|arg| arg.get_long().is_some());
    let views = all.map(|arg| {
        let id = arg.get_id().as_str();
        let values = chosen.try_get_raw(id).ok().flatten().into_iter().flatten();
        let values: Vec<String> = values.map(|value| shown(arg, &value.to_string_lossy())).collect();
        let origin = match chosen.value_source(id) {
            Some(ValueSource::CommandLine) => "flag".into(),
            _ => layers.origin(id).map_or_else(|| "default".into(), |origin| origin.to_string()),
        };
        SettingView { name: name(arg), value: values.join(", "), origin }
    });
    views.collect()
}

/// Flags that may contain a secret are those whose value the help does not show either.
fn shown(arg: &Arg, value: &str) -> String {
    if arg.get_id() == "admin_token" {
        return MASK.into();
    }
    if arg.is_hide_default_value_set() { masked(value) } else { value.to_owned() }
}

/// A connection string without its password: rather too much is left out than too little.
fn masked(text: &str) -> String {
    let hidden = |text: &str| match text.to_ascii_lowercase().find("pass") {
        Some(place) => format!("{}{MASK}", &text[..place]),
        None => text.to_owned(),
    };
    let Some((scheme, rest)) = text.split_once("://") else { return hidden(text) };
    // A password may contain anything, also what ends an authority.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => match user.split_once(':') {
            Some((user, _)) => (format!("{user}:{MASK}@"), rest),
            None => (format!("{user}@"), rest),
        },
        None => (String::new(), rest),
    };
    format!("{scheme}://{user}{}", hidden(rest))
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("postgres://lee:secret@db/shop", "postgres://lee:***@db/shop"),
            (
                "main=postgres://lee:se:c@re/t@db:5432/shop?sslmode=require",
                "main=postgres://lee:***@db:5432/shop?sslmode=require",
            ),
            ("postgres://lee@db/shop", "postgres://lee@db/shop"),
            ("postgres://db/shop?user=lee&password=secret", "postgres://db/shop?user=lee&***"),
            ("host=db dbname=shop PASSWORD='se cret' user=lee", "host=db dbname=shop ***"),
            ("postgres://db/shop?sslpassword=secret", "postgres://db/shop?ssl***"),
            ("sqlite:///srv/shop.db", "sqlite:///srv/shop.db"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
