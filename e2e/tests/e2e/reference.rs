//! The reference of the command line and the settings is what the program says of itself: the guide's pages,
//! and manual pages.

use std::fs;

use anyhow::Context;
use postway_e2e::binary;
use tokio::process::Command;

const MAKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/reference");

async fn make(args: &[&str]) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new("python3");
    command.arg(MAKER).arg(binary()?).args(args).kill_on_drop(true);
    let output = command.output().await.context("python3 cannot be run")?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[tokio::test]
async fn pages_of_the_reference_are_what_the_program_says() -> anyhow::Result<()> {
    let (is_same, said) = make(&["guide", "--check"]).await?;
    assert!(is_same, "{said}");
    Ok(())
}

#[tokio::test]
async fn every_command_has_a_manual_page() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_string_lossy().into_owned();
    let (is_made, said) = make(&["man", &path]).await?;
    assert!(is_made, "{said}");
    for (page, words) in [
        ("postway.1", ["A durable email gateway", ".SH \"EXIT CODES\""]),
        ("postway-messages.1", ["List and show messages", "POSTWAY MESSAGES EXPLAIN"]),
        ("postway-doctor.1", [".SH SYNOPSIS", ".BR postway.toml (5)"]),
        ("postway.toml.5", ["max_inline_bytes", "/etc/postway/postway.toml"]),
    ] {
        let text = fs::read_to_string(folder.path().join(page)).with_context(|| page.to_owned())?;
        for word in words {
            assert!(text.contains(word), "{page} has no {word}");
        }
    }
    Ok(())
}
