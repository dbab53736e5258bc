//! One value of the configuration: where it came from, how it is read and how it is shown.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::error::ConfigError;
use super::settings::{ConfigSetting, SettingKind};

/// No configuration or secret file is larger than this.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// The built-in default.
    Default,
    /// The configuration file, at a line counted from 1.
    File(PathBuf, usize),
    /// A variable of the environment.
    Env(String),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{} line {line}", path.display()),
            Self::Env(name) => f.write_str(name),
        }
    }
}

/// An effective value as it is shown to people.
#[derive(Clone, Debug)]
pub struct ResolvedSetting {
    /// The setting.
    pub setting: &'static ConfigSetting,
    /// The `[outbox.NAME]` that it belongs to, if any.
    pub scope: Option<String>,
    /// Its value as text, secrets masked; none where the setting is off or will be made on first start.
    pub shown: Option<String>,
    /// Where it came from.
    pub source: SettingSource,
}

/// The text of a value of the right type; none for another type.
pub fn text_of(kind: SettingKind, value: &DeValue<'_>) -> Option<String> {
    match (kind, value) {
        (
            SettingKind::Text | SettingKind::Secret | SettingKind::Url | SettingKind::ListOrWord,
            DeValue::String(text),
        ) => Some(text.to_string()),
        (SettingKind::Integer, DeValue::Integer(number)) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (SettingKind::List | SettingKind::ListOrWord, DeValue::Array(items)) => {
            let items: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

/// A value as people may see it.
pub fn masked(kind: SettingKind, text: &str) -> String {
    match kind {
        SettingKind::Secret => "***".to_owned(),
        SettingKind::Url => match text.split_once("://") {
            // The password of `scheme://user:password@host`; an `@` in it is why the last one counts.
            Some((scheme, rest)) => match rest.rsplit_once('@') {
                Some((credentials, host)) => {
                    let user = credentials.split(':').next().unwrap_or_default();
                    format!("{scheme}://{user}:***@{host}")
                }
                None => text.to_owned(),
            },
            None => text.to_owned(),
        },
        SettingKind::Text | SettingKind::Integer | SettingKind::List | SettingKind::ListOrWord => {
            text.to_owned()
        }
    }
}

/// The text of a file that should be small.
pub fn read_bounded(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(unreadable(format!("larger than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
