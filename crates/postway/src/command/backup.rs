//! `postway backup`: a copy of everything that a gateway on SQLite stores, beside the running server or
//! without one.
//!
//! The copy is made in a folder beside the target and renamed last, when it is complete, checked and on disk.
//! So a backup that was killed cannot be mistaken for a complete one, and the next backup removes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use postway_store::sqlite::backup::{self, BackupProgress, BlobsBackup, BlobsCopied};
use serde_json::json;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::config::{DatabaseConfig, ServerConfig};

/// The files of a backup, named as in a data folder.
const DATABASE: &str = "postway.db";
const BLOBS: &str = "blobs";
/// The lock file of a backup in progress. Only a folder with this file is removed.
const LOCK: &str = "backup.lock";
/// The database while it is being copied.
const DATABASE_UNFINISHED: &str = "postway.db.unfinished";

#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The folder to make, which must not be there yet
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

/// The result of a backup.
struct BackupSummary {
    database_bytes: u64,
    /// `None` if the blobs are not in a folder.
    blobs: Option<BlobsCopied>,
    keys: Vec<&'static str>,
}

pub async fn run(context: &CommandContext, args: BackupArgs) -> Result<(), CommandFailure> {
    let config = context.load()?.config;
    let path = match &config.database {
        DatabaseConfig::Sqlite { path } => path.clone(),
        DatabaseConfig::Postgres { .. } => return Err(other_tool("PostgreSQL", "pg_dump or WAL archiving")),
        DatabaseConfig::Mysql { .. } => {
            return Err(other_tool("MySQL and MariaDB", "mariadb-dump or mysqldump"));
        }
    };
    if !path.exists() {
        return Err(CommandFailure::NotFound(format!("there is no database at {}", path.display())));
    }
    if args.target.symlink_metadata().is_ok() {
        return Err(CommandFailure::Usage(format!(
            "{} is there already: name a folder that is not, and remove old backups yourself",
            args.target.display()
        )));
    }
    let staging = BackupStaging::make(&args.target)?;
    let written = match write(&config, &path, &staging).await {
        Ok(written) => staging.become_target(&args.target).map(|()| written),
        Err(error) => {
            staging.remove();
            Err(error)
        }
    };
    let written = written.with_context(|| format!("cannot take a backup to {}", args.target.display()))?;
    let target = args.target.display().to_string();
    let json = json!({
        "target": target,
        "database_bytes": written.database_bytes,
        "blobs": written.blobs.map(|blobs| blobs.files),
        "blob_bytes": written.blobs.map(|blobs| blobs.bytes),
        "keys": written.keys,
    });
    context.output.show(&json, |_, _| render(&target, &written))
}

fn other_tool(database: &str, tool: &str) -> CommandFailure {
    CommandFailure::Usage(format!(
        "this gateway keeps its mail on a server of {database}, which has its own tools: use {tool}, and keep the blobs and \
         secret.key besides (docs/guide/operations.md#backup)"
    ))
}

async fn write(
    config: &ServerConfig,
    database: &Path,
    staging: &BackupStaging,
) -> anyhow::Result<BackupSummary> {
    let blobs = BlobsBackup::of_storage(config.storage.url.expose(), &staging.folder.join(BLOBS));
    copy_blobs(blobs.clone()).await?;
    let copy = staging.folder.join(DATABASE_UNFINISHED);
    let bar = progress_bar();
    let database_bytes = backup::copy(database, &copy, &mut |BackupProgress { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    })
    .await?;
    bar.finish_and_clear();
    copy_blobs(blobs.clone()).await?;
    let blobs = match blobs {
        Some(blobs) => Some(blobs.check(&copy).await?),
        None => None,
    };
    let mut keys = Vec::new();
    for (name, path) in [("secret.key", config.secret_key_file()), ("admin.key", config.admin_key_file())] {
        match fs::copy(&path, staging.folder.join(name)) {
            Ok(_) => keys.push(name),
            // The key is in the configuration, or was never made.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot copy {}", path.display())),
        }
        if keys.contains(&name) {
            File::open(staging.folder.join(name))?.sync_all()?;
        }
    }
    fs::rename(&copy, staging.folder.join(DATABASE))?;
    Ok(BackupSummary { database_bytes, blobs, keys })
}

async fn copy_blobs(blobs: Option<BlobsBackup>) -> anyhow::Result<()> {
    let Some(blobs) = blobs else { return Ok(()) };
    tokio::task::spawn_blocking(move || blobs.copy()).await?.context("cannot copy the blobs")
}

/// The folder that a backup is made in.
struct BackupStaging {
    folder: PathBuf,
    lock: File,
}

impl BackupStaging {
    /// Makes the folder beside the target. The remains of a killed backup are removed; a backup that still
    /// runs is not touched.
    fn make(target: &Path) -> Result<Self, CommandFailure> {
        let mut folder = target.as_os_str().to_owned();
        folder.push(".unfinished");
        let folder = PathBuf::from(folder);
        let cannot = |error: io::Error| {
            CommandFailure::Failed(anyhow!(error).context(format!("cannot make {}", folder.display())))
        };
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !folder.join(LOCK).is_file() {
                    return Err(CommandFailure::Usage(format!(
                        "{} is there and is not the rest of a backup: name another target",
                        folder.display()
                    )));
                }
                drop(take_lock(&folder)?);
                fs::remove_dir_all(&folder).and_then(|()| builder.create(&folder)).map_err(cannot)?;
            }
            Err(error) => return Err(cannot(error)),
        }
        let lock = take_lock(&folder)?;
        Ok(Self { folder, lock })
    }

    /// Renames the complete backup to its target, durably.
    fn become_target(self, target: &Path) -> anyhow::Result<()> {
        fs::remove_file(self.folder.join(LOCK))?;
        File::open(&self.folder)?.sync_all()?;
        fs::rename(&self.folder, target)?;
        drop(self.lock);
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(parent)?.sync_all()?;
        Ok(())
    }

    fn remove(self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("postway: {} is of no use, and stays: {error}", self.folder.display());
        }
    }
}

fn take_lock(folder: &Path) -> Result<File, CommandFailure> {
    let cannot = |error: io::Error| {
        CommandFailure::Failed(anyhow!(error).context(format!("cannot make a file in {}", folder.display())))
    };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK));
    let file = file.map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(CommandFailure::Failed(anyhow!("another backup to the same target is being made")))
        }
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} pages, {per_sec}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn render(target: &str, written: &BackupSummary) -> String {
    let mut lines = vec![
        format!("backup in {target}, checked and whole"),
        format!("  {DATABASE}: {}", HumanBytes(written.database_bytes)),
    ];
    lines.push(match &written.blobs {
        Some(blobs) => format!("  {BLOBS}: {} files, {}", HumanCount(blobs.files), HumanBytes(blobs.bytes)),
        None => "  no blobs: they are in object storage, which has to keep them".to_owned(),
    });
    match written.keys[..] {
        [] => lines.push("  no keys: they are configured elsewhere; keep them there".to_owned()),
        _ => lines.push(format!("  keys: {}", written.keys.join(", "))),
    }
    lines.join("\n")
}
