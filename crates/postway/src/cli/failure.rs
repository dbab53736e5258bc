//! How a command fails, and what its exit code means.
//!
//! Scripts branch on the code, people read the message; both are part of the surface and listed in `--help`.

use std::process::ExitCode;

use crate::config::ConfigErrors;

/// Shown at the end of `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0  done
  1  failed (also: a message that was waited for ended neither in `sent` nor in `captured`)
  2  wrong usage or configuration
  3  the server cannot be reached
  4  the server refused the request
  5  not found";

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// The command failed.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
    /// The command line asks for something that cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// No answer from the server.
    #[error(
        "cannot reach the server at {url}: {reason}; start it with `postway serve`, or name it with --url"
    )]
    Unreachable {
        /// The address tried.
        url: String,
        /// What went wrong on the way.
        reason: String,
    },
    /// The server refused the request (4xx).
    #[error("{0}")]
    Refused(String),
    /// The server does not have it (404).
    #[error("{0}")]
    NotFound(String),
    /// The reader of our output went away; nothing is printed.
    #[error("the output was closed")]
    OutputClosed,
}

impl CommandFailure {
    /// The process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            // As in `postway messages list | head`: the reader has read enough, which is not a failure.
            Self::OutputClosed => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Unreachable { .. } => 3,
            Self::Refused(_) => 4,
            Self::NotFound(_) => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_documented_code() {
        let unreachable = CommandFailure::Unreachable { url: String::new(), reason: String::new() };
        let cases = [
            (CommandFailure::Failed(anyhow::anyhow!("x")), 1),
            (CommandFailure::Usage(String::new()), 2),
            (CommandFailure::Config(ConfigErrors(Vec::new())), 2),
            (unreachable, 3),
            (CommandFailure::Refused(String::new()), 4),
            (CommandFailure::NotFound(String::new()), 5),
        ];
        for (failure, code) in cases {
            assert_eq!(failure.code(), code);
            assert!(EXIT_CODES.contains(&format!("\n  {code}  ")));
        }
    }
}
