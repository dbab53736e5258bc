//! `postway restore`: a data folder from a backup that `postway backup` made.
//!
//! Nothing that exists is overwritten. The database comes last, under another name until it is complete, so a
//! restore that was killed leaves no database, and the next one begins anew: the unfinished one says that the blobs
//! in the storage's folder are its own. With `--hold` every tenant is
//! suspended in the restored database before it gets its name: no start, with or without a flag, sends
//! anything of it until an operator activates a tenant.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use postway_domain::Clock as _;
use postway_store::sqlite::backup::{BlobsBackup, BlobsCopied};
use postway_store::{OperationStore as _, sqlite::SqliteStore};
use serde_json::json;

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cluster::clock::NodeClock;
use crate::config::{DatabaseConfig, ServerConfig};
use crate::server::suspend_all::suspend_all;

const DATABASE: &str = "postway.db";
const BLOBS: &str = "blobs";
/// The actor in the audit log.
const ACTOR: &str = "restore --hold";
/// The ending of the database while it is being restored.
const UNFINISHED: &str = ".restoring";

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The folder that `postway backup` made
    #[arg(value_name = "BACKUP")]
    source: PathBuf,
    /// Suspend every tenant, so that nothing is sent until `postway tenants activate`
    #[arg(long)]
    hold: bool,
}

/// The result of a restore.
struct RestoreSummary {
    database_bytes: u64,
    /// `None` if the blobs are not in a folder.
    blobs: Option<BlobsCopied>,
    keys: Vec<&'static str>,
    /// How many tenants were suspended, if they were to be.
    suspended: Option<usize>,
}

pub async fn run(context: &CommandContext, args: RestoreArgs) -> Result<(), CommandFailure> {
    let config = context.load()?.config;
    let DatabaseConfig::Sqlite { path } = &config.database else {
        let words = "this gateway keeps its mail on a database server: restore with that server's own tools, then start \
                     with `postway serve --hold` (docs/guide/operations.md#backup)";
        return Err(CommandFailure::Usage(words.to_owned()));
    };
    check_source(&args.source)?;
    if path.symlink_metadata().is_ok() {
        return Err(CommandFailure::Usage(format!(
            "{} is there already: restore into an empty data folder, or move this one away",
            path.display()
        )));
    }
    let restored = restore(&config, path, &args).await;
    let restored = restored.with_context(|| format!("cannot restore {}", args.source.display()))?;
    let json = json!({
        "database": path,
        "database_bytes": restored.database_bytes,
        "blobs": restored.blobs.map(|blobs| blobs.files),
        "keys": restored.keys,
        "suspended_tenants": restored.suspended,
    });
    context.output.show(&json, |_, _| render(path, &restored))
}

/// A complete backup has its database under its own name.
fn check_source(source: &Path) -> Result<(), CommandFailure> {
    let told = source.display();
    if !source.join(DATABASE).is_file() {
        return Err(CommandFailure::NotFound(format!(
            "{told} is no backup: it has no {DATABASE}; name the folder that `postway backup` made"
        )));
    }
    for rest in ["postway.db-wal", "backup.lock"] {
        if source.join(rest).exists() {
            return Err(CommandFailure::Usage(format!(
                "{told} has a {rest}: it is a data folder or an unfinished backup, and not a backup"
            )));
        }
    }
    Ok(())
}

