//! The listener's certificate, reloaded when its files change.
//!
//! Both files are checked every few seconds. A pair that cannot be used, because only one of them was
//! replaced yet or one is not readable yet, is logged once and tried again; sessions continue with the last
//! pair that worked.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The PEM files with the certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; name an existing, readable file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has no such PEM section.
    #[error("{} holds no {wanted} in PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// The section that it should contain.
        wanted: &'static str,
    },
    /// The certificate and the key do not fit together.
    #[error("the certificate and the key cannot be used together: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Modification time, size and inode of both files.
type FileStamps = [Option<(SystemTime, u64, u64)>; 2];

/// The state of the files at the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenFiles {
    /// The stamps of the pair in use.
    taken: FileStamps,
    /// The stamps of an unusable pair that was logged.
    reported: Option<FileStamps>,
}

/// The certificate that new sessions get.
#[derive(Debug)]
pub(super) struct ServerCertificate {
    files: CertificateFiles,
    current: RwLock<Arc<ServerConfig>>,
    opened: FileStamps,
}

impl ServerCertificate {
    /// Reads the files for the first time.
    pub(super) fn open(files: CertificateFiles) -> Result<Self, CertificateError> {
        // The stamps are taken before reading, here and below: a change meanwhile is noticed at the next
        // check.
        let opened = files.stamp();
        let current = RwLock::new(Arc::new(files.load()?));
        Ok(Self { files, current, opened })
    }

    /// The acceptor for TLS handshakes.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(current.clone())
    }

    /// Checks the files every `every` until it is stopped.
    pub(super) async fn watch_files(self: Arc<Self>, every: Duration, stop: CancellationToken) {
        let mut seen = SeenFiles { taken: self.opened, reported: None };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            let own = self.clone();
            let look = tokio::task::spawn_blocking(move || own.refresh(seen));
            match look.await {
                Ok(now) => seen = now,
                Err(error) => tracing::warn!(%error, "looking at the certificate of SMTP failed"),
            }
        }
    }

    /// Loads the files if they have changed; returns their new state.
    fn refresh(&self, seen: SeenFiles) -> SeenFiles {
        let stamp = self.files.stamp();
        if stamp == seen.taken {
            return SeenFiles { reported: None, ..seen };
        }
        match self.files.load() {
            Ok(config) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("the certificate of SMTP was read anew");
                SeenFiles { taken: stamp, reported: None }
            }
            // The pair may become usable without new stamps, for example when it is made readable.
            Err(error) => {
                if seen.reported != Some(stamp) {
                    tracing::warn!(%error, "the new certificate of SMTP cannot be used; the old one stays");
                }
                SeenFiles { reported: Some(stamp), ..seen }
            }
        }
    }
}

impl CertificateFiles {
    fn load(&self) -> Result<ServerConfig, CertificateError> {
        let not_pem = |path: &Path, wanted| CertificateError::NotPem { path: path.to_owned(), wanted };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(&self.certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|_| not_pem(&self.certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(not_pem(&self.certificate, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|_| not_pem(&self.key, "private key"))?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(config)
    }

    fn stamp(&self) -> FileStamps {
        use std::os::unix::fs::MetadataExt;
        [&self.certificate, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    fs::read(path).map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use postway_testkit::TestCert;

    #[test]
    fn a_new_pair_is_taken_over_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles::new(folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let (first, second) = (TestCert::localhost(), TestCert::localhost());
        assert!(matches!(files.load(), Err(CertificateError::Unreadable { .. })));
        fs::write(&files.certificate, "no certificate").unwrap();
        assert!(matches!(files.load(), Err(CertificateError::NotPem { wanted: "certificate", .. })));
        fs::write(&files.certificate, &first.cert_pem).unwrap();
        fs::write(&files.key, &first.key_pem).unwrap();
        let certificate = ServerCertificate::open(files.clone()).unwrap();
        let current = || certificate.current.read().unwrap().clone();
        let (opened, seen) = (current(), SeenFiles { taken: certificate.opened, reported: None });

        assert_eq!(certificate.refresh(seen), seen);
        let beside = folder.path().join("new.pem");
        fs::write(&beside, &second.cert_pem).unwrap();
        fs::rename(&beside, &files.certificate).unwrap();
        let half = certificate.refresh(seen);
        assert!(Arc::ptr_eq(&opened, &current()), "the key of the new one is not there yet");
        assert_eq!(
            half,
            SeenFiles { reported: Some(files.stamp()), ..seen },
            "it was reported, and is tried again"
        );
        assert_eq!(certificate.refresh(half), half);
        fs::write(&beside, &second.key_pem).unwrap();
        fs::rename(&beside, &files.key).unwrap();
        assert_eq!(certificate.refresh(half), SeenFiles { taken: files.stamp(), reported: None });
        assert!(!Arc::ptr_eq(&opened, &current()));
    }

    #[test]
    fn a_pair_that_becomes_usable_without_looking_changed_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles::new(folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let pair = TestCert::localhost();
        fs::write(&files.certificate, &pair.cert_pem).unwrap();
        fs::write(&files.key, &pair.key_pem).unwrap();
        let certificate = ServerCertificate::open(files.clone()).unwrap();
        let opened = certificate.current.read().unwrap().clone();
        // The state after a pair that could not be read: it was logged, and its stamps are known.
        let reported = SeenFiles { taken: [None, None], reported: Some(files.stamp()) };
        assert_eq!(certificate.refresh(reported), SeenFiles { taken: files.stamp(), reported: None });
        assert!(!Arc::ptr_eq(&opened, &certificate.current.read().unwrap()));
    }
}
