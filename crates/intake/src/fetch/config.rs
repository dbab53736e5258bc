//! Settings for fetching attachments.

use std::{
    path::{Component, Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use postway_domain::TenantId;

/// The placeholder for a tenant's id in the path of a folder.
const TENANT_MARK: &str = "{tenant}";
/// The tenant that every installation begins with. A path that names no tenant is for it alone.
const FIRST_TENANT: &str = "default";

/// A folder that attachments may come from, and the tenant that may use it.
///
/// Written as `/srv/files/{tenant}`, a folder for each tenant; `acme:/srv/files`, for one tenant; or
/// `/srv/files`, for the tenant `default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentFolder {
    path: String,
    owner: FolderOwner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FolderOwner {
    /// The path contains the tenant's id.
    Each,
    /// The setting names the tenant.
    Named(TenantId),
    /// The setting names no tenant.
    First(TenantId),
}

impl AttachmentFolder {
    /// The folder for this tenant; `None` if the tenant may not use it.
    pub(super) fn for_tenant(&self, tenant: &TenantId) -> Option<PathBuf> {
        match &self.owner {
            // `.` and `..` are valid ids. Neither they nor a hidden folder may be used.
            FolderOwner::Each => (!tenant.as_str().starts_with('.'))
                .then(|| PathBuf::from(self.path.replace(TENANT_MARK, tenant.as_str()))),
            FolderOwner::Named(owner) | FolderOwner::First(owner) => {
                (owner == tenant).then(|| PathBuf::from(&self.path))
            }
        }
    }

    /// The path of a folder that is for the tenant `default` because the setting names no tenant.
    pub fn unnamed_path(&self) -> Option<&str> {
        matches!(self.owner, FolderOwner::First(_)).then_some(self.path.as_str())
    }
}

impl FromStr for AttachmentFolder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = |what: &str| {
            format!(
                "`{text}` {what}; write an absolute path like /srv/files/{{tenant}}, or TENANT:/srv/files"
            )
        };
        let (named, path) = match text.split_once(':') {
            Some((tenant, path)) if !tenant.contains('/') => {
                let tenant = tenant.parse::<TenantId>();
                (Some(tenant.map_err(|_| problem("names no tenant before the colon"))?), path)
            }
            _ => (None, text),
        };
        let is_whole = Path::new(path).is_absolute()
            && !Path::new(path).components().any(|part| part == Component::ParentDir);
        if !is_whole {
            return Err(problem("is not an absolute path"));
        }
        if path.replace(TENANT_MARK, "").contains(['{', '}']) {
            return Err(problem("has braces around something else than `tenant`"));
        }
        let owner = match (named, path.contains(TENANT_MARK)) {
            (Some(_), true) => return Err(problem("names a tenant twice")),
            (Some(tenant), false) => FolderOwner::Named(tenant),
            (None, true) => FolderOwner::Each,
            (None, false) => FolderOwner::First(FIRST_TENANT.parse().map_err(|_| problem("has no owner"))?),
        };
        Ok(Self { path: path.to_owned(), owner })
    }
}

/// Limits and folders for fetching attachments. The defaults are those of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchConfig {
    /// The folders that attachments may come from: none.
    pub folders: Vec<AttachmentFolder>,
    /// The largest file, in bytes: 25 MiB.
    pub file_bytes_max: usize,
    /// The most bytes of all files of a message: 50 MiB.
    pub message_bytes_max: usize,
    /// Replaces both limits if large files are linked instead of mailed, in bytes: 200 MiB.
    pub linked_bytes_max: usize,
    /// The number of files that are fetched at once for one message: 3.
    pub at_once: usize,
    /// How long one file may take: 60 s.
    pub timeout: Duration,
    /// How long the source may be silent: 30 s.
    pub idle_timeout: Duration,
    /// How long all files of a message may take: 180 s.
    pub message_timeout: Duration,
    /// The bytes of fetched files in memory: 32 MiB. A file larger than an eighth of it is cached on disk
    /// only.
    pub memory_bytes_max: u64,
    /// The folder for cached files, for postway alone. Default: none, so that files are cached in memory
    /// only.
    pub cache_folder: Option<PathBuf>,
    /// The bytes of cached files on disk: 1 GiB. A file larger than a quarter of it is not cached.
    pub cache_bytes_max: u64,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            file_bytes_max: 25 * 1024 * 1024,
            message_bytes_max: 50 * 1024 * 1024,
            linked_bytes_max: 200 * 1024 * 1024,
            at_once: 3,
            timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(180),
            memory_bytes_max: 32 * 1024 * 1024,
            cache_folder: None,
            cache_bytes_max: 1024 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &str, tenant: &str) -> Option<PathBuf> {
        let folder: AttachmentFolder = folder.parse().unwrap();
        folder.for_tenant(&tenant.parse().unwrap())
    }

    #[test]
    fn a_folder_is_each_tenants_own_or_one_tenants() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of("/srv/{tenant}/out", "acme"), path("/srv/acme/out"));
        assert_eq!(of("/srv/files-{tenant}", "a.b"), path("/srv/files-a.b"));
        assert_eq!(of("acme:/srv/files", "acme"), path("/srv/files"));
        assert_eq!(of("acme:/srv/files", "other"), None);
        assert_eq!(of("/srv/files", "default"), path("/srv/files"));
        assert_eq!(of("/srv/files", "acme"), None);
        assert_eq!("/srv/a".parse::<AttachmentFolder>().unwrap().unnamed_path(), Some("/srv/a"));
        assert_eq!("default:/srv/a".parse::<AttachmentFolder>().unwrap().unnamed_path(), None);
    }

    #[test]
    fn no_id_of_a_tenant_leads_out_of_its_folder() {
        for tenant in [".", "..", "...", ".ssh"] {
            assert_eq!(of("/srv/files/{tenant}", tenant), None, "{tenant}");
        }
        // Other names that could lead out are not valid ids.
        for tenant in ["a/b", "../x", "a\0b", "", "a b"] {
            assert!(tenant.parse::<TenantId>().is_err(), "{tenant}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_form_that_can() {
        for wrong in [
            "files",
            "acme:files",
            "/srv/{tenants}",
            "/srv/{",
            "acme:/srv/{tenant}",
            "a b:/srv",
            "/srv/../etc",
        ] {
            let error = wrong.parse::<AttachmentFolder>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("TENANT:/srv/files"), "{error}");
        }
        assert!("/srv/a:/b".parse::<AttachmentFolder>().is_ok(), "a colon further on is part of the path");
    }
}
