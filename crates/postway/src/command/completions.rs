//! `postway completions SHELL`: prints a completion script, to be sourced or saved.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{CommandContext, CommandLine};
use crate::cli::failure::CommandFailure;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn run(context: &CommandContext, args: &CompletionsArgs) -> Result<(), CommandFailure> {
    context.output.bytes(&script(args.shell))
}

/// The script for a shell.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "postway", &mut script);
    script
}
