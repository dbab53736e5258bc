//! The two keys of a server: the admin key lets operators in, the secret key encrypts. Both are made on the
//! first start unless they are configured.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::Context as _;
use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::secret::SecretKey;
use rand::RngCore;

use crate::config::ServerConfig;

/// The admin key, and whether it is new and must be shown.
#[derive(Clone)]
pub struct AdminKeyText {
    /// The key itself.
    pub text: String,
    /// Whether it was made just now.
    pub fresh: bool,
}

/// The configured admin key, the one in the data folder, or a new one (not yet written).
pub fn admin_key(config: &ServerConfig) -> anyhow::Result<AdminKeyText> {
    if let Some(key) = &config.admin_key {
        return Ok(AdminKeyText { text: key.expose().to_owned(), fresh: false });
    }
    let path = config.admin_key_file();
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= 32 => {
            Ok(AdminKeyText { text: text.trim().to_owned(), fresh: false })
        }
        Ok(_) => anyhow::bail!(
            "{} does not hold a key of 32 or more characters: delete it to get a new one",
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            rand::rng().fill_bytes(&mut bytes);
            let text = format!("pwa_{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
            Ok(AdminKeyText { text, fresh: true })
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes a new admin key into its own file, readable by its owner only.
pub fn write_admin_key(config: &ServerConfig, key: &AdminKeyText) -> anyhow::Result<()> {
    write_private(&config.admin_key_file(), &key.text)
}

/// The secret key, which also decrypts and verifies what the configured previous keys have made.
pub fn secret_key(config: &ServerConfig) -> anyhow::Result<SecretKey> {
    let mut older: Option<SecretKey> = None;
    for previous in config.secret_key_previous.iter().rev() {
        let previous = SecretKey::from_base64(previous.expose())?;
        older = Some(with_previous_keys(previous, older));
    }
    Ok(with_previous_keys(current_secret_key(config)?, older))
}

/// The same for a command beside the server: no key is made where none is.
pub fn existing_secret_key(config: &ServerConfig) -> anyhow::Result<SecretKey> {
    let path = config.secret_key_file();
    if config.secret_key.is_none() && !path.exists() {
        anyhow::bail!(
            "there is no secret key: set POSTWAY_SECRET_KEY, or data_dir to the folder of secret.key"
        );
    }
    secret_key(config)
}

fn with_previous_keys(key: SecretKey, older: Option<SecretKey>) -> SecretKey {
    match older {
        Some(older) => key.with_previous(older),
        None => key,
    }
}

/// The configured secret key, the one in the data folder, or a new one, written before it is used.
fn current_secret_key(config: &ServerConfig) -> anyhow::Result<SecretKey> {
    if let Some(key) = &config.secret_key {
        return Ok(SecretKey::from_base64(key.expose())?);
    }
    let path = config.secret_key_file();
    match fs::read_to_string(&path) {
        Ok(text) => SecretKey::from_base64(&text).with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; SecretKey::BYTES];
            rand::rng().fill_bytes(&mut bytes);
            write_private(&path, &BASE64_STANDARD.encode(bytes))?;
            Ok(SecretKey::from_bytes(&bytes)?)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes a file completely or not at all, readable by its owner only, durable when this returns. An existing
/// draft is replaced and not written into: it would keep its permissions, and other processes may have it
/// open.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        let draft = path.with_extension("key.draft");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = fs::OpenOptions::new();
        options.create_new(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        if let Some(folder) = path.parent() {
            fs::File::open(folder)?.sync_all()?;
        }
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_its_owners_alone_whatever_draft_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, draft) = (folder.path().join("secret.key"), folder.path().join("secret.key.draft"));
        fs::write(&draft, "left by an earlier try, and longer than what is written now").unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o666)).unwrap();
        write_private(&path, "key").unwrap();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap()), (0o600, "key\n".to_owned()));
        assert!(!draft.exists());
    }

    #[test]
    fn a_key_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("secret.key"), folder.path().join("elsewhere"));
        symlink(&elsewhere, folder.path().join("secret.key.draft")).unwrap();
        write_private(&path, "key").unwrap();
        assert!(!elsewhere.exists() && fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(mode(&path), 0o600);
    }
}
