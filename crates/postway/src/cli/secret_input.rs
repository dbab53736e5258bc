//! Secrets and grants that a command needs, from files and from the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::input::read_input;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;

/// A grant from a file.
pub fn read_grant(path: &Path) -> Result<Value, CommandFailure> {
    let grant: Map<String, Value> = serde_json::from_slice(&read_input(path)?).map_err(|error| {
        CommandFailure::Usage(format!("{} is not a JSON object of a grant: {error}", path.display()))
    })?;
    Ok(Value::Object(grant))
}

/// A secret from a file, without its line break.
pub fn read_secret(path: &Path) -> Result<String, CommandFailure> {
    let text = String::from_utf8(read_input(path)?)
        .map_err(|_| CommandFailure::Usage(format!("{} is not UTF-8 text", path.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for the secret that a change of its destination needs again, if there is a terminal. Without one, the
/// server reports what is missing.
pub async fn ask_for_missing_secret(
    client: &ApiClient,
    path: &[&str],
    body: &mut Map<String, Value>,
    destination: &[&str],
    secrets: &[(&str, &'static str)],
) -> Result<(), CommandFailure> {
    let is_moved = destination.iter().any(|field| body.contains_key(*field));
    if is_moved && std::io::stdin().is_terminal() {
        let shown = client.get(path, &[]).await?;
        if let Some(secret) = missing_secret(&shown, body, destination, secrets) {
            eprintln!("what is stored is not sent elsewhere: the {secret} is needed again");
            body.insert(secret.to_owned(), Value::String(ask_password()?));
        }
    }
    Ok(())
}

/// The secret that a change needs and does not contain.
pub fn missing_secret(
    shown: &Value,
    body: &Map<String, Value>,
    destination: &[&str],
    secrets: &[(&str, &'static str)],
) -> Option<&'static str> {
    let changes = |field: &str| body.get(field).is_some_and(|value| *value != shown[field]);
    if changes("kind") || !destination.iter().any(|field| changes(field)) {
        return None;
    }
    let is_stored = |(set, secret): &&(&str, &str)| shown[*set] == true && !body.contains_key(*secret);
    secrets.iter().find(is_stored).map(|(_, secret)| *secret)
}

/// Asks on the terminal, without showing what is typed. A user name without a password would never sign in,
/// so none is a usage error.
pub fn ask_password() -> Result<String, CommandFailure> {
    let stdin = std::io::stdin();
    let missing = |why: &str| {
        let help = "give it with --password-file FILE (`-`: standard input), or leave the user name out";
        CommandFailure::Usage(format!("{why}: {help}"))
    };
    if !stdin.is_terminal() {
        return Err(missing("a user name needs a password, and there is no terminal to ask at"));
    }
    let echo = |flag: &str| {
        let done =
            Command::new("stty").arg(flag).stdin(Stdio::inherit()).status().context("cannot run stty")?;
        anyhow::ensure!(done.success(), "stty cannot hide the input; use --password-file");
        Ok(())
    };
    echo("-echo")?;
    eprint!("Password: ");
    let mut line = String::new();
    let read = std::io::stderr().flush().and_then(|()| stdin.lock().read_line(&mut line));
    echo("echo")?;
    eprintln!();
    read.context("cannot read the password")?;
    match line.trim_end_matches(['\r', '\n']) {
        "" => Err(missing("no password was typed")),
        password => Ok(password.to_owned()),
    }
}
