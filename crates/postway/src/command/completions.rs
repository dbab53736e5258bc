//! `postway completions SHELL`: prints a completion script, to be sourced or saved.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, Session};
use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub fn run(session: &Session, args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "postway", &mut script);
    session.output.bytes(&script)
}