async fn restore(config: &ServerConfig, path: &Path, args: &RestoreArgs) -> anyhow::Result<RestoreSummary> {
    let source = &args.source;
    for folder in [Some(config.data_dir.as_path()), path.parent()].into_iter().flatten() {
        make_private_folder(folder)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let goes_on = unfinished.exists();
    if let Some(blobs) = BlobsBackup::folder_of(config.storage.url.expose()).filter(|_| !goes_on) {
        // What the database does not name is removed from there.
        let is_empty = fs::read_dir(&blobs).map_or(true, |mut entries| entries.next().is_none());
        anyhow::ensure!(is_empty, "{} is not empty: its files belong to another gateway", blobs.display());
    }
    remove_rest(&unfinished)?;
    File::create(&unfinished)?.sync_all()?;
    sync_folder(&unfinished)?;
    let keys = restore_keys(config, source)?;
    let blobs = restore_blobs(config, &source.join(BLOBS)).await?;
    let database_bytes = copy_durably(&source.join(DATABASE), &unfinished)?;
    let blobs = match blobs {
        Some(blobs) => Some(blobs.check(&unfinished).await.context("the backup lacks blobs")?),
        None => None,
    };
    let suspended = match args.hold {
        true => Some(hold(&unfinished).await?),
        false => None,
    };
    fs::rename(&unfinished, path)?;
    sync_folder(path)?;
    Ok(RestoreSummary { database_bytes, blobs, keys, suspended })
}

/// Suspends every tenant of a database, and leaves nothing of it outside its file.
async fn hold(database: &Path) -> anyhow::Result<usize> {
    let store = SqliteStore::open(database).await.context("the database of the backup cannot be opened")?;
    let suspended = suspend_all(&store, ACTOR, NodeClock::default().now()).await;
    store.close().await;
    let suspended = suspended?;
    // What is still in the log would be left behind under the old name.
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let left = fs::metadata(&log).map_or(0, |log| log.len());
    anyhow::ensure!(left == 0, "{left} bytes of the database's log were not written back");
    for ending in ["-wal", "-shm", ".lock"] {
        let mut beside = database.as_os_str().to_owned();
        beside.push(ending);
        remove_if_there(Path::new(&beside))?;
    }
    File::open(database)?.sync_all()?;
    Ok(suspended)
}

/// The keys that the backup has, where the data folder has none. Another key that is there is not replaced.
fn restore_keys(config: &ServerConfig, source: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut keys = Vec::new();
    for (name, target) in [("secret.key", config.secret_key_file()), ("admin.key", config.admin_key_file())] {
        let kept = source.join(name);
        if !kept.is_file() {
            continue;
        }
        if target.symlink_metadata().is_ok() {
            anyhow::ensure!(
                fs::read(&target)? == fs::read(&kept)?,
                "{} is another key than that of the backup: move it away first",
                target.display()
            );
        } else {
            copy_durably(&kept, &target)?;
        }
        keys.push(name);
    }
    Ok(keys)
}

/// Copies the blobs into the folder of the storage; `None` if the storage is no folder, and keeps its own.
async fn restore_blobs(config: &ServerConfig, kept: &Path) -> anyhow::Result<Option<BlobsBackup>> {
    let Some(target) = BlobsBackup::folder_of(config.storage.url.expose()) else { return Ok(None) };
    let blobs = BlobsBackup::new(kept, &target);
    make_private_folder(&target)?;
    if !kept.is_dir() {
        return Ok(Some(blobs));
    }
    let copying = blobs.clone();
    tokio::task::spawn_blocking(move || copying.copy()).await?.context("cannot copy the blobs")?;
    Ok(Some(blobs))
}

fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Copies a file so that it is on disk when this returns.
fn copy_durably(from: &Path, to: &Path) -> anyhow::Result<u64> {
    let bytes = fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    File::open(to)?.sync_all()?;
    sync_folder(to)?;
    Ok(bytes)
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes what a killed restore left.
fn remove_rest(unfinished: &Path) -> anyhow::Result<()> {
    for ending in ["", "-wal", "-shm", ".lock"] {
        let mut rest = unfinished.as_os_str().to_owned();
        rest.push(ending);
        remove_if_there(Path::new(&rest))?;
    }
    Ok(())
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn render(path: &Path, restored: &RestoreSummary) -> String {
    let mut lines = vec![format!("restored {}, {}", path.display(), HumanBytes(restored.database_bytes))];
    lines.push(match &restored.blobs {
        Some(blobs) => format!("  {BLOBS}: {} files, {}", HumanCount(blobs.files), HumanBytes(blobs.bytes)),
        None => "  no blobs: they are in object storage, which has to have them".to_owned(),
    });
    match restored.keys[..] {
        [] => lines.push("  no keys: configure the secret key that the backup was made under".to_owned()),
        _ => lines.push(format!("  keys: {}", restored.keys.join(", "))),
    }
    lines.push(match restored.suspended {
        Some(tenants) => format!(
            "  {tenants} tenants suspended: nothing is sent until `postway tenants activate TENANT`, or --all"
        ),
        None => "  its queue has mail that was sent after the backup was taken: start with `postway serve --hold`, look, \
                 and cancel what has arrived"
            .to_owned(),
    });
    lines.join("\n")
}
