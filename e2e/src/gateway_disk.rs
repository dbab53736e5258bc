//! A watched disk under a gateway's folder.

use std::{ops::Deref, sync::Arc};

use postway_testkit::WatchedDisk;
use tempfile::TempDir;

use crate::Gateway;

/// What stands between a gateway and its files, with a folder of its own for what it notes.
pub struct GatewayDisk {
    disk: Arc<WatchedDisk>,
    env: Vec<(String, String)>,
    _scratch: TempDir,
}

impl Deref for GatewayDisk {
    type Target = WatchedDisk;

    fn deref(&self) -> &WatchedDisk {
        &self.disk
    }
}

impl GatewayDisk {
    /// Watches the folder of a gateway that has not been started. Its data folder is there, and safe, before
    /// its first start.
    pub fn under(gateway: &Gateway) -> anyhow::Result<Self> {
        let scratch = TempDir::new()?;
        std::fs::create_dir_all(gateway.data_dir())?;
        let disk = WatchedDisk::new(&gateway.folder(), scratch.path())?;
        Ok(Self { env: disk.env(), disk: Arc::new(disk), _scratch: scratch })
    }

    /// What the gateway is started with, and these variables as well.
    pub fn env<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let ours = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        ours.chain(more.iter().copied()).collect()
    }

    /// The disk, for a task of its own.
    pub fn shared(&self) -> Arc<WatchedDisk> {
        self.disk.clone()
    }
}
