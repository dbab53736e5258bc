//! The program under test.

use std::{path::PathBuf, sync::OnceLock};

/// The binary under test, built with failpoints; `POSTWAY_E2E_BINARY` names another.
pub fn binary() -> anyhow::Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("POSTWAY_E2E_BINARY") {
        return Ok(path.into());
    }
    // Cargo knows whether there is anything to do; after `./test` built it there is not.
    let done = std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "postway", "--features", "failpoints"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status();
    match done {
        Ok(status) if status.success() => {}
        other => return Err(format!("cargo build failed: {other:?}")),
    }
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = test.ancestors().nth(2).ok_or("the test has no target folder")?;
    Ok(target.join("postway"))
}
