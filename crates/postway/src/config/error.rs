//! What can be wrong with a configuration.
//!
//! Every error names the key, where its value came from (file and line, or variable) and what to do. All
//! errors of one load are gathered in [`ConfigErrors`], so that a person fixes them in one go.

use std::path::PathBuf;

use super::value::SettingSource;

/// One thing that is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named with `--config` (or a secret's file) cannot be read.
    #[error("cannot read {}: {reason}; name an existing, readable file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{} line {line}: not valid TOML: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// What the parser said.
        problem: String,
    },
    /// The file has an unknown key.
    #[error("{} line {line}: unknown key `{key}`; {advice}", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// The key with its section, such as `http.lisen`.
        key: String,
        /// The nearest known key, or other advice.
        advice: String,
    },
    /// A value that cannot be used.
    #[error("`{key}` from {source_of_value}: {problem}")]
    Invalid {
        /// The key with its section.
        key: &'static str,
        /// Where the value came from.
        source_of_value: SettingSource,
        /// What is wrong and what to do; never the value of a secret.
        problem: String,
    },
}

/// All that is wrong with the configuration, in the order found.
#[derive(Debug)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
