//! `postway config`: what a server started here would run with, without starting one.

use clap::Subcommand;
use serde_json::json;

use super::Session;
use crate::cli::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether the configuration is right (exit code 2 if it is not)
    Check,
    /// Print the effective configuration, secrets masked, with the source of each value
    Print,
}

pub fn run(session: &Session, command: ConfigCommand) -> Result<(), Failure> {
    let loaded = session.load()?;
    for warning in &loaded.warnings {
        eprintln!("postway: {warning}");
    }
    match command {
        ConfigCommand::Check if session.output.is_json() => {
            session.output.json(&json!({"ok": true, "warnings": loaded.warnings}))
        }
        ConfigCommand::Check => session.output.text("the configuration is right"),
        ConfigCommand::Print if session.output.is_json() => {
            let settings = loaded.resolved.iter().map(|value| {
                json!({"key": value.setting.key, "value": value.shown, "source": value.source.to_string()})
            });
            session.output.json(&json!({"settings": settings.collect::<Vec<_>>()}))
        }
        ConfigCommand::Print => session.output.text(&loaded.to_toml()),
    }
}
