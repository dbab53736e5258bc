//! `[storage]`, `[attachments]`, `[spool]` and `public_url`: where bodies are stored, and where they come
//! from.

use std::path::{Path, PathBuf};

use postway_domain::TenantId;
use postway_intake::AttachmentFolder;
use postway_store::blob::INLINE_BYTES_MAX;

use super::{integer_between, keys::ConfigSecret, layers::ConfigLayers};

const MIB: u64 = 1024 * 1024;

/// Where large bodies are stored.
#[derive(Clone, Debug)]
pub struct StorageSection {
    /// `file://`, `s3://`, `az://` or `gs://`.
    pub url: ConfigSecret,
    /// The largest mail or request that is stored in the database instead, in bytes.
    pub max_inline_bytes: usize,
}

impl StorageSection {
    pub(super) fn read(layers: &mut ConfigLayers, data_dir: &Path) -> Option<Self> {
        let folder = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned()).join("blobs");
        let default = format!("file://{}", folder.display());
        let url = layers.take("storage.url", ConfigSecret::new(default.clone()), &default, |text| {
            let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
            match ["file", "s3", "az", "azure", "gs"].contains(&scheme) {
                true => Ok(ConfigSecret::new(text)),
                false => {
                    Err("unknown scheme; use file:///folder, s3://bucket/prefix, az://container/prefix or \
                              gs://bucket/prefix"
                        .to_owned())
                }
            }
        });
        let inline = INLINE_BYTES_MAX as u64;
        let inline = layers.take("storage.max_inline_bytes", inline, &inline.to_string(), |text| {
            integer_between(text, 0, INLINE_BYTES_MAX as u64)
        });
        Some(Self { url: url?, max_inline_bytes: inline? as usize })
    }
}

/// Files that come from elsewhere.
#[derive(Clone, Debug)]
pub struct AttachmentsSection {
    /// Folders of this machine that tenants' attachments may be read from.
    pub folders: Vec<AttachmentFolder>,
    /// The largest file that is fetched, in bytes.
    pub max_file_bytes: usize,
    /// How many bytes of fetched files are cached on disk.
    pub cache_bytes: u64,
}

impl AttachmentsSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let folders = layers.take("attachments.folders", Vec::new(), "", |text| {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::parse).collect()
        });
        let file = 100 * MIB;
        let file = layers.take("attachments.max_file_bytes", file, &file.to_string(), |text| {
            integer_between(text, 1024, 4096 * MIB)
        });
        let cache = 1024 * MIB;
        let cache = layers.take("attachments.cache_bytes", cache, &cache.to_string(), |text| {
            integer_between(text, 0, 1024 * 1024 * MIB)
        });
        Some(Self { folders: folders?, max_file_bytes: file? as usize, cache_bytes: cache? })
    }
}

/// A folder that is watched for mail.
#[derive(Clone, Debug)]
pub struct SpoolSection {
    /// The folder; none: it is off.
    pub folder: Option<PathBuf>,
    /// The tenant whose mail it is.
    pub tenant: TenantId,
}

impl SpoolSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let folder = layers.take_optional("spool.folder", |text| match text {
            "off" => Ok(None),
            _ => Ok(Some(PathBuf::from(text))),
        });
        let tenant: TenantId = "default".parse().ok()?;
        let tenant = layers.take("spool.tenant", tenant, "default", |text| {
            text.parse::<TenantId>().map_err(|error| error.to_string())
        });
        Some(Self { folder: folder?.flatten(), tenant: tenant? })
    }
}

/// Reads the URL under which readers of mail reach this gateway; `None`: they cannot.
pub(super) fn read_public_url(layers: &mut ConfigLayers) -> Option<Option<String>> {
    layers.take_optional("public_url", |text| {
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        match is_web && !text.contains(char::is_whitespace) {
            true => Ok(text.trim_end_matches('/').to_owned()),
            false => Err("must be an http(s) address, such as https://mail.example.com".to_owned()),
        }
    })
}
