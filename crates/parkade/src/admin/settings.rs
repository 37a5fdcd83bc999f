//! The settings in force, as operators see them: secrets are masked already.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingView {
    /// The flag without its dashes.
    pub name: String,
    pub value: String,
    /// `flag`, `default`, or the variable or file that it comes from.
    pub origin: String,
}
