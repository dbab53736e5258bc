//! `postway config`: the configuration that a server started here would have.

use clap::Subcommand;
use serde_json::json;

use super::CommandContext;
use crate::cli::failure::CommandFailure;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether the configuration is right (exit code 2 if it is not)
    Check,
    /// Print the effective configuration, secrets masked, with the source of each value
    Print,
}

pub fn run(context: &CommandContext, command: ConfigCommand) -> Result<(), CommandFailure> {
    let loaded = context.load()?;
    for warning in &loaded.warnings {
        eprintln!("postway: {warning}");
    }
    match command {
        ConfigCommand::Check if context.output.is_json() => {
            context.output.json(&json!({"ok": true, "warnings": loaded.warnings}))
        }
        ConfigCommand::Check => context.output.text("the configuration is right"),
        ConfigCommand::Print if context.output.is_json() => {
            let settings = loaded.resolved.iter().map(|value| {
                json!({"key": value.setting.key, "value": value.shown, "source": value.source.to_string()})
            });
            context.output.json(&json!({"settings": settings.collect::<Vec<_>>()}))
        }
        ConfigCommand::Print => context.output.text(&loaded.to_toml()),
    }
}
