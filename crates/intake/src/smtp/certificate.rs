//! The listener's certificate, read anew when its files change.
//!
//! Both files are looked at every few seconds. A pair that cannot be used, as when one of them has been replaced and the
//! other not yet, or cannot be read yet, is told once and tried again: sessions go on with the last pair that worked.

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

/// Where certificate and key are, in PEM.
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
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} holds no {wanted} in PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
    },
    /// The two do not make a server.
    #[error("the certificate and the key cannot be used together: {0}")]
    Unusable(#[from] rustls::Error),
}

/// What is known of the files without reading them.
type Stamp = [Option<(SystemTime, u64, u64)>; 2];

/// How the files looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// When the pair in use was read.
    taken: Stamp,
    /// When a pair that cannot be used was told.
    told: Option<Stamp>,
}

/// The certificate that new sessions get.
#[derive(Debug)]
pub(super) struct Certificate {
    files: CertificateFiles,
    current: RwLock<Arc<ServerConfig>>,
    opened: Stamp,
}

impl Certificate {
    /// Reads the files for the first time.
    pub(super) fn open(files: CertificateFiles) -> Result<Self, CertificateError> {
        // Before reading, here as below: what changes meanwhile looks changed next time.
        let opened = files.stamp();
        let current = RwLock::new(Arc::new(files.load()?));
        Ok(Self { files, current, opened })
    }

    /// What takes a connection through the handshake.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(current.clone())
    }

    /// Looks at the files again and again.
    pub(super) async fn follow(self: Arc<Self>, every: Duration, stop: CancellationToken) {
        let mut seen = Seen { taken: self.opened, told: None };
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

    /// Takes the files over if they have changed since; how they look now.
    fn refresh(&self, seen: Seen) -> Seen {
        let stamp = self.files.stamp();
        if stamp == seen.taken {
            return Seen { told: None, ..seen };
        }
        match self.files.load() {
            Ok(config) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!("the certificate of SMTP was read anew");
                Seen { taken: stamp, told: None }
            }
            // It may become usable without looking changed, as when it is made readable.
            Err(error) => {
                if seen.told != Some(stamp) {
                    tracing::warn!(%error, "the new certificate of SMTP cannot be used; the old one stays");
                }
                Seen { told: Some(stamp), ..seen }
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

    fn stamp(&self) -> Stamp {
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
        let certificate = Certificate::open(files.clone()).unwrap();
        let current = || certificate.current.read().unwrap().clone();
        let (opened, seen) = (current(), Seen { taken: certificate.opened, told: None });

        assert_eq!(certificate.refresh(seen), seen);
        let beside = folder.path().join("new.pem");
        fs::write(&beside, &second.cert_pem).unwrap();
        fs::rename(&beside, &files.certificate).unwrap();
        let half = certificate.refresh(seen);
        assert!(Arc::ptr_eq(&opened, &current()), "the key of the new one is not there yet");
        assert_eq!(half, Seen { told: Some(files.stamp()), ..seen }, "it was told, and is tried again");
        assert_eq!(certificate.refresh(half), half);
        fs::write(&beside, &second.key_pem).unwrap();
        fs::rename(&beside, &files.key).unwrap();
        assert_eq!(certificate.refresh(half), Seen { taken: files.stamp(), told: None });
        assert!(!Arc::ptr_eq(&opened, &current()));
    }

    #[test]
    fn a_pair_that_becomes_usable_without_looking_changed_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles::new(folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let pair = TestCert::localhost();
        fs::write(&files.certificate, &pair.cert_pem).unwrap();
        fs::write(&files.key, &pair.key_pem).unwrap();
        let certificate = Certificate::open(files.clone()).unwrap();
        let opened = certificate.current.read().unwrap().clone();
        // As after a pair that could not be read when it came: it is told, and what it looks like is known.
        let told = Seen { taken: [None, None], told: Some(files.stamp()) };
        assert_eq!(certificate.refresh(told), Seen { taken: files.stamp(), told: None });
        assert!(!Arc::ptr_eq(&opened, &certificate.current.read().unwrap()));
    }
}
