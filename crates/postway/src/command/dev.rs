//! `postway dev`: a gateway for a developer's machine. It takes mail over SMTP and HTTP on loopback without keys,
//! captures all of it, shows it in the browser, and forgets it when it ends.
//!
//! It is the real server with other settings. Nothing of the machine's configuration is read, so it can run
//! beside anything, and nothing it does can send mail: the only account is the sandbox. Without a key it
//! opens only to programs of this machine that name it by a loopback address, and to its own page: other
//! sites that a browser shows are refused.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::cli::failure::CommandFailure;
use crate::config::{self, LoadedConfig};
use crate::server::{self, telemetry};

/// Where a folder is no file on a disk.
const MEMORY: &str = "/dev/shm";

#[derive(Args, Debug)]
pub struct DevArgs {
    /// The port of SMTP on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 1025)]
    smtp: u16,
    /// The port of the page and the API on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 8025)]
    http: u16,
    /// Keep the mail in this folder instead of forgetting it
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

pub async fn run(args: DevArgs) -> Result<(), CommandFailure> {
    let folder = match args.data_dir {
        Some(kept) => DevFolder { path: kept, is_kept: true },
        None => DevFolder::make()?,
    };
    let loaded = configure(&folder.path, args.smtp, args.http)?;
    let _log = telemetry::start_logs(&loaded.config.log)?;
    let metrics = telemetry::start_metrics()?;
    let page = format!("http://{}/#/inbox", SocketAddr::from((Ipv4Addr::LOCALHOST, args.http)));
    eprintln!("all mail is captured, and told to its senders as sent; read it at {page}");
    if !folder.is_kept {
        eprintln!("it is forgotten when this ends; --data-dir FOLDER keeps it");
    }
    if args.open {
        open(&page);
    }
    let served = server::serve(&loaded.config, metrics, false).await;
    drop(folder);
    Ok(served?)
}

/// The configuration of a server that only this machine can reach.
fn configure(folder: &Path, smtp: u16, http: u16) -> Result<LoadedConfig, CommandFailure> {
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string();
    let settings: [(&str, OsString); 6] = [
        ("POSTWAY_DATA_DIR", folder.into()),
        ("POSTWAY_HTTP_LISTEN", local(http).into()),
        ("POSTWAY_SMTP_LISTEN", local(smtp).into()),
        ("POSTWAY_SMTP_OPEN_NETWORKS", "127.0.0.0/8=default".into()),
        ("POSTWAY_SMTP_EHLO_NAME", "localhost".into()),
        ("POSTWAY_LOG", "warn".into()),
    ];
    let settings = settings.map(|(name, value)| (OsString::from(name), value));
    let mut loaded = config::load_from(None, settings)?;
    loaded.config.is_for_development = true;
    Ok(loaded)
}

/// The folder of the data, which goes with the process unless it is kept.
struct DevFolder {
    path: PathBuf,
    is_kept: bool,
}

impl DevFolder {
    fn make() -> anyhow::Result<Self> {
        let memory = PathBuf::from(MEMORY);
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("postway-dev-{:016x}", rand::random::<u64>()));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, is_kept: false })
    }
}

impl Drop for DevFolder {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("postway: {} stays: {error}", self.path.display());
        }
    }
}

/// Asks the desktop to show an address; whether it can is its own affair.
fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = std::process::Command::new(program).arg(address).spawn() {
        eprintln!("cannot open a browser ({program}: {error})");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_on_this_machine_and_forgets() {
        let folder = DevFolder::make().unwrap();
        let config = configure(&folder.path, 1025, 8025).unwrap().config;
        assert!(config.http.listen.ip().is_loopback() && config.smtp.listen.unwrap().ip().is_loopback());
        assert!(config.is_for_development && config.outbox.is_empty());
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }
}
