//! Where a gateway stores its bytes: buckets on a server that speaks S3, and files below a folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use postway_testkit::moto::Moto;

/// A bucket of a test's own.
pub struct Bucket {
    name: String,
    endpoint: String,
    url: String,
}

/// The prefix of the blobs.
const PREFIX: &str = "postway/blobs";

impl Bucket {
    /// Makes one. The first in a process starts the server.
    pub async fn create() -> anyhow::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("bucket-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let made = name.clone();
        let endpoint = tokio::task::spawn_blocking(move || {
            let moto = Moto::shared();
            moto.create_bucket(&made);
            moto.url()
        });
        Ok(Self { endpoint: endpoint.await?, url: format!("s3://{name}/{PREFIX}"), name })
    }

    /// What a gateway that keeps its blobs there is started with.
    pub fn env(&self) -> Vec<(&str, &str)> {
        vec![
            ("POSTWAY_STORAGE_URL", &self.url),
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
        ]
    }

    /// The names of its blobs, below the prefix.
    pub async fn blobs(&self) -> anyhow::Result<Vec<String>> {
        let name = self.name.clone();
        let keys = tokio::task::spawn_blocking(move || Moto::shared().keys(&name)).await?;
        let below = |key: &String| key.strip_prefix(PREFIX)?.strip_prefix('/').map(str::to_owned);
        Ok(keys.iter().map(|key| below(key).unwrap_or_else(|| format!("outside: {key}"))).collect())
    }
}

/// All files below a folder, in order; none where there is no such folder.
pub fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => files.extend(files_below(&entry.path())?),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    Ok(files)
}

/// Whether these bytes have that text in them.
pub fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
