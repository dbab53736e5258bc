//! The certificate of the listeners, reloaded when its files change.
//!
//! Both files are checked every few seconds. A pair that cannot be used, because only one of them was
//! replaced yet or one is not readable yet, is logged as an error, again every hour, and tried again; clients
//! are shown the last pair that worked. The gauge `postway_certificate_refused` is 1 as long as that lasts.
//!
//! A listener makes its acceptor once, with the protocols that it speaks. Each handshake asks for the
//! certificate of that moment, so acceptors never have to be made anew.

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
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::client_certificate::AnyClientCertificate;

/// How often the log repeats that a new pair cannot be used.
const REPEATED_EVERY: Duration = Duration::from_secs(60 * 60);

/// The PEM files with the certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// The paths of both files.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }
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

/// The certificate that new clients are shown.
#[derive(Debug)]
pub struct ServerCertificate {
    files: CertificateFiles,
    current: RwLock<Arc<CertifiedKey>>,
    opened: FileStamps,
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ServerCertificate {
    /// Reads the files for the first time.
    pub fn open(files: CertificateFiles) -> Result<Self, CertificateError> {
        // The stamps are taken before reading, here and below: a change meanwhile is noticed at the next
        // check.
        let opened = files.stamp();
        let current = RwLock::new(Arc::new(files.load()?));
        Ok(Self { files, current, opened })
    }

    /// The certificate of this moment.
    fn current(&self) -> Arc<CertifiedKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The files that it is read from.
    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }

    /// An acceptor for the handshakes of a listener that speaks these protocols, the preferred one first;
    /// none if its clients do not negotiate one.
    pub fn acceptor(self: &Arc<Self>, protocols: &[&str]) -> Result<TlsAcceptor, CertificateError> {
        self.acceptor_for(protocols, WebPkiClientVerifier::no_client_auth())
    }

    /// The same for a listener whose clients may show a certificate of their own.
    pub fn acceptor_that_asks(self: &Arc<Self>, protocols: &[&str]) -> Result<TlsAcceptor, CertificateError> {
        self.acceptor_for(protocols, AnyClientCertificate::new())
    }

    fn acceptor_for(
        self: &Arc<Self>,
        protocols: &[&str],
        of_clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<TlsAcceptor, CertificateError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(of_clients)
            .with_cert_resolver(self.clone());
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Checks the files every `every` until it is stopped.
    pub async fn watch_files(self: Arc<Self>, every: Duration, stop: CancellationToken) {
        let mut seen = SeenFiles { taken: self.opened, reported: None };
        let mut reported_for = Duration::ZERO;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            let own = self.clone();
            let look = tokio::task::spawn_blocking(move || own.refresh(seen));
            match look.await {
                Ok(now) => seen = now,
                Err(error) => tracing::warn!(%error, "looking at the files of the certificate failed"),
            }
            metrics::gauge!("postway_certificate_refused").set(f64::from(u8::from(seen.reported.is_some())));
            reported_for = if seen.reported.is_some() { reported_for + every } else { Duration::ZERO };
            if reported_for >= REPEATED_EVERY {
                // It is reported once more: the old certificate will expire.
                (seen.reported, reported_for) = (None, Duration::ZERO);
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
            Ok(pair) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                tracing::info!(file = %self.files.certificate.display(), "the certificate was read anew");
                SeenFiles { taken: stamp, reported: None }
            }
            // The pair may become usable without new stamps, for example when it is made readable.
            Err(error) => {
                if seen.reported != Some(stamp) {
                    let file = self.files.certificate.display();
                    tracing::error!(%file, %error, "THE NEW CERTIFICATE CANNOT BE USED; the old one stays until it expires");
                }
                SeenFiles { reported: Some(stamp), ..seen }
            }
        }
    }
}

impl CertificateFiles {
    fn load(&self) -> Result<CertifiedKey, CertificateError> {
        let not_pem = |path: &Path, wanted| CertificateError::NotPem { path: path.to_owned(), wanted };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(&self.certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|_| not_pem(&self.certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(not_pem(&self.certificate, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|_| not_pem(&self.key, "private key"))?;
        Ok(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())?)
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
        let current = || certificate.current();
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
        let opened = certificate.current();
        // The state after a pair that could not be read: it was logged, and its stamps are known.
        let reported = SeenFiles { taken: [None, None], reported: Some(files.stamp()) };
        assert_eq!(certificate.refresh(reported), SeenFiles { taken: files.stamp(), reported: None });
        assert!(!Arc::ptr_eq(&opened, &certificate.current()));
    }
}
